"""The pictures of the lessons: every file is what its drawing gives today, in both languages, and fits a terminal."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rich.cells import cell_len

from regard.course.drawings import drawing, drawings
from regard.course.drawings.blocks import Drawing, Flow, Matrix, text_in
from regard.course.drawings.svg import to_svg
from regard.course.drawings.terminal import drawing_lines
from regard.course.lessons import FOLDER, lessons
from regard.messages import LANGUAGES, Language, Message
from regard.views.colours import Depth

PICTURES = FOLDER / "pictures"
IMAGE = re.compile(r"^!\[([^\]]*)\]\(pictures/([a-z0-9-]+)\.(en|zh)\.svg\)$", flags=re.MULTILINE)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", drawings())
def test_its_file_is_up_to_date(name: str, lang: Language) -> None:
    """If this fails: `python docs/pictures/lessons.py`, then look at the pictures that changed."""
    stored, drawn = (PICTURES / f"{name}.{lang}.svg").read_text(encoding="utf-8"), to_svg(drawing(name), lang)
    assert NUMBER.sub("0", stored) == NUMBER.sub("0", drawn)
    # The last digits of a place may differ between processors.
    both = zip(NUMBER.findall(stored), NUMBER.findall(drawn), strict=True)
    assert all(abs(float(a) - float(b)) <= 0.2 for a, b in both)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", drawings())
def test_it_is_well_formed_and_has_a_text_for_readers_who_cannot_see_it(name: str, lang: Language) -> None:
    root = ElementTree.fromstring(to_svg(drawing(name), lang))
    space = "{http://www.w3.org/2000/svg}"
    title, description = root.find(f"{space}title"), root.find(f"{space}desc")
    assert title is not None
    assert title.text == text_in(drawing(name).title, lang)
    assert description is not None
    assert description.text == text_in(drawing(name).caption, lang)


@pytest.mark.parametrize(("width", "depth"), [(40, None), (78, "truecolor"), (78, None), (120, "256")])
@pytest.mark.parametrize("name", drawings())
def test_it_fits_the_terminal(name: str, width: int, depth: Depth | None) -> None:
    for lang in LANGUAGES:
        lines = drawing_lines(drawing(name), lang, width, depth)
        assert max(cell_len(line.plain) for line in lines) <= width
        assert len(lines) > 4


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_flow_chart_in_eighty_columns_is_complete(lang: Language) -> None:
    """No name is cut, and an arrow ends at the box that it points to."""
    count = 0
    for name in drawings():
        flows = [block for block in drawing(name).blocks if isinstance(block, Flow)]
        count += len(flows)
        if not flows:
            continue
        lines = [line.plain for line in drawing_lines(drawing(name), lang, 80, None)]
        names = [text_in(box.text, lang) for flow in flows for lane in flow.lanes for box in lane if box]
        assert sum(line.count("…") for line in lines) == sum(text.count("…") for text in names), name
        assert sum(len(re.findall("─▶│", line)) for line in lines) >= sum(a < b for f in flows for _, a, b in f.across)
        assert not [line for line in lines if re.search("─▶(?!│)|─ +│|│[^│]*  ◀", line)]
    assert count >= 7


def test_both_languages_of_a_drawing_have_their_own_words() -> None:
    for name in drawings():
        for label in (drawing(name).title, drawing(name).caption):
            assert re.search("[\u4e00-\u9fff]", label.zh), name
            assert label.en, name


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_a_lesson_shows_its_pictures_by_their_titles(lesson, lang: Language) -> None:  # type: ignore[no-untyped-def]
    for title, name, marked in IMAGE.findall(lesson.text(lang)):
        assert marked == lang
        assert title == text_in(drawing(name).title, lang)


def test_every_drawing_is_in_a_lesson() -> None:
    shown = [name for lesson in lessons() for _, name, _ in IMAGE.findall(lesson.text("en"))]
    assert sorted(shown) == sorted(drawings())


def test_an_empty_cell_does_not_change_the_colours_of_the_others() -> None:
    def colours(empty: float) -> str:
        matrix = Matrix(values=np.array([[1.0, empty]]), decimals=None)
        return to_svg(Drawing(title=Message("x", "x"), blocks=(matrix,)), "en")

    assert "#fde725" in colours(0.5)
    assert "#fde725" in colours(np.nan)
