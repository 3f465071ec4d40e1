"""Several maps in one matplotlib figure with a shared scale: layers × heads, heads of a layer, or layers of one head.

Labels are at the outer edges: tokens if all of them fit, else positions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from regard.messages import language, say
from regard.records import Record
from regard.views import caption
from regard.views.caption import layer_of, layer_titles
from regard.views.colours import is_sink, sink_bar
from regard.views.figure_layout import (
    FLATTEST,
    PlotOptions,
    Ticks,
    cell_size,
    colour_bar_label,
    draw_bar,
    draw_cells,
    figure_size,
    line_height,
    notes,
    points_of,
    row_axis_label,
    text_columns,
    ticks,
    wrapped,
)
from regard.views.fonts import drawable, text_style
from regard.views.labels import cut_start, printable_label, short_names
from regard.views.picture import Picture

_MAP, _LARGEST, _SMALLEST, _WHOLE = 2.0, 3.2, 0.95, 13.0
"""Inches of a map, of one with many tokens, of one among many maps, and of all maps side by side."""
_NARROWEST = 3.0
"""The minimum inches for text above and below the maps."""
_GAP, _BAR = 0.12, 0.9
"""Inches between maps, and of the colour bar with its labels."""

Grid = list[list[Picture]]


class _Edge(NamedTuple):
    """The labels below and left of a map; None if the neighbour there has the same."""

    x: Ticks | None
    y: Ticks | None


class _FittedPanels(NamedTuple):
    """All text of a figure, fitted to maps of this size in inches."""

    wide: float
    high: float
    edges: list[list[_Edge]]
    titles: list[list[str]]
    names: list[str]
    """The labels of the rows; empty if they need none."""
    above: str
    below: str
    at_bar: str

    def space(self) -> tuple[float, float]:
        """Inches that text and gaps need, horizontally and vertically."""
        points = points_of("medium")
        beside = sum(max(edge.y.thickness if edge.y else 0 for edge in column) for column in _columns(self.edges))
        under = sum(max(edge.x.thickness if edge.x else 0 for edge in row) for row in self.edges)
        over = sum(max(_lines(title) for title in row) for row in self.titles)
        lines = _lines(self.above) + _lines(self.below)
        gaps = _GAP * len(self.edges[0]), _GAP * len(self.edges)
        bar = _BAR + line_height(points, _lines(self.at_bar) - 1) if self.at_bar else 0
        return (
            beside + gaps[0] + line_height(points) * (2 if any(self.names) else 1) + bar + 0.3,
            under + gaps[1] + line_height(points_of(self.title_size), over) + line_height(points, lines) + 0.5,
        )

    @property
    def title_size(self) -> str:
        return "medium" if self.wide > 1.5 else "x-small"


def draw_panels(subplots: Callable[..., Any], grid: Grid, options: PlotOptions) -> np.ndarray:
    """The pictures on new Axes, in the given rows and columns. Axes without a picture stay empty."""
    fitted, size = _fit_figure(grid, options)
    scale = options.scale_of(one for row in grid for one in row)
    figure, axes = subplots(len(grid), max(map(len, grid)), figsize=size, squeeze=False, layout=_layout(grid))
    image = None
    for row, pictures, edges, titles, name in zip(axes, grid, fitted.edges, fitted.titles, fitted.names, strict=True):
        for ax, one, edge, title in zip(row, pictures, edges, titles, strict=False):
            image = draw_cells(ax, one, scale, options) or image
            ax.set_title(title, fontsize=fitted.title_size, **text_style())
            ax.set_xticks([])
            ax.set_yticks([])
            if edge.x is not None:
                edge.x.draw(ax, "x", fitted.wide)
            if edge.y is not None:
                edge.y.draw(ax, "y", fitted.high)
        row[0].set_ylabel(name, **text_style())
        for ax in row[len(pictures) :]:
            ax.set_axis_off()
    figure.suptitle(fitted.above, fontsize="medium", **text_style())
    figure.supxlabel(fitted.below, fontsize="medium", **text_style())
    figure.supylabel(row_axis_label([one for row in grid for one in row]), fontsize="medium", **text_style())
    if image is not None and options.bar:
        shape: dict[str, Any] = {"shrink": _bar_share(grid), "aspect": 25 if len(grid) < 3 else 40}
        bar = draw_bar(figure, image, scale, ax=axes, **shape)
        bar.set_label(fitted.at_bar, **text_style())
    return axes


# --- sizes -----------------------------------------------------------------------------------------------


def _fit_figure(grid: Grid, options: PlotOptions) -> tuple[_FittedPanels, tuple[float, float]]:
    """The text and the size of the figure: as the maps need it, or as the caller's settings say."""
    across, down = max(map(len, grid)), len(grid)
    size = figure_size()
    if size is None:
        wide, high = _map_size(grid)
        fitted = _fit_panels(grid, options, wide, high)
        space = fitted.space()
        return fitted, (max(_NARROWEST, across * wide + space[0]), down * high + space[1])
    space = _fit_panels(grid, options, 0.7 * size[0] / across, 0.7 * size[1] / down).space()
    wide, high = (max(whole / 3, whole - taken) for whole, taken in zip(size, space, strict=True))
    return _fit_panels(grid, options, wide / across, high / down), size


