"""One head as a matplotlib heatmap: its cells, its colours and the text that explains them.

Independent of the position, size and labels of the map.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import ArgumentError
from regard.messages import language, say
from regard.views import caption
from regard.views.fonts import drawable
from regard.views.picture import Picture
from regard.views.scales import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    threshold = [] if scale.log_threshold is None else [say("plot-scale-bend", weight=f"{scale.log_threshold:.2g}")]
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
