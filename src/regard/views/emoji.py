"""Emoji in matplotlib, which draws outlines only: a label that holds one becomes a small picture, made by Pillow.

Systems have their emoji in a font of coloured pictures. Where there is none, nothing is drawn here, and the token is
named by its position, as any other that no font has.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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
