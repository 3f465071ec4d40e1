"""What a certificate holds, and pages from elsewhere: read strictly or refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.course.catalogue import entries, exercise
from regard.course.certificate import END, LARGEST, LONGEST_NAME, START, collect, digest, page, read_certificate
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import ExerciseProgress, Progress
from regard.errors import ArgumentError, FileError

AT = "2026-01-02T03:04:05+00:00"
PASSED = Progress({one: ExerciseProgress(passed_at=AT, attempts=1) for one in ("softmax", "causal-mask", "own.mine")})


@pytest.fixture
def answers(tmp_path: Path) -> PassedAnswers:
    kept = PassedAnswers(tmp_path / "home")
    kept.keep("softmax", exercise("softmax").solution)
    return kept


def test_it_holds_what_was_passed_in_the_course(answers: PassedAnswers) -> None:
    found = collect(PASSED, answers, "  Ada\nLovelace ")
    assert [item.id for item in found.items] == ["softmax", "causal-mask"]
    assert found.name == "Ada Lovelace"
    assert found.items[0].sha256 == digest(exercise("softmax").solution)
    assert (found.items[1].answer, found.items[1].sha256) == (None, None)
    assert found.counts["exercise"] == (2, len(entries()))
    assert found.minutes > 0


def test_nothing_passed_or_a_long_name_is_an_error(answers: PassedAnswers) -> None:
    with pytest.raises(ArgumentError, match="no exercise is passed"):
        collect(Progress(), answers, "")
    with pytest.raises(ArgumentError, match=str(LONGEST_NAME)):
        collect(PASSED, answers, "x" * (LONGEST_NAME + 1))


def test_a_page_is_read_back(answers: PassedAnswers, tmp_path: Path) -> None:
    made = collect(PASSED, answers, "</script><script>alert(1)</script>")
    (tmp_path / "c.html").write_text(page(made), encoding="utf-8")
    assert read_certificate(tmp_path / "c.html") == (made, page(made))


def changed(answers: PassedAnswers, path: Path, **changes: Any) -> Path:
    """A page with some fields of its data replaced."""
    before, _, rest = page(collect(PASSED, answers, "Ada")).partition(START)
    data, _, after = rest.partition(END)
    path.write_text(before + START + json.dumps(json.loads(data) | changes) + END + after, encoding="utf-8")
    return path


ITEM = {"id": "softmax", "passed_at": AT, "answer": "x", "sha256": "y"}
BROKEN: dict[str, Any] = {
    "version true": {"version": True},
    "another format": {"format": "other"},
    "items is a dict": {"items": {}},
    "an item is a string": {"items": ["softmax"]},
    "an item without an id": {"items": [{**ITEM, "id": ""}]},
    "an answer is a number": {"items": [{**ITEM, "answer": 1}]},
    "half a character": {"items": [{**ITEM, "answer": "\ud800"}]},
    "too many items": {"items": [ITEM] * 1001},
    "a long name": {"name": "x" * 1000},
    "a language that there is not": {"language": "xx"},
    "counts without pairs": {"counts": {"exercise": 3}},
    "a time that is none": {"written_at": 5},
    "minutes as text": {"minutes": "5"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_data_are_refused(answers: PassedAnswers, tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError, match="damaged"):
        read_certificate(changed(answers, tmp_path / "c.html", **BROKEN[name]))


def test_a_newer_page_says_so(answers: PassedAnswers, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="newer"):
        read_certificate(changed(answers, tmp_path / "c.html", version=2))


@pytest.mark.parametrize(
    "content", [b"", b"<html></html>", START.encode(), b"\xff\xfe", START.encode() + b"{" + END.encode()]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.html").write_bytes(content)
    with pytest.raises(FileError, match=r"certificate|damaged"):
        read_certificate(tmp_path / "c.html")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "c.html").open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(FileError, match="limit"):
        read_certificate(tmp_path / "c.html")
