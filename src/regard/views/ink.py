"""Ink: how weights become coloured cells, or shades where there is no colour.

How light a weight is, its scale says; the legend says what a colour means. A weight of exactly 0 gets no ink at all:
it was hidden, which is not the same as small.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from regard.views.colours import Depth, Paint, halves, on, paint, warning
from regard.views.labels import pad
from regard.views.picture import Picture
from regard.views.scales import Scale

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
