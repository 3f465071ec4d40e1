"""From a weight to a colour: viridis, whose lightness rises evenly and which colour-blind eyes can read.

Terminals of 256 colours get a scale of their own, picked by hand: the nearest of the 256 to each colour of viridis
neither keeps its order of lightness nor its hue.
"""

from functools import cache
from typing import Literal, NamedTuple

from rich.style import Style

RGB = tuple[int, int, int]
Depth = Literal["truecolor", "256"]

# The colour map of van der Walt and Smith (2015) at even steps; between them straight lines do.
_VIRIDIS: tuple[RGB, ...] = (
    (68, 1, 84),
    (72, 24, 106),
    (71, 45, 123),
    (66, 64, 134),
    (59, 82, 139),
    (51, 99, 141),
    (44, 114, 142),
    (38, 130, 142),
    (33, 145, 140),
    (31, 160, 136),
    (40, 174, 128),
    (63, 188, 115),
    (94, 201, 98),
    (132, 212, 75),
    (173, 220, 48),
    (216, 226, 25),
    (253, 231, 37),
)
# Numbers of the 256, each as light as viridis is there, or nearly.
_OF_256 = (53, 54, 54, 24, 24, 24, 30, 30, 30, 36, 36, 77, 113, 148, 184, 220)
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)


class Paint(NamedTuple):
    """A colour as eyes see it, and as rich spells it."""

    rgb: RGB
    name: str


@cache
def paint(level: float, depth: Depth = "truecolor") -> Paint:
    """The colour of a level from 0 to 1.

    >>> paint(0.0).rgb, paint(1.0).name, paint(1.0, "256").name
    ((68, 1, 84), '#fde725', 'color(220)')
    """
    if depth == "256":
        return _numbered(_OF_256[min(len(_OF_256) - 1, int(level * len(_OF_256)))])
    place = level * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    red, green, blue = (
        round(a + (b - a) * (place - low)) for a, b in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True)
    )
    return Paint((red, green, blue), f"#{red:02x}{green:02x}{blue:02x}")


def warning(depth: Depth = "truecolor") -> Paint:
    """Red, which viridis does not have: for what is no weight at all."""
    return _numbered(160) if depth == "256" else Paint((214, 39, 40), "#d62728")


def _numbered(number: int) -> Paint:
    """One of the 216 colours that start at number 16: six steps of red, green and blue each."""
    steps = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(number - 16, 36)
    green, blue = divmod(rest, 6)
    return Paint((steps[red], steps[green], steps[blue]), f"color({number})")


def contrast(a: RGB, b: RGB) -> float:
    """How well one can be read on the other, from 1 to 21 (WCAG 2.1).

    >>> round(contrast((0, 0, 0), (255, 255, 255)))
    21
    """
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _luminance(rgb: RGB) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# A rich Style remembers how it was first written, so each belongs to one depth: hence names, not RGB, in them.


@cache
def on(ground: Paint) -> Style:
    """Black or white text, whichever can be read better on the ground."""
    white = contrast(_WHITE, ground.rgb) > contrast(_BLACK, ground.rgb)
    dark, light = ("color(16)", "color(231)") if ground.name.startswith("color") else ("#000000", "#ffffff")
    return Style(color=light if white else dark, bgcolor=ground.name)


@cache
def halves(front: Paint, back: Paint | None) -> Style:
    """For ▀ or ▄: the half that is drawn, and the half that is left; None leaves it to the terminal."""
    return Style(color=front.name, bgcolor=back and back.name)
