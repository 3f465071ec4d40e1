"""Traditional to simplified characters, by words and not character by character."""

import sys

import pytest

from regard.errors import MissingPackageError
from regard.text.preparation import simplified


def test_conversion_depends_on_the_word() -> None:
    lines = ["她的頭髮中夾有白髮。", "發現乾坤", "乾杯", "這條河叫什麼名字?", "她的头发", "It is 3 o'clock 🙂", ""]
    wanted = ["她的头发中夹有白发。", "发现乾坤", "干杯", "这条河叫什么名字?", "她的头发", "It is 3 o'clock 🙂", ""]
    assert simplified(lines) == wanted
    assert simplified(wanted) == wanted


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(MissingPackageError) as caught:
        simplified(["頭"])
    assert "opencc" in caught.value.text("en")
    assert "opencc" in caught.value.text("zh")
