"""Lessons are found by number and name."""

from pathlib import Path

import pytest

from regard.course import lessons as index
from regard.course.lessons import lesson, lessons
from regard.errors import UnknownNameError
from regard.messages import use_language


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for stem, en, zh in (("04-masks", "Masks", "掩码"), ("01-why-attention", "Why attention", "为什么要有注意力")):
        (tmp_path / f"{stem}.en.md").write_text(f"# {en}\n\nText.\n", encoding="utf-8")
        (tmp_path / f"{stem}.zh-CN.md").write_text(f"\n# 1 · {zh}\n\n正文。\n", encoding="utf-8")
    monkeypatch.setattr(index, "FOLDER", tmp_path)
    return tmp_path


def test_lessons_are_sorted_and_have_titles(shelf: Path) -> None:
    found = lessons()
    assert [(one.number, one.name, one.title.zh) for one in found] == [
        (1, "why-attention", "为什么要有注意力"),
        (4, "masks", "掩码"),
    ]


@pytest.mark.parametrize("name", ["4", "04", "masks", "Masks", "04-masks", " 04_masks "])
def test_a_lesson_is_found_by_number_or_name(shelf: Path, name: str) -> None:
    found = lesson(name)
    assert found.text() == "# Masks\n\nText.\n"
    with use_language("zh"):
        assert "正文" in found.text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mask", "did you mean masks"),
        ("19", "available: 1 why-attention, 4 masks"),
        ("9" * 5000, "4 masks"),
        ("", "no lesson ''"),
    ],
)
def test_an_unknown_lesson_lists_the_lessons(shelf: Path, name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        lesson(name)


def test_the_bundled_lessons_are_in_both_languages() -> None:
    stems = {
        lang: {path.name.removesuffix(ending) for path in index.FOLDER.glob(f"*{ending}")}
        for lang, ending in index.ENDINGS.items()
    }
    assert stems["en"] == stems["zh"]
    numbers = [one.number for one in lessons()]
    assert numbers == list(range(1, 13))
