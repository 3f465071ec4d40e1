"""Fonts for matplotlib: one that has Chinese, and emoji drawn as small pictures by Pillow."""

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
"""How the files of such fonts begin, in small letters."""
_SIZES = (109, 128, 136, 137, 160, 96, 64)
"""Fonts of pixels have one size, and refuse all others."""
_HEIGHT = 1.25
"""Of a label, in sizes of the font."""
_PIXELS = 64
"""Of a label, in pixels."""
_AWAY = 5.0
"""Points from the map to a label, as of matplotlib's own."""


@cache
def emoji_font() -> tuple[Any, frozenset[int]] | None:
    """A font of coloured emoji as Pillow has it, and the characters in it; None where there is none."""
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
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


def has_emoji(sign: str) -> bool:
    """Whether the character can be drawn as a picture."""
    found = emoji_font()
    return found is not None and ord(sign) in found[1]


def label_image(text: str, outlines: Mapping[str, str], colour: tuple[int, int, int] = (0, 0, 0)) -> np.ndarray:
    """The text as a picture, rows × columns × RGBA.

    outlines    for each character that is no emoji, the file of a font that has it
    """
    from PIL import Image, ImageDraw, ImageFont

    found = emoji_font()
    assert found is not None
    emoji, size = found[0], found[0].size
    parts = [(sign, ImageFont.truetype(outlines[sign], size) if sign in outlines else emoji) for sign in text]
    widths = [max(1, round(font.getlength(sign))) for sign, font in parts]
    image = Image.new("RGBA", (sum(widths), round(_HEIGHT * size)), (255, 255, 255, 0))
    draw, left = ImageDraw.Draw(image), 0
    for (sign, font), wide in zip(parts, widths, strict=True):
        draw.text((left, image.height // 2), sign, font=font, fill=colour, anchor="lm", embedded_color=font is emoji)
        left += wide
    # Smaller by itself: matplotlib would leave out pixels.
    return np.asarray(image.resize((max(1, image.width * _PIXELS // image.height), _PIXELS), Image.Resampling.LANCZOS))


def draw_label(ax: "Axes", side: str, at: float, image: np.ndarray, points: float, *, turned: bool) -> None:
    """The picture as the label at a place of the x or the y axis, as high as text of so many points."""
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
"""Where a font lacks the sign of a control character but has the key for it."""
# Simplified Chinese first, then fonts that hold it among others.
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
"""Names that stand for a list of fonts, of which matplotlib itself would take only the first."""


@cache
def families() -> tuple[str, ...]:
    """The fonts to try for each character, in order; matplotlib's own comes last and is always there."""
    found = _with_chinese()
    if not found:
        _look_again()
        found = _with_chinese()
    return (*found, "DejaVu Sans")


def _with_chinese() -> list[str]:
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _CJK if name in there]


def _look_again() -> None:
    """matplotlib keeps a list of fonts on disk, and does not notice one that was installed after it was written."""
    from matplotlib import font_manager

    manager = font_manager.fontManager
    known = {font.fname for font in manager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            with contextlib.suppress(Exception):  # a file that is no font it can read
                manager.addfont(path)


def _in_order() -> tuple[str, ...]:
    """The caller's fonts (`rcParams["font.family"]`), then ours, which have what theirs lack."""
    from matplotlib import rcParams

    settings: Mapping[Any, Any] = rcParams
    named = (settings[f"font.{name}"] if name in _GENERIC else [name] for name in settings["font.family"])
    return (*(name for names in named for name in names), *families())


@cache
def _characters(family: str) -> frozenset[int]:
    """The characters that a font can draw; none where it is not installed."""
    from matplotlib import font_manager

    try:
        path = font_manager.findfont(font_manager.FontProperties(family=[family]), fallback_to_default=False)
    except ValueError:
        return frozenset()
    return frozenset(font_manager.get_font(path).get_charmap())


def _has(sign: str) -> bool:
    """Whether any of these fonts can draw the character."""
    return any(ord(sign) in _characters(family) for family in _in_order())


def drawable(texts: Iterable[str]) -> list[str]:
    """The texts with a box for each character that no font has; the first time, the log says what to install."""
    texts = list(texts)
    missing = {sign for text in texts for sign in text if not _has(sign)}
    shown = ["".join(_NEAREST.get(sign, BOX) if sign in missing else sign for sign in text) for text in texts]
    if any(_is_cjk(sign) for sign in missing):
        _say_once()
    return shown


def drawable_tokens(tokens: Iterable[str], start: int = 0) -> list[str]:
    """The tokens, or the position of one that holds a character which no font has; that of the first is `start`.

    Emoji stay, where they can be drawn as pictures.

    >>> drawable_tokens(["cat", "\ue000"], start=7)
    ['cat', '#8']
    """
    tokens = list(tokens)
    shown = zip(tokens, drawable(map(without_emoji, tokens)), strict=True)
    named = (token if pictured(token) else now for token, now in shown)
    return [
        f"#{start + at}" if BOX in without_emoji(now) and BOX not in token else now
        for at, (token, now) in enumerate(zip(tokens, named, strict=True))
    ]


def pictured(token: str) -> bool:
    """Whether it holds emoji that only a font of pictures has, and nothing that no font has."""
    missing = [sign for sign in token if not _has(sign)]
    return bool(missing) and all(map(has_emoji, missing))


def without_emoji(token: str) -> str:
    """The token with a letter about as wide in place of each emoji that is drawn as a picture."""
    return "".join("M" if not _has(sign) and has_emoji(sign) else sign for sign in token)


def outlines_for(token: str) -> dict[str, str]:
    """For each character of a token that a font of outlines has, the file of that font."""
    from matplotlib import font_manager

    found = {}
    for sign in token:
        family = next((family for family in _in_order() if ord(sign) in _characters(family)), None)
        if family is not None:
            found[sign] = str(font_manager.findfont(font_manager.FontProperties(family=[family])))
    return found


def spoken(lang: Language) -> Language:
    """The language to write in: English where no font has Chinese; the first time, the log says what to install."""
    if lang == "zh" and not _has("注"):
        _say_once()
        return "en"
    return lang


def _is_cjk(sign: str) -> bool:
    return "\u3000" <= sign <= "\u9fff" or "\uac00" <= sign <= "\ud7af"


@cache
def _say_once() -> None:
    _log.warning(say("plot-no-font"))


def text_style() -> dict[str, Any]:
    """What every text of ours is drawn with: these fonts, and a token `$x$` as it is, not as mathematics."""
    there = [family for family in _in_order() if _characters(family)]  # matplotlib logs of any other
    return {"family": list(dict.fromkeys(there)), "parse_math": False, "usetex": False}
