"""One head in a matplotlib figure: its cells and colours, and text sizes and labels that fit, in inches.

Sizes are computed before matplotlib arranges the figure: labels start at full size, then get smaller, then fewer.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from rich.cells import cell_len

from regard.errors import ArgumentError
from regard.messages import language, say
from regard.views import caption
from regard.views.caption import wrap_pieces
from regard.views.colours import Scale
from regard.views.fonts import (
    draw_label,
    drawable,
    drawable_tokens,
    label_image,
    needs_emoji_image,
    outline_fonts,
    text_style,
    without_emoji,
)
from regard.views.labels import ARROW, cut, printable_label
from regard.views.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LEAST_POINTS = 6.0
_LINE = 1.3
"""Line spacing, in font sizes."""
_DIGIT = 0.64
"""The width of a digit, in font sizes."""
_LETTER = 0.58
"""The width of a Latin letter, in font sizes; a Chinese character is narrower than two of them."""
_WIDEST = 16
"""The maximum columns of a token label."""
_WIDEST_PAIR = 24
"""The maximum columns of a label with the token read and the token written."""

_WORDS = re.compile(r"[\u2e80-\uffef][，。；：、）]*|[^\s\u2e80-\uffef]+\s*|\s+")


class Margins(NamedTuple):
    """Inches on the four sides of a map."""

    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, slots=True)
class Ticks:
    """The labels along one side of a map: every `step`-th token, or positions if there are none."""

    labels: tuple[str, ...]
    points: float
    thickness: float
    """Inches that the labels need, perpendicular to the axis."""
    step: int = 1
    upright: bool = False
    start: int = 0
    """The position of the first label."""

    def draw(self, ax: "Axes", side: str, inches: float) -> None:
        """Draw the labels along the x or y axis of this length in inches."""
        from matplotlib.ticker import MaxNLocator, StrMethodFormatter

        axis = ax.xaxis if side == "x" else ax.yaxis
        if not self.labels:
            digits = len(f"{max(axis.get_view_interval()):.0f}")
            needed = max(3.2, _LETTER * digits + 1) if side == "x" else 3.2
            most = max(1, min(9, int(inches / (needed * self.points / 72))))
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
            axis.set_major_formatter(StrMethodFormatter("{x:.0f}"))  # no common offset such as "+1e5"
            axis.set_tick_params(labelsize=self.points)
            return
        places = range(0, len(self.labels), self.step)
        style = {"fontsize": self.points, "rotation": 90 if self.upright else 0, **text_style()}
        pictures = [at for at in places if needs_emoji_image(self.labels[at])]
        texts = ["" if at in pictures else self.labels[at] for at in places]
        axis.set_ticks([self.start + at for at in places], texts, **style)
        for at in pictures:
            label = self.labels[at]
            image = label_image(label, outline_fonts(label))
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
    """The labels of tokens in cells of `cell` inches, at font size `size` if they fit, each at most `longest` inches.

    `start` is the position of the first token and `last` that of the end.
    """
    base = points_of(size)
    if not tokens or cell <= 0:
        return Ticks((), base, (max(3, len(str(last))) * _DIGIT if side == "y" else 1) * base / 72)
    most = {True: _WIDEST_PAIR, False: _WIDEST}
    widths = (min(most[ARROW in token], text_columns(longest, base)) for token in tokens)
    labels = drawable_tokens(map(cut, map(printable_label, tokens), widths), start)
    widest = max(text_width(label, base) for label in set(labels))
    if side == "x" and widest + _LETTER * base / 72 <= cell:
        return Ticks(tuple(labels), base, line_height(base), start=start)
    upright = side == "x" and widest > 1.1 * base / 72  # a Chinese character is as wide as it is high
    fitting = 72 * cell / _LINE  # the font size that fits, in points
    points, least = min(base, max(fitting, _LEAST_POINTS)), min(base, _LEAST_POINTS)
    step = ceil(least / fitting) if fitting < least else 1
    return Ticks(tuple(labels), points, widest * points / base, step, upright, start)


def numbers_width(numbers: Iterable[str], points: float) -> float:
    """The width in inches of the numbers beside a colour bar."""
    return (1 + max(4, *map(len, numbers))) * _DIGIT * points / 72


def cell_size(one: Picture, wide: float, high: float) -> tuple[float, float]:
    """The width and height of one token in a map of this size: a square, unless the map is stretched."""
    T, S = (max(1, each) for each in one.record.shape[2:])
    across, down = wide / S, high / T
    return (across, down) if is_stretched(T, S) else (min(across, down),) * 2


def figure_size() -> tuple[float, float] | None:
    """The caller's `rcParams["figure.figsize"]`; None if it is matplotlib's default, which does not fit the tokens."""
    from matplotlib import rcParams, rcParamsDefault

    wide, high = rcParams["figure.figsize"]
    return None if [wide, high] == list(rcParamsDefault["figure.figsize"]) else (wide, high)


def points_of(size: Any) -> float:
    """A matplotlib font size such as "medium", in points."""
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=size).get_size_in_points())


def text_width(text: str, points: float) -> float:
    """The width of the text in inches, in the fonts that it is drawn with."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    style = FontProperties(family=text_style()["family"], size=points)
    return float(text_to_path.get_text_width_height_descent(without_emoji(text), style, ismath=False)[0]) / 72