def _map_size(grid: Grid) -> tuple[float, float]:
    """Inches of every map: larger with many tokens, smaller with many maps."""
    everything = [one for row in grid for one in row]
    named = [len(tokens) for one in everything for tokens in (one.queries, one.keys) if tokens is not None]
    needed = max([0, *named]) * line_height(points_of("x-small"))
    longer = min(max(_MAP, min(_LARGEST, needed)), _WHOLE / max(len(grid), max(map(len, grid))))
    shapes = [(max(1, T), max(1, S)) for T, S in {one.record.shape[2:] for one in everything}]
    wide, high = max(S / T for T, S in shapes), max(T / S for T, S in shapes)
    longer = max(_SMALLEST, longer)
    return longer * min(1.0, max(FLATTEST, wide)), longer * min(1.0, max(FLATTEST, high))


def _bar_share(grid: Grid) -> float:
    """The length of the colour bar, as a share of the figure's height."""
    return 0.9 if len(grid) < 3 else 0.6


def _layout(grid: Grid) -> str:
    """matplotlib's layout without gaps; maps of several shapes need the one with gaps to stay in their columns."""
    return "compressed" if len({one.record.shape[2:] for row in grid for one in row}) == 1 else "constrained"


def _fit_panels(grid: Grid, options: PlotOptions, wide: float, high: float) -> _FittedPanels:
    """The text that fits maps of this size in inches."""
    everything = [one for row in grid for one in row]
    points, across = points_of("medium"), max(map(len, grid)) * (wide + _GAP) + 0.6
    about = max(_NARROWEST - 0.4, across)
    edges = _edges(grid, wide, high)
    all_notes = notes(everything) + ([say("plot-crowded")] if _is_crowded(grid, edges) else [])
    colours = colour_bar_label(grid[0][0], options.scale_of(everything))
    at_bar = wrapped(colours, max(1.5, _bar_share(grid) * len(grid) * high), points)
    small = wide <= 1.5
    return _FittedPanels(
        wide=wide,
        high=high,
        edges=edges,
        titles=_titles(grid, wide, small),
        names=_row_names(grid, high),
        above=wrapped(_about(grid, small, text_columns(about, points)), about, points),
        below="\n".join([*drawable([say("plot-keys")]), *([wrapped(all_notes, about, points)] if all_notes else [])]),
        at_bar=at_bar if options.bar else "",
    )


# --- words -----------------------------------------------------------------------------------------------


def _edges(grid: Grid, wide: float, high: float) -> list[list[_Edge]]:
    """The labels of every map. Neighbours with the same labels share them."""
    edges: list[list[_Edge]] = []
    for row, below in zip(grid, [*grid[1:], []], strict=True):
        edges.append([])
        for column, one in enumerate(row):
            across, down = cell_size(one, wide, high)
            lower, left = below[column : column + 1], row[column - 1 : column]
            x, y = _whole(one, "x", across, high), _whole(one, "y", down, wide)
            no_x = _share(lower, one) and lower[0].keys == one.keys
            no_y = _share(left, one) and left[0].row_labels == one.row_labels
            edges[-1].append(_Edge(None if no_x else x, None if no_y else y))
    return edges


def _share(neighbour: list[Picture], one: Picture) -> bool:
    """Whether there is a neighbour with the same shape and position."""
    places = [(each.record.shape[2:], each.origin) for each in (*neighbour, one)]
    return len(places) > 1 and places[0] == places[1]


