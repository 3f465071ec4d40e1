"""Heatmaps with matplotlib: on the caller's Axes or new ones, never shown, and no setting of theirs changed."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len

from regard.errors import ArgumentError, MissingPackageError
from regard.files import check_place, write_aside
from regard.trace.merging import Merge
from regard.trace.trace import ScaleName, Trace
from regard.views import caption
from regard.views.fonts import drawable, drawable_tokens, spoken, text_style
from regard.views.labels import cut, short_names, visible
from regard.views.picture import (
    Picture,
    as_read,
    chosen_head,
    chosen_language,
    chosen_records,
    chosen_sample,
    first_share,
    picture,
)
from regard.views.scales import Scale, chosen_scale, is_sink, sink_bar
from regard.words import Language, language, say, speaking

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LABELS = 64
_WIDEST_LABEL = 16
_MOST_GRID_LABELS = 16
_FEW, _SMALLEST = 6, 0.45
"""So many maps across or down are drawn in full size; more of them shrink, down to this part of it."""
_FLATTEST = 0.25
"""A map flatter, or narrower, than this is stretched."""
_INCHES_A_LETTER, _WIDEST_TITLE = 0.09, 10
"""So that a title is whole over a narrow map, within reason."""
_HIDDEN, _BAD = "#eeeeee", "#d62728"


def plot(
    trace: Trace,
    layer: int | str | None = None,
    head: int | None = None,
    sample: int = 0,
    ax: "Axes | None" = None,
    lang: Language | None = None,
    scale: ScaleName | None = None,
    merge: Merge | None = None,
) -> "Axes | np.ndarray":
    """Draw one head on an Axes, the heads of a layer on an array of them (rows, columns), or layers × heads.

    Raises ArgumentError, NotKeptError and, where matplotlib is not installed, MissingPackageError.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="trace.plot") from error
    grid = _chosen(trace, layer, head, sample, chosen_scale(scale), merge)
    with speaking(spoken(chosen_language(lang))):
        return _drawn(pyplot.subplots, grid, ax)


