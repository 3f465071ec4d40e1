"""Fonts for matplotlib: which installed ones have Chinese, and what to write where none has a character.

matplotlib warns of every glyph that it cannot draw, at drawing time and in the caller's own call, and draws a box; so
what cannot be drawn is replaced beforehand: a token by its position, our own words by English. rcParams are never
touched: fonts are given to each text.
"""

import logging
from collections.abc import Iterable
from functools import cache
from typing import Any

from regard.words import Language, say

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


@cache
def families() -> tuple[str, ...]:
    """The fonts to try for each character, in order; matplotlib's own comes last and is always there."""
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return (*(name for name in _CJK if name in there), "DejaVu Sans")


@cache
def _has() -> frozenset[int]:
    """The characters that these fonts can draw."""
    from matplotlib import font_manager

    codes: set[int] = set()
    for family in families():
        path = font_manager.findfont(font_manager.FontProperties(family=[family]), fallback_to_default=False)
        codes.update(font_manager.get_font(path).get_charmap())
    return frozenset(codes)


def drawable(texts: Iterable[str]) -> list[str]:
    """The texts with a box for each character that no font has; the first time, the log says what to install."""
    there, texts = _has(), list(texts)
    shown = ["".join(sign if ord(sign) in there else _NEAREST.get(sign, BOX) for sign in text) for text in texts]
    if any(_is_cjk(sign) and ord(sign) not in there for text in texts for sign in text):
        _say_once()
    return shown


def drawable_tokens(tokens: Iterable[str]) -> list[str]:
    """The tokens, or the position of one that holds a character which no font has.

    >>> drawable_tokens(["cat", "\ue000"])
    ['cat', '#1']
    """
    tokens = list(tokens)
    return [f"#{at}" if BOX in shown and BOX not in tokens[at] else shown for at, shown in enumerate(drawable(tokens))]


def spoken(lang: Language) -> Language:
    """The language to write in: English where no font has Chinese; the first time, the log says what to install."""
    if lang == "zh" and ord("注") not in _has():
        _say_once()
        return "en"
    return lang


def _is_cjk(sign: str) -> bool:
    return "\u3000" <= sign <= "\u9fff" or "\uac00" <= sign <= "\ud7af"


@cache
def _say_once() -> None:
    _log.warning(say("plot-no-font"))


def text_style() -> dict[str, Any]:
    """What every text of ours is drawn with: our fonts, and a token `$x$` as it is, not as mathematics."""
    return {"family": list(families()), "parse_math": False, "usetex": False}
