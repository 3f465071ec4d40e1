"""One head as a matplotlib heatmap: its cells, its colours, and what they mean in words.

Where the map stands, how large it is and which labels are at its edges is not known here.
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
_HIDDEN, _BAD = "#eeeeee", "#d62728"


@dataclass(frozen=True, slots=True)
class Look:
    """What the caller wishes: the weight of the last colour, the colours, and whether a bar explains them.

    scale   where it is known already, as of a film, whose pictures share one
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
        """The scale by which these pictures are drawn."""
        return self.scale or Scale.of(pictures, self.vmax)

    @property
    def palette(self) -> Any:
        """The colours, with one more for what is hidden and one for NaN."""
        from matplotlib import colormaps
        from matplotlib.colors import Colormap

        cmap = self.cmap if isinstance(self.cmap, Colormap) else colormaps[self.cmap or "viridis"]
        return cmap.with_extremes(under=_HIDDEN, bad=_BAD)


def draw_cells(ax: "Axes", one: Picture, scale: Scale, look: Look) -> Any:
    """The heatmap itself, in units of tokens whatever a cell holds; None where there is nothing to draw."""
    if not one.cells.size:
        return None
    R, C = one.cells.shape
    top, left = (first - 0.5 for first in one.origin)
    # The last cells may be ragged; the image is drawn whole and the axes end where the tokens do.
    extent = (left, left + C * one.wide, top + R * one.high, top)
    # What is hidden stands below the scale and has no colour of it; the smallest weights still have.
    lowest = scale.weight(0.0)
    below = lowest / 2 if lowest else -1.0  # a logarithm takes what is not positive for broken
    cells = np.where(one.cells == 0, below, np.maximum(one.cells, lowest))
    image = ax.imshow(cells, cmap=look.palette, norm=_norm(scale, lowest), extent=extent, interpolation="nearest")
    T, S = one.record.shape[2:]
    ax.set_xlim(left, left + S)
    ax.set_ylim(top + T, top)
    if one.record.prompt is not None and 0 < one.record.prompt < T:
        ax.axhline(top + one.record.prompt, color=_BAD, linewidth=1, linestyle="--")
    if is_stretched(T, S):
        ax.set_aspect("auto")
    return image


def _norm(scale: Scale, lowest: float) -> Any:
    """The scale as matplotlib knows it."""
    from matplotlib.colors import LogNorm, Normalize, PowerNorm

    if scale.name == "log":
        return LogNorm(vmin=lowest, vmax=scale.ceiling)
    if scale.name == "linear":
        return Normalize(0, scale.ceiling)
    return PowerNorm(0.5, vmin=0, vmax=scale.ceiling) if scale.bend is None else _with_bend(scale)


def _with_bend(scale: Scale) -> Any:
    """matplotlib's own norms have no bend."""
    from matplotlib.colors import Normalize

    class WithBend(Normalize):
        """The levels of the scale; what is hidden stays below 0."""

        def __call__(self, value: Any, clip: bool | None = None) -> Any:
            cells: Any = np.ma.asarray(value, float)
            return np.ma.array(np.where(cells.data < 0, -1.0, scale.level(cells.data)), mask=cells.mask)

        def inverse(self, value: Any) -> Any:
            return np.vectorize(scale.weight, otypes=[float])(value)

    return WithBend(0, scale.ceiling)


def draw_bar(figure: Any, image: Any, scale: Scale, **where: Any) -> Any:
    """The colour bar: round weights beside it, and a pointed end where larger ones share the last colour."""
    bar = figure.colorbar(image, extend="max" if scale.clipped else "neither", **where)
    if scale.name not in ("linear", "log"):
        bar.set_ticks(scale.ticks(), labels=bar_numbers(scale))
        bar.minorticks_off()
    return bar


def bar_numbers(scale: Scale) -> list[str]:
    """The weights that are named beside the bar."""
    return [f"{weight:g}" for weight in scale.ticks()]


def is_stretched(T: int, S: int) -> bool:
    """Whether its cells are no squares, as nobody could see them."""
    return max(T, S) > min(T, S) / FLATTEST


def colours_mean(one: Picture, scale: Scale) -> list[str]:
    """What stands at the colour bar."""
    root = [] if one.scale in ("linear", "log") else [say("plot-scale-root")]
    bend = [] if scale.bend is None else [say("plot-scale-bend", weight=f"{scale.bend:.2g}")]
    return [say("plot-weight"), *caption.scaling(one, language()), *root, *bend]


def rows_are(pictures: Iterable[Picture]) -> str:
    """What stands beside the rows: what a row has read and, where its label says so, what it writes."""
    drawn = list(pictures)
    key = caption.rows_key([one.record for one in drawn], named=all(one.queries is not None for one in drawn))
    return drawable([say(f"plot-rows-{key}")])[0]


def notes(pictures: Iterable[Picture]) -> list[str]:
    """What else one must know to read them: the size of a cell, and the colours that are not on the bar."""
    drawn = list(pictures)
    told = caption.cells(drawn, language())
    told += [say("plot-hidden")] if any((one.cells == 0).any() for one in drawn) else []
    told += [say("plot-bad")] if any(np.isnan(one.cells).any() for one in drawn) else []
    return told + list(dict.fromkeys(each for one in drawn for each in caption.prompt(one.record, language())))
