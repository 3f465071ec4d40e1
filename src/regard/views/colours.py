"""Scales from weights to lightness levels, shared by all views, and the colours of the terminal.

auto          square root, as most attention weights are small. If the first token receives a large share (a sink), or a
              few of many weights are far above the others, weights above a threshold are logarithmic: a sink does not
              darken the rest, and different weights still have different colours
linear, log   as named; log covers four powers of ten
renormalised  without the first token, the other weights of each row normalised to a sum of 1
hidden        without the first token, the other weights unchanged

Colours are viridis, or shading characters where there is no colour.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from rich.style import Style
from rich.text import Text

from regard.errors import ArgumentError
from regard.messages import Listed
from regard.trace.trace import ScaleName
from regard.views.labels import pad
from regard.views.picture import Picture

if TYPE_CHECKING:
    from regard.views.picture import Picture


SINK = 0.3
"""A first key with more than this share of all attention is reported as a sink,"""
TIMES_EVEN = 1.5
"""if it is also more than this multiple of its share in a head that attends evenly, which is large in short texts."""
NEGLIGIBLE = 0.1
"""Weights below this multiple of an even share are negligible if there are larger ones."""
DECADES = 4
MANY = 400
"""From this number of cells on, the largest 1 % are above the threshold."""
LOG_SHARE = 0.12
"""The share of the colours above the threshold: this much, and as much again for each power of ten."""
MOST_LOG_SHARE = 0.5
CEILINGS = (1.0, 3.0)
"""Ceilings are these times powers of ten, so that heads drawn separately are mostly comparable."""
TICKS = (1.0, 2.0, 5.0)
"""Ticks of a colour bar are these times powers of ten."""
_APART = 0.08
"""The minimum distance between ticks of a colour bar, in levels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The weight of the last colour, and how smaller weights map to levels."""

    ceiling: float
    clipped: bool = False
    """Whether weights above the ceiling share its colour."""
    name: ScaleName = "auto"
    log_threshold: float | None = None
    """The weight above which levels are logarithmic; None for the square root throughout."""

    @classmethod
    def of(cls, pictures: "Iterable[Picture]", ceiling: float | None = None) -> "Scale":
        """The scale of the pictures: up to the largest weight, rounded up, or up to the given ceiling."""
        drawn = list(pictures)
        name = drawn[0].scale if drawn else "auto"
        seen = _weights(one.cells for one in drawn)
        if not seen.size:
            return cls(ceiling or 1.0, name=name)
        highest = float(seen.max())
        top = rounded_up(highest) if ceiling is None else ceiling
        log_threshold = None
        if name not in ("linear", "log"):
            others = _highest(_beside_sinks(drawn) if name == "auto" else seen)
            if others >= NEGLIGIBLE / max(one.cells.shape[1] for one in drawn):
                has_threshold = others < min(highest, top) and (others / top) ** 0.5 < threshold_level(others, top)
                log_threshold = others if has_threshold else None
        return cls(top, top < highest, name, log_threshold)

    @property
    def threshold_level(self) -> float:
        """The level of the weight at the threshold; 1 without one."""
        return 1.0 if self.log_threshold is None else threshold_level(self.log_threshold, self.ceiling)

    def level(self, value: Any) -> Any:
        """The level of a weight, or of an array of weights, from 0 to 1."""
        share = np.clip(value / self.ceiling, 0.0, 1.0)
        if self.name == "linear":
            return share
        if self.name == "log":
            return np.clip(1 + np.log10(np.maximum(share, 1e-30)) / DECADES, 0.0, 1.0)
        if self.log_threshold is None:
            return np.sqrt(share)
        at, low = self.log_threshold / self.ceiling, self.threshold_level
        behind = low + (1 - low) * (1 - np.log(np.maximum(share, at)) / np.log(at))
        return np.where(share <= at, low * np.sqrt(share / at), behind)[()]

    def weight(self, level: float) -> float:
        """The weight of a level: the inverse of `level`."""
        if self.name == "log":
            return float(self.ceiling * 10 ** (DECADES * (level - 1)))
        if self.name == "linear":
            return self.ceiling * level
        low = self.threshold_level
        if self.log_threshold is None or level <= low:
            return (self.ceiling if self.log_threshold is None else self.log_threshold) * (level / low) ** 2
        return float(self.log_threshold * (self.ceiling / self.log_threshold) ** ((level - low) / (1 - low)))

    def swatches(self) -> list[float]:
        """The levels shown in a short legend; one more if there is a threshold."""
        return [0, 0.25, 0.5, 0.75, *([] if self.log_threshold is None else [0.875]), 1]

    def ticks(self) -> list[float]:
        """Round weights from 0 to the ceiling with distinguishable colours.

        >>> Scale(1.0).ticks()
        [0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
        """
        found = [self.ceiling]
        power = math.floor(math.log10(self.ceiling))
        steps = (float(f"{times:g}e{power - down}") for down in range(16) for times in reversed(TICKS))
        for weight in steps:
            if self.level(weight) < _APART:
                break
            if weight < self.ceiling and self.level(found[-1]) - self.level(weight) >= _APART:
                found.append(weight)
        return [0.0, *reversed(found)]


def threshold_level(log_threshold: float, ceiling: float) -> float:
    """The level at the threshold: higher if the range above it is smaller."""
    return 1 - min(MOST_LOG_SHARE, LOG_SHARE * (1 + math.log10(ceiling / log_threshold)))


def rounded_up(weight: float) -> float:
    """The weight rounded up to 1 or 3 times a power of ten; rounding errors are ignored.

    >>> rounded_up(0.93), rounded_up(0.17), rounded_up(0.012), rounded_up(1.0000001), rounded_up(0.3)
    (1.0, 0.3, 0.03, 1.0, 0.3)
    """
    power = math.floor(math.log10(weight))
    steps = (float(f"{times:g}e{power + up}") for up in (0, 1) for times in CEILINGS)
    return next(step for step in steps if weight <= step * (1 + 1e-6))


def chosen_scale(scale: Any) -> ScaleName:
    """The requested scale; None means auto. Raises ArgumentError with the choices for any other value."""
    if scale is None:
        return "auto"
    if scale not in get_args(ScaleName):
        raise ArgumentError("option-unknown", option="scale", asked=scale, choices=Listed(get_args(ScaleName)))
    return scale


def sink_bar(pictures: "Iterable[Picture]") -> float:
    """The share above which the first key counts as a sink in each of the pictures."""
    return max([SINK, *(TIMES_EVEN * one.even_share for one in pictures)])


def is_sink(share: float | None, bar: float) -> bool:
    """Whether the first key receives a large share."""
    return share is not None and share > bar


def _beside_sinks(pictures: "list[Picture]") -> np.ndarray:
    """The weights without the columns of sinks."""
    bar = sink_bar(pictures)
    return _weights(
        np.delete(one.cells, one.first_column, axis=1) if is_sink(one.first, bar) else one.cells for one in pictures
    )


def _highest(weights: np.ndarray) -> float:
    """The largest weight; of many weights the 99 % quantile; 0 if there are none."""
    if weights.size >= MANY:
        return float(np.quantile(weights, 0.99))
    return float(weights.max(initial=0.0))


def _weights(pictures: Iterable[np.ndarray]) -> np.ndarray:
    """The weights that get a colour of the scale: neither masked nor NaN."""
    return np.concatenate([np.zeros(0), *(cells[np.isfinite(cells) & (cells > 0)] for cells in pictures)])


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
