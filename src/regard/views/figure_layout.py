"""How much room words take in a figure, and which of them fit: in inches, before matplotlib lays anything out.

Labels at full size first, then smaller ones, then fewer of them. Nothing is known here of what a map shows.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from rich.cells import cell_len

from regard.views.caption import flow
from regard.views.fonts import (
    draw_label,
    drawable,
    drawable_tokens,
    label_image,
    outlines_for,
    pictured,
    text_style,
    without_emoji,
)
from regard.views.heatmap import is_stretched
from regard.views.labels import ARROW, cut, visible
from regard.views.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_POINTS = 6.0
_LINE = 1.3
"""From one line to the next, in sizes of the font."""
_DIGIT = 0.64
"""How wide a digit is, in sizes of the font."""
_LETTER = 0.58
"""How wide a Latin letter is, in sizes of the font; a Chinese character is less than two of them."""
_WIDEST = 16
"""Columns of a token's label,"""
_WIDEST_PAIR = 24
"""and of one that names the token read and the one written."""

_WORDS = re.compile(r"[\u2e80-\uffef][，。；：、）]*|[^\s\u2e80-\uffef]+\s*|\s+")


class Room(NamedTuple):
    """Inches on the four sides of a map."""

    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, slots=True)
class Ticks:
    """What stands along one side of a map: every `step`-th label, or numbers where there are none."""

    labels: tuple[str, ...]
    points: float
    room: float
    """Inches that they take, away from the map."""
    step: int = 1
    upright: bool = False
    start: int = 0
    """The position of the first label."""

    def draw(self, ax: "Axes", side: str, inches: float) -> None:
        """Along the x or the y axis, which is so long."""
        from matplotlib.ticker import MaxNLocator, StrMethodFormatter

        axis = ax.xaxis if side == "x" else ax.yaxis
        if not self.labels:
            digits = len(f"{max(axis.get_view_interval()):.0f}")
            room = max(3.2, _LETTER * digits + 1) if side == "x" else 3.2
            most = max(1, min(9, int(inches / (room * self.points / 72))))
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
            axis.set_major_formatter(StrMethodFormatter("{x:.0f}"))  # not "+1e5" for all of them
            axis.set_tick_params(labelsize=self.points)
            return
        places = range(0, len(self.labels), self.step)
        style = {"fontsize": self.points, "rotation": 90 if self.upright else 0, **text_style()}
        pictures = [at for at in places if pictured(self.labels[at])]
        texts = ["" if at in pictures else self.labels[at] for at in places]
        axis.set_ticks([self.start + at for at in places], texts, **style)
        for at in pictures:
            label = self.labels[at]
            image = label_image(label, outlines_for(label))
            draw_label(ax, side, self.start + at, image, self.points, turned=self.upright and len(label) > 1)


def ticks(
    tokens: Sequence[str] | None,
    side: str,
    cell: float,
    size: str,
    longest: float = 9.0,
    start: int = 0,
    last: int = 0,
) -> Ticks:
    """The tokens along cells of so many inches, as large as `size` where they fit; none is longer than `longest`.

    `start` is the position of the first, and `last` where they end.
    """
    base = points_of(size)
    if not tokens or cell <= 0:
        return Ticks((), base, (max(3, len(str(last))) * _DIGIT if side == "y" else 1) * base / 72)
    most = {True: _WIDEST_PAIR, False: _WIDEST}
    widths = (min(most[ARROW in token], columns(longest, base)) for token in tokens)
    labels = drawable_tokens(map(cut, map(visible, tokens), widths), start)
    widest = max(text_width(label, base) for label in set(labels))
    if side == "x" and widest + _LETTER * base / 72 <= cell:
        return Ticks(tuple(labels), base, line(base), start=start)
    upright = side == "x" and widest > 1.1 * base / 72  # one Chinese character is as wide as high
    room = 72 * cell / _LINE  # the points of a font that fits
    points, least = min(base, max(room, _LEAST_POINTS)), min(base, _LEAST_POINTS)
    step = ceil(least / room) if room < least else 1
    return Ticks(tuple(labels), points, widest * points / base, step, upright, start)


def room_for_numbers(numbers: Iterable[str], points: float) -> float:
    """Inches beside a bar of colours for its numbers."""
    return (1 + max(4, *map(len, numbers))) * _DIGIT * points / 72


def cell_size(one: Picture, wide: float, high: float) -> tuple[float, float]:
    """How wide and how high one token is, where its map has so many inches: a square, unless it is stretched."""
    T, S = (max(1, each) for each in one.record.shape[2:])
    across, down = wide / S, high / T
    return (across, down) if is_stretched(T, S) else (min(across, down),) * 2


