"""Fonts for matplotlib: a font with Chinese characters, and emoji drawn as images by Pillow."""

import contextlib
import logging
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.messages import Language, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_FILES = ("notocoloremoji", "apple color emoji", "seguiemj", "twemoji", "emojione", "joypixels")
"""How the file names of emoji fonts begin, in lower case."""
_SIZES = (109, 128, 136, 137, 160, 96, 64)
"""Bitmap fonts have one size and reject all others."""
_HEIGHT = 1.25
"""The height of a label, in font sizes."""
_PIXELS = 64
"""The height of a label, in pixels."""
_AWAY = 5.0
"""Points between the map and a label, as for matplotlib's own labels."""


@cache
def emoji_font() -> tuple[Any, frozenset[int]] | None:
    """A colour emoji font for Pillow and its characters; None if there is none."""
    from fontTools.ttLib import TTFont
    from matplotlib import font_manager
    from PIL import ImageFont

    paths = sorted(font_manager.findSystemFonts(), key=lambda path: Path(path).name.lower())
    for start in _FILES:
        for path in paths:
            if not Path(path).name.lower().startswith(start):
                continue
            for size in _SIZES:
                try:
                    font = ImageFont.truetype(path, size)
                    with TTFont(path, fontNumber=0, lazy=True) as table:
                        return font, frozenset(table.getBestCmap() or ())
                except Exception:
                    continue
    return None


def has_emoji(character: str) -> bool:
    """Whether the emoji font has the character."""
    found = emoji_font()
    return found is not None and ord(character) in found[1]


