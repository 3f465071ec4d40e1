"""The Axes that `Trace.plot` draws on: `plot` returns the Figure, tests look at its parts."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard import Trace
from regard.views.plots import plot


def axes_of(trace: Trace, layer: Any = None, head: Any = None, **options: Any) -> Any:
    """One Axes for one picture; an array of Axes for several."""
    chosen, layer, heads = trace._chosen(layer, head)
    return plot(chosen, layer, heads, **options)


def figure_of(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure
