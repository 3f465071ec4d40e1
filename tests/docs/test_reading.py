"""docs/reading: the same entries in both languages, a section for each lesson, and links to and from the guide."""

import re

import pytest
from pages import ROOT, Page

from regard.course.lessons import lessons
from regard.messages import LANGUAGES, Language

PAGE = Page("docs/reading.md", "docs/reading.zh-CN.md")
EACH = pytest.mark.parametrize("lang", LANGUAGES)
LINK = r"\]\((https://[^)]+)\)"


def test_both_languages_list_the_same() -> None:
    PAGE.assert_same_marks(r"^(#+) ", LINK, r"^- [^*\n]*\*([^*\n]+)\*", r"arXiv:(\d{4}\.\d{4,5})")
    PAGE.assert_same_names()


@EACH
def test_the_list_of_the_document_is_whole(lang: Language) -> None:
    """One paper, five articles, two videos."""
    parts = re.split(r"^### ", PAGE.text(lang).split("\n## ")[1], flags=re.MULTILINE)[1:]
    assert [len(re.findall(LINK, part)) for part in parts] == [1, 5, 2]


@EACH
def test_each_lesson_has_its_papers(lang: Language) -> None:
    numbers = [int(number) for number in re.findall(r"^### (\d+) ·", PAGE.text(lang), flags=re.MULTILINE)]
    assert numbers == [lesson.number for lesson in lessons()]


@EACH
def test_the_guide_leads_here_and_back(lang: Language) -> None:
    here = PAGE.path(lang).removeprefix("docs/")
    guide = here.replace("reading", "learning")
    assert f"]({here})" in (ROOT / "docs" / guide).read_text(encoding="utf-8")
    assert f"]({guide}#" in PAGE.text(lang)
