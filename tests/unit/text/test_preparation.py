"""Moses tokenisation and its inverse."""

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
def test_moses_tokenised(lang: str, raw: str, prepared: str) -> None:
    assert preparation.moses_tokenised([raw, ""], lang) == [prepared, ""]


def test_moses_detokenised() -> None:
    assert preparation.moses_detokenised(["l&apos; homme est là .", ""], "fr") == ["l'homme est là.", ""]
    assert preparation.moses_detokenised(["ein mann , der &quot; ja &quot; sagt ."], "de") == [
        'ein mann, der "ja" sagt.'
    ]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    for call in (preparation.moses_tokenised, preparation.moses_detokenised):
        with pytest.raises(MissingPackageError, match=r"sacremoses.*regard\[train\]"):
            call(["a"], "en")
