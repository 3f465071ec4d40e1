"""Fixtures for matplotlib figures: no screen, and a Chinese font on every machine."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager, pyplot

from regard.views import fonts


@pytest.fixture
def no_display() -> Iterator[None]:
    with matplotlib.rc_context():
        pyplot.switch_backend("Agg")
        yield
        pyplot.close("all")


@pytest.fixture(scope="session", autouse=True)
def chinese_font(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """If no Chinese font is installed, add one in which every Chinese character is the same square."""
    if fonts.drawable_language("zh") == "zh":
        yield
        return
    file = tmp_path_factory.mktemp("fonts") / "squares.ttf"
    write_squares(file, "Noto Sans CJK SC")
    known = font_manager.fontManager.ttflist
    before = list(known)
    font_manager.fontManager.addfont(file)
    clear_font_caches()
    yield
    known[:] = before
    clear_font_caches()


@pytest.fixture
def new_font(tmp_path: Path) -> Path:
    """A font file, family "Han of Today", that matplotlib does not know yet."""
    write_squares(tmp_path / "today.ttf", "Han of Today")
    return tmp_path / "today.ttf"


def write_squares(file: Path, family: str) -> None:
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for corner in ((100, 800), (900, 800), (900, 0)):
        pen.lineTo(corner)
    pen.closePath()
    font = FontBuilder(1000)
    font.setupGlyphOrder([".notdef", "square"])
    font.setupCharacterMap(dict.fromkeys([*range(0x3000, 0xA000), *range(0xFF00, 0xFF60)], "square"))
    font.setupGlyf({name: pen.glyph() for name in (".notdef", "square")})
    font.setupHorizontalMetrics(dict.fromkeys((".notdef", "square"), (1000, 100)))
    font.setupHorizontalHeader(ascent=880, descent=-120)
    font.setupNameTable({"familyName": family, "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(file)


def clear_font_caches() -> None:
    """Clear our caches about fonts; matplotlib updates its own."""
    for cached in (fonts.families, fonts._characters, fonts._warn_once):
        cached.cache_clear()