def save_plot(trace: Trace, path: Path, head: int | None = None, lang: Language | None = None) -> None:
    """Write what `plot` draws as PNG, whole or not at all; pyplot is not touched. Raises as `plot`, and FileError."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="--png") from error
    check_place(path)
    figure = Figure()

    def subplots(
        rows: int = 1, columns: int = 1, *, figsize: Any, layout: Any, squeeze: bool = True
    ) -> tuple[Any, Any]:
        figure.set_size_inches(figsize)
        figure.set_layout_engine(layout)
        return figure, figure.subplots(rows, columns, squeeze=squeeze)

    with speaking(spoken(chosen_language(lang))):
        _drawn(subplots, _chosen(trace, None, head, 0), None)
    write_aside(path, lambda aside: figure.savefig(aside, format="png", dpi=150))


def _drawn(subplots: Callable[..., Any], grid: list[list[Picture]], ax: "Axes | None") -> "Axes | np.ndarray":
    """The pictures, on new Axes unless one picture was given its own."""
    wide, high = _proportions(grid)
    if len(grid) == len(grid[0]) == 1:
        title = _title(grid[0][0])
        if ax is None:
            across = max(1.8 + 4 * wide, min(_WIDEST_TITLE, 0.5 + _INCHES_A_LETTER * cell_len(title)))
            _, ax = subplots(figsize=(across, 1.2 + 3.6 * high), layout="constrained")
        _draw(ax, grid[0][0], title)
        return ax
    count = sum(len(row) for row in grid)
    if ax is not None:
        raise ArgumentError("ax-one-picture", count=count)
    rows, columns = len(grid), max(len(row) for row in grid)
    size = min(1.0, max(_SMALLEST, _FEW / max(rows, columns)))
    figure, axes = subplots(
        rows,
        columns,
        figsize=(1.6 + 2.2 * size * wide * columns, 1.2 + (0.4 + 2 * high) * size * rows),
        squeeze=False,
        layout="constrained",
    )
    _fill(figure, axes, grid)
    return axes


def _chosen(
    trace: Trace,
    layer: int | str | None,
    head: int | None,
    sample: int,
    scale: ScaleName = "auto",
    merge: Merge | None = None,
) -> list[list[Picture]]:
    """The pictures in rows: a row for each record, or the heads of one record in rows of four."""
    rows = []
    for given in chosen_records(trace, layer):
        record, at = as_read(given, chosen_sample(given, sample), merge)
        first = chosen_head(record, 0 if head is None else head)
        heads = range(record.shape[1]) if head is None else [first]
        rows.append([picture(record, each, at, scale) for each in heads])
    if len(rows) > 1:
        return rows
    return [rows[0][start : start + 4] for start in range(0, len(rows[0]), 4)]


def _proportions(grid: list[list[Picture]]) -> tuple[float, float]:
    """How wide and how high a map is, the longer side 1; of several the most that any needs."""
    shapes = [(max(1, T), max(1, S)) for row in grid for T, S in [row[0].record.shape[2:]]]
    wide, high = max(S / T for T, S in shapes), max(T / S for T, S in shapes)
    return min(1.0, max(_FLATTEST, wide)), min(1.0, max(_FLATTEST, high))


def _fill(figure: Any, axes: np.ndarray, grid: list[list[Picture]]) -> None:
    """The pictures on their Axes, all on one scale; places without a picture stay empty."""
    everything = [one for row in grid for one in row]
    scale, bar, many = Scale.of(everything), sink_bar(everything), _are_many(axes)
    most = 0 if many else _MOST_GRID_LABELS
    image = None
    for at, (row, pictures) in enumerate(zip(axes, grid, strict=True)):
        below = grid[at + 1] if at + 1 < len(grid) else []
        for column, (ax, one) in enumerate(zip(row, pictures, strict=False)):
            title = " · ".join([say("screen-head", head=one.head), *([] if many else _sink(one, bar))])
            image = _cells(ax, one, "" if many and at else title, scale) or image
            ax.title.set_fontsize("x-small" if many else "medium")
            ax.set_xticks([])
            ax.set_yticks([])
            if column == 0:
                _axis(ax, "y", one.queries, one.record.shape[2], most)
            # Maps above each other share the words under the lowest, where they are the same words.
            if column >= len(below) or below[column].keys != one.keys:
                _axis(ax, "x", one.keys, one.record.shape[3], most)
        for ax in row[len(pictures) :]:
            ax.set_axis_off()
    _name_rows(figure, axes, grid, bar)
    if image is not None:
        _colour_bar(figure.colorbar(image, ax=axes, shrink=0.6 if len(grid) > 1 else 0.9, **_beyond(scale)), grid[0][0])


def _name_rows(figure: Any, axes: np.ndarray, grid: list[list[Picture]], bar: float) -> None:
    """What the whole is of over it, and the layers beside their rows."""
    records = list({id(row[0].record): row[0].record for row in grid}.values())
    names, pattern = short_names([visible(record.name) for record in records])
    pieces = [pattern, *dict.fromkeys(say(f"screen-{record.kind}") for record in records)]
    if _are_many(axes):
        everything = [one for row in grid for one in row]
        found = sum(is_sink(one.first, bar) for one in everything)
        told = [str(found)] if found else []
        pieces += caption.sinks("screen-first-count", told, bar, language(), count=len(everything))
    figure.suptitle(drawable([" · ".join(pieces)])[0], fontsize="large", **text_style())
    if len(records) > 1:
        called = {id(record): name for record, name in zip(records, names, strict=True)}
        for row, pictures in zip(axes, grid, strict=True):
            name = called[id(pictures[0].record)]
            row[0].set_ylabel(drawable([cut(name, _WIDEST_LABEL)])[0], **text_style())


def _are_many(axes: np.ndarray) -> bool:
    """Whether the maps are so many that each is small: then they have no words at their edges."""
    return max(axes.shape) > _FEW


def _draw(ax: "Axes", one: Picture, title: str) -> None:
    """One picture with everything beside it."""
    scale = Scale.of([one])
    image = _cells(ax, one, title, scale)
    T, S = one.record.shape[2:]
    _axis(ax, "x", one.keys, S, room=48 * (1.0 if _is_stretched(T, S) else min(1.0, S / max(1, T))))
    _axis(ax, "y", one.queries, T)
    ax.set_xlabel(drawable([say("plot-keys")])[0], **text_style())
    ax.set_ylabel(drawable([say("plot-queries")])[0], **text_style())
    if image is not None:
        bar = ax.get_figure().colorbar(image, ax=ax, shrink=_filled(ax), **_beyond(scale))  # type: ignore[union-attr]
        _colour_bar(bar, one)


def _filled(ax: "Axes") -> float:
    """The part of the height of its place that a map fills, so that its colour bar is no higher."""
    if ax.get_aspect() == "auto":
        return 1.0
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    return float(min(1.0, ax.bbox.width / ax.bbox.height * abs((top - bottom) / (right - left))))


def _cells(ax: "Axes", one: Picture, title: str, scale: Scale) -> Any:
    """The heatmap itself, in units of tokens whatever a cell holds; None where there is nothing to draw."""
    from matplotlib import colormaps

    ax.set_title(drawable([title])[0], fontsize="medium", **text_style())
    if not one.cells.size:
        return None
    R, C = one.cells.shape
    # The last cells may be ragged; the image is drawn whole and the axes end where the tokens do.
    extent = (-0.5, C * one.wide - 0.5, R * one.high - 0.5, -0.5)
    # What is hidden stands below the scale and has no colour of it; the smallest weights still have.
    lowest = scale.weight(0.0)
    below = lowest / 2 if lowest else -1.0  # a logarithm takes what is not positive for broken
    cells = np.where(one.cells == 0, below, np.maximum(one.cells, lowest))
    palette = colormaps["viridis"].with_extremes(under=_HIDDEN, bad=_BAD)
    image = ax.imshow(cells, cmap=palette, norm=_norm(scale, lowest), extent=extent, interpolation="nearest")
    T, S = one.record.shape[2:]
    ax.set_xlim(-0.5, S - 0.5)
    ax.set_ylim(T - 0.5, -0.5)
    if one.record.prompt is not None and 0 < one.record.prompt < T:
        ax.axhline(one.record.prompt - 0.5, color=_BAD, linewidth=1, linestyle="--")
    if _is_stretched(T, S):
        ax.set_aspect("auto")
    return image


def _norm(scale: Scale, lowest: float) -> Any:
    """The scale as matplotlib knows it."""
    from matplotlib.colors import LogNorm, Normalize, PowerNorm

    if scale.name == "log":
        return LogNorm(vmin=lowest, vmax=scale.ceiling)
    return Normalize(0, scale.ceiling) if scale.name == "linear" else PowerNorm(0.5, vmin=0, vmax=scale.ceiling)


def _beyond(scale: Scale) -> dict[str, Any]:
    """A pointed end of the colour bar where larger weights share the last colour."""
    return {"extend": "max"} if scale.clipped else {}


def _is_stretched(T: int, S: int) -> bool:
    return max(T, S) > min(T, S) / _FLATTEST


def _axis(
    ax: "Axes",
    side: str,
    tokens: tuple[str, ...] | None,
    length: int,
    most: int = _MOST_LABELS,
    room: float = 24,
) -> None:
    """Tokens along one axis where they can be read, else positions as matplotlib likes them; upright without room."""
    if tokens is None or not 0 < length <= most:
        return
    labels = drawable_tokens([cut(visible(token), _WIDEST_LABEL) for token in tokens])
    grid = most == _MOST_GRID_LABELS
    size = "x-small" if grid else "medium"
    if side == "x":
        upright = length * (max(cell_len(label) for label in labels) + 1) > room
        ax.set_xticks(range(length), labels, rotation=90 if upright else 0, fontsize=size, **text_style())
    else:
        ax.set_yticks(range(length), labels, fontsize=size, **text_style())


def _colour_bar(bar: Any, one: Picture) -> None:
    label = " · ".join([say("plot-weight"), *caption.scaling(one, language())])
    bar.set_label(drawable([label])[0], **text_style())


def _sink(one: Picture, bar: float) -> list[str]:
    """How much the first token receives, where that is a lot."""
    return [say("plot-first", share=round(100 * one.first))] if one.first is not None and one.first > bar else []


def _title(one: Picture) -> str:
    record = one.record
    pieces = [visible(record.name), say(f"screen-{record.kind}")]
    if record.shape[1] > 1:
        pieces.append(say("screen-head", head=one.head))
    return " · ".join([*pieces, *caption.sink(first_share(one, compute=True), one, language())])
