"""Colours of weights in the terminal: viridis, or shading characters without colour."""

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

# The colour map of van der Walt and Smith (2015) at even steps; colours in between are interpolated linearly.
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
# Signed differences at even steps: blue below 0, orange above, near white at 0. People who do not see red or green tell
# blue from orange; both ends are equally dark.
_DIVERGING: tuple[RGB, ...] = (
    (8, 48, 107),
    (33, 102, 172),
    (103, 160, 204),
    (178, 208, 230),
    (245, 245, 245),
    (250, 205, 150),
    (230, 145, 56),
    (186, 94, 8),
    (110, 50, 5),
)
# Numbers in the 256-colour palette, with nearly the same lightness as viridis.
_OF_256 = (53, 54, 54, 24, 24, 24, 30, 30, 30, 36, 36, 77, 113, 148, 184, 220)
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)


class TerminalColour(NamedTuple):
    """A colour as RGB and by its name in rich."""

    rgb: RGB
    name: str


@cache
def viridis(level: float, depth: Depth = "truecolor") -> TerminalColour:
    """The viridis colour of a level from 0 to 1.

    >>> viridis(0.0).rgb, viridis(1.0).name, viridis(1.0, "256").name
    ((68, 1, 84), '#fde725', 'color(220)')
    """
    if depth == "256":
        return _numbered(_OF_256[min(len(_OF_256) - 1, int(level * len(_OF_256)))])
    red, green, blue = _between(_VIRIDIS, level)
    return TerminalColour((red, green, blue), f"#{red:02x}{green:02x}{blue:02x}")


def diverging(level: float) -> RGB:
    """The colour of a signed difference, from −1 to 1; 0 is near white.

    >>> diverging(-1.0), diverging(0.0), diverging(1.0)
    ((8, 48, 107), (245, 245, 245), (110, 50, 5))
    """
    return _between(_DIVERGING, (level + 1) / 2)


def _between(colours: tuple[RGB, ...], level: float) -> RGB:
    """The colour at a level from 0 to 1, interpolated linearly."""
    place = level * (len(colours) - 1)
    low = min(int(place), len(colours) - 2)
    red, green, blue = (round(a + (b - a) * (place - low)) for a, b in zip(colours[low], colours[low + 1], strict=True))
    return red, green, blue


def nan_colour(depth: Depth = "truecolor") -> TerminalColour:
    """Red, which viridis does not contain: the colour of NaN."""
    return _numbered(160) if depth == "256" else TerminalColour((214, 39, 40), "#d62728")


def _numbered(number: int) -> TerminalColour:
    """One of the 216 colours from number 16 on: six levels each of red, green and blue."""
    steps = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(number - 16, 36)
    green, blue = divmod(rest, 6)
    return TerminalColour((steps[red], steps[green], steps[blue]), f"color({number})")


def contrast(a: RGB, b: RGB) -> float:
    """The contrast ratio of two colours, from 1 to 21 (WCAG 2.1).

    >>> round(contrast((0, 0, 0), (255, 255, 255)))
    21
    """
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def needs_white_text(background: RGB) -> bool:
    """Whether white text has more contrast with the background than black text."""
    return contrast(_WHITE, background) > contrast(_BLACK, background)


def _luminance(rgb: RGB) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# A rich Style caches its first rendering, so each Style belongs to one colour depth: use names, not RGB.


@cache
def text_on(background: TerminalColour) -> Style:
    """Black or white text, whichever has more contrast with the background."""
    white = needs_white_text(background.rgb)
    dark, light = ("color(16)", "color(231)") if background.name.startswith("color") else ("#000000", "#ffffff")
    return Style(color=light if white else dark, bgcolor=background.name)


@cache
def half_blocks(front: TerminalColour, back: TerminalColour | None) -> Style:
    """The style of ▀ or ▄: `front` colours the drawn half, `back` the other; None is the terminal's background."""
    return Style(color=front.name, bgcolor=back and back.name)


SHADES = " ░▒▓█"
MASKED, NAN, FULLY_MASKED, PROMPT = "·", "!", "∅", "╌"
DIM, BOLD = Style(dim=True), Style(bold=True)
_STEPS = 255


