"""Items of a certificate, run again in the sandbox."""

from dataclasses import replace

import pytest

from regard.course import certificate as module
from regard.course.catalogue import exercise
from regard.course.certificate import Certificate, PassedItem, digest, verify

AT = "2026-01-02T03:04:05+00:00"


def certificate(*items: PassedItem) -> Certificate:
    about = {"name": "", "written_at": AT, "regard": "0.1.0", "minutes": 1}
    return Certificate(language="en", items=items, counts={}, **about)  # type: ignore[arg-type]


def item(id: str, answer: str | None) -> PassedItem:
    return PassedItem(id, AT, answer, None if answer is None else digest(answer))


def test_every_item_is_reported() -> None:
    right = item("softmax", exercise("softmax").solution)
    wrong = item("softmax", "def softmax(x, axis=-1):\n    while True: pass\n")
    items = [
        right,
        wrong,
        item("causal-mask", exercise("causal-mask").stub),
        replace(right, answer=f"{right.answer}\n"),
        item("rope", None),
        item("from-the-future", "x"),
    ]
    found = list(verify(certificate(*items)))
    assert [one.outcome for one in found] == ["passes", "fails", "fails", "changed", "no-answer", "unknown"]
    assert found[1].reason
    assert found[2].reason


def test_a_sheet_is_graded_again() -> None:
    sheet = exercise("order-the-flow").sheet
    assert sheet is not None
    answers = [f"{field.name} = {list(field.expected)!r}" for field in sheet.fields(3)]
    found = list(verify(certificate(item("order-the-flow", "\n".join(["seed = 3", *answers])))))
    assert [one.outcome for one in found] == ["passes"]


def test_without_torch_its_items_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    found = list(verify(certificate(item("encoder-layer", "x"))))
    assert [one.outcome for one in found] == ["no-torch"]
