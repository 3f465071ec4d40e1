"""Verse forms: lengths of lines, and rhymes of modern Mandarin."""

import sys

import pytest

from regard.errors import MissingPackageError
from regard.evaluation.poems import FORMS, form_of, lines_of, rhymes, right_lines

HERON = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
DAWN = "朝辞白帝彩云间，千里江陵一日还。两岸猿声啼不住，轻舟已过万重山。"


def test_lines_end_at_five_punctuation_marks() -> None:
    assert lines_of("何处？此处！山；水，云。") == ["何处", "此处", "山", "水", "云"]
    assert lines_of("白日依山尽，\n黄河入海流。\n欲穷") == ["白日依山尽", "黄河入海流", "欲穷"]
    assert lines_of("，。 ") == lines_of("") == []


def test_form_by_line_lengths() -> None:
    assert [form_of(poem) for poem in (HERON, DAWN, HERON * 2, DAWN * 2)] == ["五绝", "七绝", "五律", "七律"]
    assert [form_of(poem) for poem in (HERON * 3, HERON + DAWN, HERON[:-6], "", HERON[1:])] == [None] * 5


@pytest.mark.parametrize(
    ("poem", "form", "wanted"),
    [
        (HERON, "五绝", 1.0),
        (HERON, "七绝", 0.0),
        (HERON, "五律", 0.5),
        (HERON * 2, "五绝", 0.5),
        (HERON[1:], "五绝", 0.75),
        (DAWN, "七绝", 1.0),
        ("", "五绝", 0.0),
    ],
)
def test_missing_and_extra_lines_are_wrong(poem: str, form: str, wanted: float) -> None:
    assert right_lines(poem, FORMS[form]) == wanted


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ("山天", True),
        ("山远", True),
        ("山关", True),
        ("心门", True),
        ("门春", True),
        ("春云", True),
        ("青生", True),
        ("花家", True),
        ("月雪", True),
        ("归飞", True),
        ("流楼", True),
        ("居鱼", True),
        ("诗时", True),
        ("中穷", True),
        ("山光", False),
        ("心星", False),
        ("诗西", False),
        ("鱼湖", False),
        ("东生", False),
        ("月花", False),
        ("鼓雨", False),
        ("儿诗", False),
        ("还山", True),  # huán or hái
        ("还来", True),
        ("行光", True),  # háng or xíng
        ("行声", True),
        ("山山", False),
        ("山𪒶", False),  # its reading is unknown
    ],
)
def test_rhymes(ends: str, wanted: bool) -> None:
    assert rhymes(f"一二三四五，一二三四{ends[0]}。一二三四五，一二三四{ends[1]}。") is wanted
    assert rhymes(f"一，二{ends[1]}！三？四{ends[0]}；五。") is wanted


def test_famous_poems() -> None:
    assert rhymes(HERON)
    assert rhymes(DAWN)
    assert not rhymes("千山鸟飞绝，万径人踪灭。孤舟蓑笠翁，独钓寒江山。")
    assert not rhymes("白日依山尽，黄河入海流。欲穷千里目。")


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypinyin", None)
    with pytest.raises(MissingPackageError) as caught:
        rhymes("一，蠹。一，蠱。")  # used in no other test, so that nothing is cached
    assert "pypinyin" in caught.value.text("en")
    assert "pypinyin" in caught.value.text("zh")
