"""Preparation of training text: Moses tokenisation and its inverse, traditional to simplified characters."""

import sys

import pytest

from regard.errors import MissingPackageError
from regard.text.normalise import moses_detokenised, moses_tokenised, simplified


@pytest.mark.parametrize(
    ("lang", "raw", "prepared"),
    [
        ("en", "Two men's “dogs” run,  really!", "two men &apos;s &quot; dogs &quot; run , really !"),
        ("de", "Ein Mann, z.B. im T-Shirt.", "ein mann , z.b. im t-shirt ."),
        ("fr", "L'homme est là.", "l&apos; homme est là ."),
    ],
)
def test_moses_tokenised(lang: str, raw: str, prepared: str) -> None:
    assert moses_tokenised([raw, ""], lang) == [prepared, ""]


def test_moses_detokenised() -> None:
    assert moses_detokenised(["l&apos; homme est là .", ""], "fr") == ["l'homme est là.", ""]
    assert moses_detokenised(["ein mann , der &quot; ja &quot; sagt ."], "de") == ['ein mann, der "ja" sagt.']


def test_missing_sacremoses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    for call in (moses_tokenised, moses_detokenised):
        with pytest.raises(MissingPackageError, match=r"sacremoses.*regard\[train\]"):
            call(["a"], "en")


def test_conversion_depends_on_the_word() -> None:
    lines = ["她的頭髮中夾有白髮。", "發現乾坤", "乾杯", "這條河叫什麼名字?", "她的头发", "It is 3 o'clock 🙂", ""]
    wanted = ["她的头发中夹有白发。", "发现乾坤", "干杯", "这条河叫什么名字?", "她的头发", "It is 3 o'clock 🙂", ""]
    assert simplified(lines) == wanted
    assert simplified(wanted) == wanted


def test_missing_opencc_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(MissingPackageError) as caught:
        simplified(["頭"])
    assert "opencc" in caught.value.text("en")
    assert "opencc" in caught.value.text("zh")