def line_height(points: float, count: int = 1) -> float:
    """The height of `count` lines, in inches."""
    return count * _LINE * points / 72


def text_columns(inches: float, points: float) -> int:
    """The number of text columns in this many inches."""
    return max(4, int(72 * inches / (_LETTER * points)))


def wrapped(pieces: Iterable[str], inches: float, points: float) -> str:
    """The pieces in lines of this many inches, broken between pieces, or within a piece that is longer than a line."""
    width = text_columns(inches, points)
    parts = (part for piece in pieces for part in _split_piece(piece, width))
    return "\n".join(drawable(each.plain for each in wrap_pieces(parts, width)))


def _split_piece(piece: str, width: int) -> list[str]:
    """The piece in parts of at most `width` columns: broken between words, in Chinese between characters.

    >>> _split_piece("colour is proportional to the weight", 15), _split_piece("颜色与权重成正比", 10)
    (['colour is', 'proportional to', 'the weight'], ['颜色与权重', '成正比'])
    """
    parts = [""]
    for word in _WORDS.findall(piece):
        if cell_len(parts[-1] + word.rstrip()) > width:
            parts.append("")
        parts[-1] += word
    return [part.strip() for part in parts if part.strip()]


# --- Axes of the caller ----------------------------------------------------------------------------------


_original_places: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The subplot spec of an Axes before `shrink`, by its new grid, so that a second picture starts from the full area."""


def inches_of(ax: "Axes") -> tuple[float, float]:
    """The width and height of the area of the Axes."""
    place, (wide, high) = ax.get_position(original=True), _whole_figure(ax)
    return float(place.width * wide), float(place.height * high)


def _whole_figure(ax: "Axes") -> tuple[float, float]:
    figure: Any = ax.get_figure()  # or a subfigure, which has the same attributes
    return figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi


def free_space(ax: "Axes") -> Margins | None:
    """Inches between the area of the Axes and the next one, or the edge; None if the Axes is not in a grid.

    The gap between two areas belongs to the right and to the lower one: labels are left of a map, titles above it.
    """
    spec = ax.get_subplotspec()
    if spec is None:
        return None
    wide, high = _whole_figure(ax)
    bottoms, tops, lefts, rights = spec.get_gridspec().get_grid_positions(ax.get_figure())  # type: ignore[arg-type]
    first, last, upper, lower = spec.colspan.start, spec.colspan.stop, spec.rowspan.start, spec.rowspan.stop
    return Margins(
        left=float(lefts[first] - (rights[first - 1] if first else 0)) * wide,
        right=float(1 - rights[-1]) * wide if last == len(rights) else 0.0,
        bottom=float(bottoms[-1]) * high if lower == len(bottoms) else 0.0,
        top=float((bottoms[upper - 1] if upper else 1) - tops[upper]) * high,
    )


def shrink(ax: "Axes", by: Margins) -> None:
    """Shrink the map within its area, so that its labels do not overlap the neighbours."""
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
    _original_places[inner] = spec
    ax.set_subplotspec(inner[1, 1])


def restore(ax: "Axes") -> None:
    """Undo `shrink`."""
    spec = ax.get_subplotspec()
    if spec is not None and spec.get_gridspec() in _original_places:
        ax.set_subplotspec(_original_places[spec.get_gridspec()])


def _shares(before: float, after: float, whole: float) -> list[float]:
    """Inches before, of and after the map, which keeps at least a third of its area."""
    times = min(1.0, 2 / 3 * whole / max(before + after, 1e-9))
    return [before * times, whole - (before + after) * times, after * times]


FLATTEST = 0.25
"""A map flatter, or narrower, than this is stretched."""
_MASKED, _NAN = "#eeeeee", "#d62728"


@dataclass(frozen=True, slots=True)
class PlotOptions:
    """Plot options of the caller: the weight of the last colour, the colour map, and whether to draw a colour bar.

    scale   a given scale, such as the one shared by all frames of a film
    """

    vmax: float | None = None
    cmap: Any = None
    bar: bool = True
    scale: Scale | None = None

    def __post_init__(self) -> None:
        from matplotlib import colormaps
        from matplotlib.colors import Colormap

        if self.vmax is not None and not (isinstance(self.vmax, int | float | np.number) and 0 < self.vmax < math.inf):
            raise ArgumentError("plot-vmax", asked=self.vmax)
        if not (self.cmap is None or isinstance(self.cmap, Colormap) or self.cmap in list(colormaps)):
            raise ArgumentError("plot-cmap", asked=self.cmap)

    def scale_of(self, pictures: Iterable[Picture]) -> Scale:
        """The scale of these pictures."""
        return self.scale or Scale.of(pictures, self.vmax)

    @property
    def palette(self) -> Any:
        """The colour map, with one more colour for masked cells and one for NaN."""
        from matplotlib import colormaps
        from matplotlib.colors import Colormap

        cmap = self.cmap if isinstance(self.cmap, Colormap) else colormaps[self.cmap or "viridis"]
        return cmap.with_extremes(under=_MASKED, bad=_NAN)


def draw_cells(ax: "Axes", one: Picture, scale: Scale, options: PlotOptions) -> Any:
    """Draw the cells in units of tokens. Returns None if there is nothing to draw."""
    if not one.cells.size:
        return None
    R, C = one.cells.shape
    top, left = (first - 0.5 for first in one.origin)
    # The last cells may cover fewer tokens: draw the full image and let the axes end with the tokens.
    extent = (left, left + C * one.wide, top + R * one.high, top)
    # Masked cells are below the scale and get no colour of it; the smallest weights do.
    lowest = scale.weight(0.0)
    below = lowest / 2 if lowest else -1.0  # LogNorm treats values that are not positive as invalid
    cells = np.where(one.cells == 0, below, np.maximum(one.cells, lowest))
    image = ax.imshow(cells, cmap=options.palette, norm=_norm(scale, lowest), extent=extent, interpolation="nearest")
    T, S = one.record.shape[2:]
    ax.set_xlim(left, left + S)
    ax.set_ylim(top + T, top)
    if one.record.prompt is not None and 0 < one.record.prompt < T:
        ax.axhline(top + one.record.prompt, color=_NAN, linewidth=1, linestyle="--")
    if is_stretched(T, S):
        ax.set_aspect("auto")
    return image


def _norm(scale: Scale, lowest: float) -> Any:
    """The scale as a matplotlib norm."""
    from matplotlib.colors import LogNorm, Normalize, PowerNorm

    if scale.name == "log":
        return LogNorm(vmin=lowest, vmax=scale.ceiling)
    if scale.name == "linear":
        return Normalize(0, scale.ceiling)
    return PowerNorm(0.5, vmin=0, vmax=scale.ceiling) if scale.log_threshold is None else _norm_with_threshold(scale)


def _norm_with_threshold(scale: Scale) -> Any:
    """matplotlib has no norm that switches from square root to logarithm."""
    from matplotlib.colors import Normalize

    class NormWithThreshold(Normalize):
        """Maps weights to levels; masked cells stay below 0."""

        def __call__(self, value: Any, clip: bool | None = None) -> Any:
            cells: Any = np.ma.asarray(value, float)
            return np.ma.array(np.where(cells.data < 0, -1.0, scale.level(cells.data)), mask=cells.mask)

        def inverse(self, value: Any) -> Any:
            return np.vectorize(scale.weight, otypes=[float])(value)

    return NormWithThreshold(0, scale.ceiling)


def draw_bar(figure: Any, image: Any, scale: Scale, **where: Any) -> Any:
    """The colour bar: round weights as ticks, and a pointed end if larger weights share the last colour."""
    bar = figure.colorbar(image, extend="max" if scale.clipped else "neither", **where)
    if scale.name not in ("linear", "log"):
        bar.set_ticks(scale.ticks(), labels=bar_numbers(scale))
        bar.minorticks_off()
    return bar


def bar_numbers(scale: Scale) -> list[str]:
    """The tick labels of the colour bar."""
    return [f"{weight:g}" for weight in scale.ticks()]


def is_stretched(T: int, S: int) -> bool:
    """Whether cells are not square: square cells of such a map would be too small."""
    return max(T, S) > min(T, S) / FLATTEST


def colour_bar_label(one: Picture, scale: Scale) -> list[str]:
    """The label of the colour bar."""
    root = [] if one.scale in ("linear", "log") else [say("plot-scale-root")]
    threshold = (
        [] if scale.log_threshold is None else [say("plot-scale-threshold", weight=f"{scale.log_threshold:.2g}")]
    )
    return [say("plot-weight"), *caption.scaling(one, language()), *root, *threshold]


def row_axis_label(pictures: Iterable[Picture]) -> str:
    """The label of the y axis: the token read and, if row labels show it, the token written."""
    drawn = list(pictures)
    key = caption.rows_key([one.record for one in drawn], named=all(one.queries is not None for one in drawn))
    return drawable([say(f"plot-rows-{key}")])[0]


def notes(pictures: Iterable[Picture]) -> list[str]:
    """Further notes: the size of a cell, colours that are not on the bar, and the prompt."""
    drawn = list(pictures)
    found = caption.cells(drawn, language())
    found += [say("plot-hidden")] if any((one.cells == 0).any() for one in drawn) else []
    found += [say("plot-bad")] if any(np.isnan(one.cells).any() for one in drawn) else []
    return found + list(dict.fromkeys(each for one in drawn for each in caption.prompt(one.record, language())))