def figure_size() -> tuple[float, float] | None:
    """The caller's own `rcParams["figure.figsize"]`; None where it is matplotlib's, which knows of no tokens."""
    from matplotlib import rcParams, rcParamsDefault

    wide, high = rcParams["figure.figsize"]
    return None if [wide, high] == list(rcParamsDefault["figure.figsize"]) else (wide, high)


def points_of(size: Any) -> float:
    """A size as matplotlib names it, such as "medium", in points."""
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=size).get_size_in_points())


def text_width(text: str, points: float) -> float:
    """Inches, by the fonts that it is drawn with."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    style = FontProperties(family=text_style()["family"], size=points)
    return float(text_to_path.get_text_width_height_descent(without_emoji(text), style, ismath=False)[0]) / 72


def line(points: float, count: int = 1) -> float:
    """The height of so many lines, in inches."""
    return count * _LINE * points / 72


def columns(inches: float, points: float) -> int:
    """How many columns of text stand in so many inches."""
    return max(4, int(72 * inches / (_LETTER * points)))


def wrapped(pieces: Iterable[str], inches: float, points: float) -> str:
    """The pieces in lines of so many inches, broken between pieces, or inside one that is too long for a line."""
    width = columns(inches, points)
    parts = (part for piece in pieces for part in _broken(piece, width))
    return "\n".join(drawable(each.plain for each in flow(parts, width)))


def _broken(piece: str, width: int) -> list[str]:
    """The piece in parts of at most so many columns: between words, in Chinese between characters.

    >>> _broken("colour goes with the weight", 12), _broken("颜色与权重成正比", 10)
    (['colour goes', 'with the', 'weight'], ['颜色与权重', '成正比'])
    """
    parts = [""]
    for word in _WORDS.findall(piece):
        if cell_len(parts[-1] + word.rstrip()) > width:
            parts.append("")
        parts[-1] += word
    return [part.strip() for part in parts if part.strip()]


# --- an Axes of the caller's ------------------------------------------------------------------------------


_places: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""What an Axes had before it was shrunk, by its new grid: a second picture starts from the whole place again."""


def inches_of(ax: "Axes") -> tuple[float, float]:
    """How wide and how high its place is."""
    place, (wide, high) = ax.get_position(original=True), _whole_figure(ax)
    return float(place.width * wide), float(place.height * high)


def _whole_figure(ax: "Axes") -> tuple[float, float]:
    figure: Any = ax.get_figure()  # or a part of one, which is measured likewise
    return figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi


def free_around(ax: "Axes") -> Room | None:
    """Inches between its place and the next, or the edge; None where it has no place among others.

    What lies between two places belongs to the right one and to the lower one: words stand left of a map and over it.
    """
    spec = ax.get_subplotspec()
    if spec is None:
        return None
    wide, high = _whole_figure(ax)
    bottoms, tops, lefts, rights = spec.get_gridspec().get_grid_positions(ax.get_figure())  # type: ignore[arg-type]
    first, last, upper, lower = spec.colspan.start, spec.colspan.stop, spec.rowspan.start, spec.rowspan.stop
    return Room(
        left=float(lefts[first] - (rights[first - 1] if first else 0)) * wide,
        right=float(1 - rights[-1]) * wide if last == len(rights) else 0.0,
        bottom=float(bottoms[-1]) * high if lower == len(bottoms) else 0.0,
        top=float((bottoms[upper - 1] if upper else 1) - tops[upper]) * high,
    )


def shrink(ax: "Axes", by: Room) -> None:
    """Move the map inside its place, so that its words do not lie on the neighbours."""
    spec = ax.get_subplotspec()
    if spec is None or max(by) <= 0:
        return
    wide, high = inches_of(ax)
    inner = spec.subgridspec(
        3,
        3,
        width_ratios=_shares(by.left, by.right, wide),
        height_ratios=_shares(by.top, by.bottom, high),
        wspace=0,
        hspace=0,
    )
    _places[inner] = spec
    ax.set_subplotspec(inner[1, 1])


def restore(ax: "Axes") -> None:
    """Undo `shrink`."""
    spec = ax.get_subplotspec()
    if spec is not None and spec.get_gridspec() in _places:
        ax.set_subplotspec(_places[spec.get_gridspec()])


def _shares(before: float, after: float, whole: float) -> list[float]:
    """Inches before, of and after the map, which keeps a third of its place."""
    times = min(1.0, 2 / 3 * whole / max(before + after, 1e-9))
    return [before * times, whole - (before + after) * times, after * times]