def _whole(one: Picture, side: str, cell: float, longest: float) -> Ticks:
    """The labels of all tokens, or positions if they do not all fit."""
    tokens, start = (one.keys, one.origin[1]) if side == "x" else (one.row_labels, one.origin[0])
    found = ticks(tokens, side, cell, "x-small", longest / 2, start)
    return found if found.step == 1 else ticks(None, side, cell, "x-small")


def _is_crowded(grid: Grid, edges: list[list[_Edge]]) -> bool:
    """Whether any tokens do not fit."""
    return any(
        tokens is not None and found is not None and not found.labels
        for row, beside in zip(grid, edges, strict=True)
        for one, edge in zip(row, beside, strict=True)
        for tokens, found in ((one.keys, edge.x), (one.queries, edge.y))
    )


def _titles(grid: Grid, wide: float, small: bool) -> list[list[str]]:
    """The title of each map: its head or layer; empty if the map above has the same."""
    everything = [one for row in grid for one in row]
    bar = sink_bar(everything)
    called = {id(one): name for one, name in zip(everything, _names(everything), strict=True)}
    points = points_of("x-small" if small else "medium")

    def name(one: Picture) -> str:
        return say("screen-head", head=one.head) if _are_heads(grid) else called[id(one)]

    def title(one: Picture, above: Picture | None) -> str:
        named = [] if above is not None and name(above) == name(one) else _pieces(name(one), text_columns(wide, points))
        return wrapped([*named, *([] if small else _sink(one, bar))], wide, points)

    above: Grid = [[], *grid[:-1]]
    return [
        [title(one, over[at] if at < len(over) else None) for at, one in enumerate(row)]
        for row, over in zip(grid, above, strict=True)
    ]


def _are_heads(grid: Grid) -> bool:
    """Whether the maps in a row are heads of one layer."""
    return all(len({id(one.record) for one in row}) == 1 for row in grid) and max(map(len, grid)) > 1


def _names(pictures: list[Picture]) -> list[str]:
    """The names of the layers; numbers alone if all are of one kind."""
    layers = [layer_of(one.record.name) for one in pictures]
    if len({one.record.kind for one in pictures}) == 1 and len(set(layers)) == len(layers) and None not in layers:
        return [say("screen-layer", layer=layer) for layer in layers]
    return [printable_label(title) for title in layer_titles([one.record for one in pictures], language())]


def _row_names(grid: Grid, high: float) -> list[str]:
    """The layer of each row, if rows are layers."""
    if not _are_heads(grid) or len(_records(grid)) == 1:
        return [""] * len(grid)
    points = points_of("medium")
    names = _names([row[0] for row in grid])
    return [wrapped(_pieces(name, text_columns(high, points)), high, points) for name in names]


def _pieces(name: str, width: int) -> list[str]:
    """The parts of a name; of a path its end, where paths differ."""
    return name.split(" · ") if " " in name else [cut_start(name, width)]


def _records(grid: Grid) -> list[Record]:
    return list({id(one.record): one.record for row in grid for one in row}.values())


def _about(grid: Grid, small: bool, width: int) -> list[str]:
    """The title of the figure: the shared name, kinds, the head if there is only one, and sinks."""
    records, everything = _records(grid), [one for row in grid for one in row]
    _, pattern = short_names([caption.name_of(record) for record in records])
    pieces = [] if pattern.count("*") > 1 else [cut_start(pattern, width)]
    pieces += dict.fromkeys(say(f"screen-{record.kind}") for record in records)
    if not _are_heads(grid):
        pieces += caption.head_of(records[0], everything[0].head, language())
    pieces += caption.part(records, language())
    if small:
        bar = sink_bar(everything)
        found = sum(is_sink(one.first, bar) for one in everything)
        counts = [str(found)] if found else []
        pieces += caption.sinks("screen-first-count", counts, bar, language(), count=len(everything))
    return pieces


def _sink(one: Picture, bar: float) -> list[str]:
    """The share of the first token, if it is large."""
    return [say("plot-first", share=round(100 * one.first))] if one.first is not None and one.first > bar else []


def _columns(edges: list[list[_Edge]]) -> list[list[_Edge]]:
    return [[row[at] for row in edges if at < len(row)] for at in range(max(map(len, edges)))]


def _lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0
