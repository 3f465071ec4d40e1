"""From weights to coloured cells: viridis, or shades where the terminal has no colour."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from rich.style import Style
from rich.text import Text

from regard.views.labels import pad
from regard.views.picture import Picture
from regard.views.scales import Scale

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


SHADES = " ░▒▓█"
HIDDEN, BAD, BLIND, PROMPT = "·", "!", "∅", "╌"
DIM, BOLD = Style(dim=True), Style(bold=True)
_STEPS = 255


@dataclass(frozen=True, slots=True)
class Ink:
    """Which colours there are, and how light a weight is."""

    depth: Depth | None
    """Of the colours; None for shades."""
    scale: Scale
    places: int = 0
    """Numbers are weights times ten to the power of this, where not 0: weights of long texts are all small."""

    @classmethod
    def for_pictures(cls, pictures: Iterable[Picture], depth: Depth | None) -> "Ink":
        """Scaled to what is drawn."""
        return cls(depth, Scale.of(pictures))

    def level(self, value: float) -> float:
        """From 0 to 1, how strong the ink is."""
        return float(self.scale.level(value))

    def ground(self, value: float) -> Paint | None:
        """The colour of a weight; None for one that is hidden, and where there are no colours."""
        if self.depth is None or value == 0:
            return None
        if value != value:
            return warning(self.depth)
        return paint(round(self.level(value) * _STEPS) / _STEPS, self.depth)

    def shade(self, value: float) -> str:
        """The character of a weight."""
        if value != value:
            return BAD
        return HIDDEN if value == 0 else SHADES[min(len(SHADES) - 1, int(self.level(value) * len(SHADES)))]

    def tile(self, line: Text, value: float, width: int, bare: bool = False) -> None:
        """One weight, so many columns wide, with its number where there is room for one; `bare`: colour only."""
        ground = self.ground(value)
        content = "" if bare else number(value, self.places) if width > 3 else self._shading(value, width, ground)
        if width > 3 and self.depth is None:
            content = (self.shade(value) if value else " ") + content
        style = on(ground) if ground else DIM if value == 0 else Style.null()
        line.append(pad(content, width, "middle"), style)

    def _shading(self, value: float, width: int, ground: Paint | None) -> str:
        """What fills a tile without a number: its colour does, or a shade."""
        shade = self.shade(value)
        return "" if ground else shade if shade == HIDDEN else shade * width

    def pixels(self, line: Text, upper: float, lower: float) -> None:
        """Two weights in one column, one above the other."""
        above, below = self.ground(upper), self.ground(lower)
        if above is not None:
            line.append("▀", halves(above, below))
        elif below is not None:
            line.append("▄", halves(below, None))
        else:
            line.append(" ")

    def legend(self, width: int) -> list[Text]:
        """What the colours, or the shades, stand for, in lines of so many columns."""
        lines = [Text()]
        for text, style in self._swatches():
            needed = text if self.depth else text.rstrip()
            if lines[-1].cell_len + len(needed) > width:
                lines.append(Text())
            lines[-1].append(text, style)
        for line in lines if self.depth is None else []:
            line.rstrip()
        return lines

    def _swatches(self) -> list[tuple[str, Style]]:
        if self.depth is None:
            lowest = [(shade, self.scale.weight(i / len(SHADES))) for i, shade in enumerate(SHADES)]
            return [(f"{shade} ≥ {short(value)}   ", Style.null()) for shade, value in lowest[1:]]
        swatches = []
        for level in self.scale.swatches():
            at_least, at_most = level == 1 and self.scale.clipped, level == 0 and self.scale.name == "log"
            more = "≥ " if at_least else "≤ " if at_most else ""
            text = f" {more}{short(self.scale.weight(level))} "
            swatches.append((pad(text, max(7, len(text)), "middle"), on(paint(level, self.depth))))
        return swatches


def places_for(highest: float) -> int:
    """By which power of ten weights are multiplied, so that two figures of the highest are seen in three columns.

    >>> [places_for(x) for x in (1.0, 0.1, 0.04, 0.0012, 0.0002, 1.4e-5, 0.0)]
    [0, 0, 3, 3, 5, 5, 0]
    """
    if highest >= _SMALL or highest <= 0.0:
        return 0
    return next((places for places in range(3, 16, 2) if highest * 10**places >= 1), 15)


_SMALL = 0.1
"""Where no weight reaches it, two figures behind the point say too little."""


def number(value: float, places: int = 0) -> str:
    """A weight in three columns, times ten to the power of `places`.

    >>> [number(x) for x in (0.0, 0.4, 0.996, 1.0, 0.001)]
    [' · ', '.40', '1.0', '1.0', '.00']
    >>> [number(x, places=3) for x in (0.0, 0.04, 0.00123, 0.00001)]
    [' · ', ' 40', '1.2', '0.0']
    """
    if value != value:
        return "nan"
    if value == 0:
        return f" {HIDDEN} "
    if places:
        small = max(0.0, 10**places * value)
        return f"{small:.1f}" if small < 9.95 else f"{small:3.0f}"
    return "1.0" if value >= 0.995 else f"{max(0.0, value):.2f}"[1:]


def short(value: float) -> str:
    """A weight with two figures that count, however small.

    >>> [short(x) for x in (0.0, 0.25, 1.0, 0.00123)]
    ['0', '.25', '1', '.0012']
    """
    text = f"{value:.2g}"
    return text[1:] if text.startswith("0.") else text
