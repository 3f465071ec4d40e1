"""The lessons: both languages alike, every block of Python run, every exercise that they send to there."""

import re

import pytest
from pages import Page

from regard.course.catalogue import entries
from regard.course.lessons import Lesson, lessons
from regard.messages import LANGUAGES, Language

FOLDER = "src/regard/course/lessons"


def page(lesson: Lesson) -> Page:
    return Page(f"{FOLDER}/{lesson.path('en').name}", f"{FOLDER}/{lesson.path('zh').name}")


def test_there_are_twelve_in_order() -> None:
    assert [lesson.number for lesson in lessons()] == list(range(1, 13))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_its_blocks_print_what_they_say(lesson: Lesson, lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    both = page(lesson)
    if lang == "en" or not both.prints_the_same():
        both.run(lang, monkeypatch)


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_both_languages_say_the_same(lesson: Lesson) -> None:
    both = page(lesson)
    both.assert_same_code()
    both.assert_same_names()
    both.assert_chinese_punctuation()
    assert both.blocks("en", "bash") == both.blocks("zh", "bash")
    headings, boxes = r"^(#+) ", r"^> \*\*(?:Set right\.|更正)\*\*"
    both.assert_same_marks(headings)
    assert (
        len(re.findall(boxes, both.text("en"), re.MULTILINE))
        == len(re.findall(boxes, both.text("zh"), re.MULTILINE))
        > 0
    )


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_its_exercises_are_those_of_the_list(lesson: Lesson, lang: Language) -> None:
    starts = re.findall(
        r"`regard learn start ([a-z-]+)`((?:[,、，] ?(?:then |再做 )?`[a-z-]+`)*)", page(lesson).prose(lang)
    )
    named = [name for first, rest in starts for name in (first, *re.findall(r"`([a-z-]+)`", rest))]
    assert sorted(named) == sorted(row.id for row in entries() if row.lesson == lesson.number)


def test_every_exercise_belongs_to_a_lesson() -> None:
    assert {row.lesson for row in entries()} <= {lesson.number for lesson in lessons()}
