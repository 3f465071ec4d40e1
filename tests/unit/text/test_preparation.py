"""Text as the papers prepared it."""

import sys

import pytest

from regard.errors import MissingPackageError
from regard.text import preparation


@pytest.mark.parametrize(
    ("lang", "raw", "prepared"),
    [
        ("en", "Two men's “dogs” run,  really!", "two men &apos;s &quot; dogs &quot; run , really !"),
        ("de", "Ein Mann, z.B. im T-Shirt.", "ein mann , z.b. im t-shirt ."),
        ("fr", "L'homme est là.", "l&apos; homme est là ."),
    ],
)
def test_lines_are_prepared(lang: str, raw: str, prepared: str) -> None:
    assert preparation.prepare([raw, ""], lang) == [prepared, ""]


def test_tokens_are_written_as_people_do() -> None:
    assert preparation.plain(["l&apos; homme est là .", ""], "fr") == ["l'homme est là.", ""]
    assert preparation.plain(["ein mann , der &quot; ja &quot; sagt ."], "de") == ['ein mann, der "ja" sagt.']


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    for call in (preparation.prepare, preparation.plain):
        with pytest.raises(MissingPackageError, match=r"sacremoses.*regard\[train\]"):
            call(["a"], "en")