def label_image(text: str, outlines: Mapping[str, str]) -> np.ndarray:
    """The text in black as an image, rows × columns × RGBA.

    outlines    the font file of each character that is not an emoji
    """
    from PIL import Image, ImageDraw, ImageFont

    found = emoji_font()
    assert found is not None
    emoji, size = found[0], found[0].size
    parts = [
        (character, ImageFont.truetype(outlines[character], size) if character in outlines else emoji)
        for character in text
    ]
    widths = [max(1, round(font.getlength(character))) for character, font in parts]
    image = Image.new("RGBA", (sum(widths), round(_HEIGHT * size)), (255, 255, 255, 0))
    draw, left = ImageDraw.Draw(image), 0
    for (character, font), wide in zip(parts, widths, strict=True):
        draw.text(
            (left, image.height // 2), character, font=font, fill=(0, 0, 0), anchor="lm", embedded_color=font is emoji
        )
        left += wide
    # Scale down here: matplotlib would drop pixels.
    return np.asarray(image.resize((max(1, image.width * _PIXELS // image.height), _PIXELS), Image.Resampling.LANCZOS))


def draw_label(ax: "Axes", side: str, at: float, image: np.ndarray, points: float, *, turned: bool) -> None:
    """Draw the image as a label at a position of the x or y axis, as high as text of `points` points."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    zoom = _HEIGHT * points / image.shape[0]
    box = OffsetImage(np.rot90(image) if turned else image, zoom=zoom, resample=True)
    on_x = side == "x"
    ax.add_artist(
        AnnotationBbox(
            box,
            (at, 0) if on_x else (0, at),
            xybox=(0, -_AWAY) if on_x else (-_AWAY, 0),
            xycoords=("data", "axes fraction") if on_x else ("axes fraction", "data"),
            boxcoords="offset points",
            box_alignment=(0.5, 1) if on_x else (1, 0.5),
            frameon=False,
            pad=0,
            annotation_clip=False,
        )
    )


_log = logging.getLogger("regard")
BOX = "□"
_NEAREST = {"␊": "↵", "␍": "↵", "␉": "⇥"}
"""Replacements for control pictures that a font lacks."""
# Simplified Chinese first, then fonts that contain it among others.
_CJK = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Sarasa Gothic SC",
    "Droid Sans Fallback",
    "Noto Sans CJK TC",
    "Noto Sans CJK JP",
    "Arial Unicode MS",
)
_GENERIC = ("serif", "sans-serif", "cursive", "fantasy", "monospace")
"""Generic family names. matplotlib itself uses only the first font of such a list."""


@cache
def families() -> tuple[str, ...]:
    """The fonts to try for each character, in order. matplotlib's own font is last and always available."""
    found = _with_chinese()
    if not found:
        _rescan_fonts()
        found = _with_chinese()
    return (*found, "DejaVu Sans")


def _with_chinese() -> list[str]:
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _CJK if name in there]


def _rescan_fonts() -> None:
    """Add fonts installed after matplotlib wrote its font list to disk."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    known = {font.fname for font in manager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            with contextlib.suppress(Exception):  # a file that matplotlib cannot read as a font
                manager.addfont(path)


def _font_order() -> tuple[str, ...]:
    """The caller's fonts (`rcParams["font.family"]`), then ours for missing characters."""
    from matplotlib import rcParams

    settings: Mapping[Any, Any] = rcParams
    named = (settings[f"font.{name}"] if name in _GENERIC else [name] for name in settings["font.family"])
    return (*(name for names in named for name in names), *families())


@cache
def _characters(family: str) -> frozenset[int]:
    """The characters of a font; empty if it is not installed."""
    from matplotlib import font_manager

    try:
        path = font_manager.findfont(font_manager.FontProperties(family=[family]), fallback_to_default=False)
    except ValueError:
        return frozenset()
    return frozenset(font_manager.get_font(path).get_charmap())


def _can_draw(character: str) -> bool:
    """Whether any of these fonts has the character."""
    return any(ord(character) in _characters(family) for family in _font_order())


def drawable(texts: Iterable[str]) -> list[str]:
    """The texts with a box for each character that no font has. The first time, logs which font to install."""
    texts = list(texts)
    missing = {character for text in texts for character in text if not _can_draw(character)}
    shown = [
        "".join(_NEAREST.get(character, BOX) if character in missing else character for character in text)
        for text in texts
    ]
    if any(_is_cjk(character) for character in missing):
        _warn_once()
    return shown


def drawable_tokens(tokens: Iterable[str], start: int = 0) -> list[str]:
    """The tokens; a token with a character that no font has becomes its position, counted from `start`.

    Emoji stay if they can be drawn as images.

    >>> drawable_tokens(["cat", "\ue000"], start=7)
    ['cat', '#8']
    """
    tokens = list(tokens)
    shown = zip(tokens, drawable(map(without_emoji, tokens)), strict=True)
    named = (token if needs_emoji_image(token) else now for token, now in shown)
    return [
        f"#{start + at}" if BOX in without_emoji(now) and BOX not in token else now
        for at, (token, now) in enumerate(zip(tokens, named, strict=True))
    ]


def needs_emoji_image(token: str) -> bool:
    """Whether the token needs the emoji font, and no font lacks any of its characters."""
    missing = [character for character in token if not _can_draw(character)]
    return bool(missing) and all(map(has_emoji, missing))


def without_emoji(token: str) -> str:
    """The token with a letter of about the same width for each emoji drawn as an image."""
    return "".join("M" if not _can_draw(character) and has_emoji(character) else character for character in token)


def outline_fonts(token: str) -> dict[str, str]:
    """The font file of each character that an outline font has."""
    from matplotlib import font_manager

    found = {}
    for character in token:
        family = next((family for family in _font_order() if ord(character) in _characters(family)), None)
        if family is not None:
            found[character] = str(font_manager.findfont(font_manager.FontProperties(family=[family])))
    return found


def drawable_language(lang: Language) -> Language:
    """The language to write in: English if no font has Chinese. The first time, logs which font to install."""
    if lang == "zh" and not _can_draw("注"):
        _warn_once()
        return "en"
    return lang


def _is_cjk(character: str) -> bool:
    return "\u3000" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7af"


@cache
def _warn_once() -> None:
    _log.warning(say("plot-no-font"))


def text_style() -> dict[str, Any]:
    """Properties of every text: these fonts, and no mathematics, so that a token `$x$` is drawn as it is."""
    there = [
        family for family in _font_order() if _characters(family)
    ]  # matplotlib logs a warning for a missing family
    return {"family": list(dict.fromkeys(there)), "parse_math": False, "usetex": False}
