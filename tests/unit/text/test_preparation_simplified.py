"""Traditional characters made simplified ones, by words and not by characters alone."""

import sys

import pytest

from regard.errors import MissingPackageError
from regard.text.preparation import simplified


def test_one_character_may_come_from_several_and_become_several() -> None:
    lines = ["她的頭髮中夾有白髮。", "發現乾坤", "乾杯", "這條河叫什麼名字?", "她的头发", "It is 3 o'clock 🙂", ""]
    wanted = ["她的头发中夹有白发。", "发现乾坤", "干杯", "这条河叫什么名字?", "她的头发", "It is 3 o'clock 🙂", ""]
    assert simplified(lines) == wanted
    assert simplified(wanted) == wanted


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(MissingPackageError) as caught:
        simplified(["頭"])
    assert "opencc" in caught.value.text("en")
    assert "opencc" in caught.value.text("zh")