@dataclass(frozen=True, slots=True)
class CellPainter:
    """Draws weights as terminal cells by a scale and a colour depth."""

    depth: Depth | None
    """The colour depth; None draws shading characters."""
    scale: Scale
    places: int = 0
    """The power of ten that printed weights are multiplied by. In long texts all weights are small."""

    @classmethod
    def for_pictures(cls, pictures: Iterable[Picture], depth: Depth | None) -> "CellPainter":
        """A painter with a scale for these pictures."""
        return cls(depth, Scale.of(pictures))

    def level(self, value: float) -> float:
        """The lightness of a weight, from 0 to 1."""
        return float(self.scale.level(value))

    def background(self, value: float) -> TerminalColour | None:
        """The colour of a weight; None for a masked weight (0) and without colour."""
        if self.depth is None or value == 0:
            return None
        if value != value:
            return nan_colour(self.depth)
        return viridis(round(self.level(value) * _STEPS) / _STEPS, self.depth)

    def shade(self, value: float) -> str:
        """The shading character of a weight."""
        if value != value:
            return NAN
        return MASKED if value == 0 else SHADES[min(len(SHADES) - 1, int(self.level(value) * len(SHADES)))]

    def tile(self, line: Text, value: float, width: int, bare: bool = False) -> None:
        """Append one weight, `width` columns wide, with its number if it fits. `bare`: colour only."""
        background = self.background(value)
        content = "" if bare else number(value, self.places) if width > 3 else self._shading(value, width, background)
        if width > 3 and self.depth is None:
            content = (self.shade(value) if value else " ") + content
        style = text_on(background) if background else DIM if value == 0 else Style.null()
        line.append(pad(content, width, "middle"), style)

    def _shading(self, value: float, width: int, background: TerminalColour | None) -> str:
        """The content of a tile without a number: empty with colour, else shading characters."""
        shade = self.shade(value)
        return "" if background else shade if shade == MASKED else shade * width

    def pixels(self, line: Text, upper: float, lower: float) -> None:
        """Append two weights in one column, one above the other."""
        above, below = self.background(upper), self.background(lower)
        if above is not None:
            line.append("▀", half_blocks(above, below))
        elif below is not None:
            line.append("▄", half_blocks(below, None))
        else:
            line.append(" ")

    def legend(self, width: int) -> list[Text]:
        """The legend of the colours or shades, in lines of at most `width` columns."""
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
            swatches.append((pad(text, max(7, len(text)), "middle"), text_on(viridis(level, self.depth))))
        return swatches


def places_for(highest: float) -> int:
    """The power of ten that makes two digits of the largest weight visible in three columns.

    >>> [places_for(x) for x in (1.0, 0.1, 0.04, 0.0012, 0.0002, 1.4e-5, 0.0)]
    [0, 0, 3, 3, 5, 5, 0]
    """
    if highest >= _SMALL or highest <= 0.0:
        return 0
    return next((places for places in range(3, 16, 2) if highest * 10**places >= 1), 15)


_SMALL = 0.1
"""If all weights are smaller than this, two decimals are too few."""


def number(value: float, places: int = 0) -> str:
    """A weight in three columns, multiplied by ten to the power of `places`.

    >>> [number(x) for x in (0.0, 0.4, 0.996, 1.0, 0.001)]
    [' · ', '.40', '1.0', '1.0', '.00']
    >>> [number(x, places=3) for x in (0.0, 0.04, 0.00123, 0.00001)]
    [' · ', ' 40', '1.2', '0.0']
    """
    if value != value:
        return "nan"
    if value == 0:
        return f" {MASKED} "
    if places:
        small = max(0.0, 10**places * value)
        return f"{small:.1f}" if small < 9.95 else f"{small:3.0f}"
    return "1.0" if value >= 0.995 else f"{max(0.0, value):.2f}"[1:]


def short(value: float) -> str:
    """A weight with two significant digits.

    >>> [short(x) for x in (0.0, 0.25, 1.0, 0.00123)]
    ['0', '.25', '1', '.0012']
    """
    text = f"{value:.2g}"
    return text[1:] if text.startswith("0.") else text
