"""Heatmaps with matplotlib, on the caller's Axes or new ones. Never shows a figure or changes a setting.

Selects the pictures and draws a single map; `panels` draws several maps in one figure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import ArgumentError, MissingPackageError
from regard.files.output import PICTURES, check_target, extension_of, write_output
from regard.messages import Language, language, say, use_language
from regard.trace.pooling import Merge
from regard.trace.trace import Range, ScaleName, Trace
from regard.views import caption
from regard.views.colours import chosen_scale
from regard.views.exact_part import ExactPart
from regard.views.figure_layout import (
    FLATTEST,
    Margins,
    PlotOptions,
    Ticks,
    bar_numbers,
    cell_size,
    colour_bar_label,
    draw_bar,
    draw_cells,
    figure_size,
    free_space,
    inches_of,
    line_height,
    notes,
    numbers_width,
    points_of,
    restore,
    row_axis_label,
    shrink,
    text_columns,
    ticks,
    wrapped,
)
from regard.views.fonts import drawable, drawable_language, text_style
from regard.views.labels import cut_start
from regard.views.panels import draw_panels
from regard.views.picture import (
    Picture,
    chosen_heads,
    chosen_language,
    chosen_records,
    chosen_sample,
    first_share,
    merged_or_cut,
    picture,
    share_of_no_key,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACROSS = 4
"""Maps in a row, unless rows are layers."""
_MAP, _LARGEST, _NARROWEST, _LOWEST = 3.8, 8.0, 2.4, 1.0
"""Inches of the longer side of a map, of one with many tokens, and of the minimum width and height."""
_CELL = 1 / 24
"""Inches of a weight in an exact part, where every weight is visible; less in the largest parts."""
_BAR, _GAP = 0.14, 0.1
"""Inches of the colour bar and of the gap before it."""
_SIZES = {"medium": 3.0, "small": 2.2}
"""The minimum inches of a map for each font size."""


def plot(
    trace: Trace,
    layer: int | str | None = None,
    head: int | Sequence[int] | None = None,
    sample: int = 0,
    ax: "Axes | None" = None,
    lang: Language | None = None,
    scale: ScaleName | None = None,
    merge: Merge | None = None,
    *,
    vmax: float | None = None,
    cmap: Any = None,
    colorbar: bool = True,
    rows: Range = None,
    cols: Range = None,
) -> "Axes | np.ndarray":
    """Draw one head on an Axes; layers × heads on an array of Axes; heads or layers alone in rows of four.

    Raises ArgumentError, NotKeptError and, if matplotlib is not installed, MissingPackageError.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="trace.plot") from error
    grid = _chosen_pictures(trace, layer, head, sample, chosen_scale(scale), merge, rows, cols)
    with use_language(drawable_language(chosen_language(lang))):
        return _draw_grid(pyplot.subplots, grid, ax, PlotOptions(vmax, cmap, colorbar))


def draw_on_axes(ax: "Axes", one: Picture, options: PlotOptions) -> "Axes":
    """Draw a picture with its text on the caller's Axes."""
    return _on_callers_axes(ax, one, options)


def save_plot(trace: Trace, path: Path, head: int | Sequence[int] | None = None) -> None:
    """Write what `plot` draws in the format of the extension, completely or not at all, without pyplot.

    Raises as `plot`.
    """
    kind = extension_of(path, *PICTURES).removeprefix(".")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="--png") from error
    check_target(path)
    figure = Figure()

    def subplots(
        rows: int = 1, columns: int = 1, *, figsize: Any, layout: Any, squeeze: bool = True
    ) -> tuple[Any, Any]:
        figure.set_size_inches(figsize)
        figure.set_layout_engine(layout)
        return figure, figure.subplots(rows, columns, squeeze=squeeze)

    with use_language(drawable_language(chosen_language(None))):
        _draw_grid(subplots, _chosen_pictures(trace, None, head, 0), None, PlotOptions())
    drawn = BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    write_output(path, drawn.getvalue())


def _draw_grid(
    subplots: Callable[..., Any], grid: list[list[Picture]], ax: "Axes | None", options: PlotOptions
) -> "Axes | np.ndarray":
    """Draw the pictures, on new Axes or a single picture on the given Axes."""
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        raise ArgumentError("ax-not-axes", found=type(ax).__name__)
    if len(grid) == len(grid[0]) == 1:
        return (
            _on_new_figure(subplots, grid[0][0], options) if ax is None else _on_callers_axes(ax, grid[0][0], options)
        )
    if ax is not None:
        raise ArgumentError("ax-one-picture", count=sum(len(row) for row in grid))
    return draw_panels(subplots, grid, options)


def _chosen_pictures(
    trace: Trace,
    layer: int | str | None,
    head: int | Sequence[int] | None,
    sample: int,
    scale: ScaleName = "auto",
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
) -> list[list[Picture]]:
    """The pictures in rows: one row per record; or rows of four if there is only one row or column."""
    lines = []
    for given in chosen_records(trace, layer):
        record, at = merged_or_cut(given, chosen_sample(given, sample), merge, rows, cols)
        lines.append([picture(record, each, at, scale) for each in chosen_heads(record, head)])
    if len(lines) > 1 and max(len(line) for line in lines) > 1:
        return lines
    everything = [one for line in lines for one in line]
    return [everything[start : start + _ACROSS] for start in range(0, len(everything), _ACROSS)]


# --- one map ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FittedMap:
    """The text around a map of this size in inches."""

    wide: float
    high: float
    size: str
    """The font size of the text."""
    x: Ticks
    y: Ticks
    title: str
    below: str
    at_bar: str
    numbers: list[str]
    """The tick labels of the colour bar."""

    @property
    def margins(self) -> Margins:
        points = points_of(self.size)
        numbers = numbers_width(self.numbers, points)
        bar = _GAP + _BAR + numbers + line_height(points, _lines(self.at_bar)) if self.at_bar else 0
        return Margins(
            left=self.y.thickness + line_height(points) + 0.25,
            right=bar + 0.1,
            bottom=self.x.thickness + line_height(points, _lines(self.below)) + 0.2,
            top=line_height(points, _lines(self.title)) + 0.15,
        )


def _lines(text: str) -> int:
    return text.count("\n") + 1


def _fit_map(one: Picture, options: PlotOptions, wide: float, high: float, size: str = "medium") -> _FittedMap:
    """The text that fits a map of this size in inches."""
    # Text above and below a map may be wider than the map: there is space left and right of it.
    about = wide + (0.6 if options.bar else 0.0)
    across, down = cell_size(one, wide, high)
    wide, high = across * max(1, one.record.shape[3]), down * max(1, one.record.shape[2])
    points = points_of(size)
    x = ticks(one.keys, "x", across, size, max(high / 2, wide / 4), one.origin[1])
    top = one.origin[0]
    y = ticks(one.row_labels, "y", down, size, max(wide / 2, high / 4), top, top + one.record.shape[2])
    step = max(x.step, y.step)
    scale = options.scale_of([one])
    all_notes = [*notes([one]), *([say("plot-thinned", step=step)] if step > 1 else [])]
    return _FittedMap(
        wide=wide,
        high=high,
        size=size,
        x=x,
        y=y,
        title=wrapped(_title(one, text_columns(about, points)), about, points),
        below="\n".join([*drawable([say("plot-keys")]), *([wrapped(all_notes, about, points)] if all_notes else [])]),
        at_bar=wrapped(colour_bar_label(one, scale), high, points) if options.bar and one.cells.size else "",
        numbers=bar_numbers(scale),
    )


def _fit_inside(
    one: Picture, options: PlotOptions, wide: float, high: float, free: Margins
) -> tuple[_FittedMap, Margins]:
    """The map and text that fit in an area of this size, and the margins that the free space around it lacks."""
    size = next((name for name, least in _SIZES.items() if min(wide, high) >= least), "x-small")
    margins = _fit_map(one, options, 0.7 * wide, 0.7 * high, size).margins
    taken = Margins(*(max(0.0, needed - there) for needed, there in zip(margins, free, strict=True)))
    left = max(wide / 3, wide - taken.left - taken.right), max(high / 3, high - taken.bottom - taken.top)
    return _fit_map(one, options, *left, size), taken


def _on_new_figure(subplots: Callable[..., Any], one: Picture, options: PlotOptions) -> "Axes":
    """On a new figure whose size grows with the tokens, or follows the caller's settings."""
    size = figure_size()
    if size is None:
        T, S = (max(1, each) for each in one.record.shape[2:])
        named = max([0, *(len(tokens) for tokens in (one.queries, one.keys) if tokens is not None)])
        in_full = _CELL * max(T, S) if isinstance(one.record, ExactPart) else 0.0
        longer = min(_LARGEST, max(_MAP, in_full, named * line_height(points_of("medium"))))
        wide, high = (longer * min(1.0, max(FLATTEST, share)) for share in (S / T, T / S))
        fitted = _fit_map(one, options, max(_NARROWEST, wide), max(_LOWEST, high))
        margins = fitted.margins
        size = fitted.wide + margins.left + margins.right, fitted.high + margins.bottom + margins.top
    else:
        fitted, _ = _fit_inside(one, options, *size, Margins(0, 0, 0, 0))
    _, ax = subplots(figsize=size, layout="constrained")
    _draw(ax, one, options, fitted)
    return ax


def _on_callers_axes(ax: "Axes", one: Picture, options: PlotOptions) -> "Axes":
    """On the caller's Axes. Without a layout engine, everything stays within its area."""
    restore(ax)
    free = free_space(ax)
    fitted, taken = _fit_inside(one, options, *inches_of(ax), free or Margins(9, 9, 9, 9))
    if free is not None and ax.get_figure().get_layout_engine() is None:  # type: ignore[union-attr]
        shrink(ax, taken)
    _draw(ax, one, options, fitted)
    return ax


def _draw(ax: "Axes", one: Picture, options: PlotOptions, fitted: _FittedMap) -> None:
    """Draw one picture with labels, title and colour bar."""
    scale = options.scale_of([one])
    image = draw_cells(ax, one, scale, options)
    ax.set_title(fitted.title, fontsize=fitted.size, **text_style())
    fitted.x.draw(ax, "x", fitted.wide)
    fitted.y.draw(ax, "y", fitted.high)
    ax.set_xlabel(fitted.below, fontsize=fitted.size, **text_style())
    ax.set_ylabel(row_axis_label([one]), fontsize=fitted.size, **text_style())
    if image is not None and fitted.at_bar:
        # Relative to the Axes, so that the bar is as high as the map in every layout.
        place = ax.inset_axes((1 + _GAP / fitted.wide, 0, _BAR / fitted.wide, 1))
        bar = draw_bar(place.get_figure(), image, scale, cax=place)
        bar.set_label(fitted.at_bar, fontsize=fitted.size, **text_style())
        place.tick_params(labelsize=fitted.size)


def _title(one: Picture, width: int) -> list[str]:
    """The title. Long names keep their end, where names differ."""
    record = one.record
    pieces = [cut_start(caption.name_of(record), width), say(f"screen-{record.kind}")]
    pieces += caption.head_of(record, one.head, language())
    if record.shape[0] > 1:
        pieces.append(say("screen-sample", sample=one.sample, count=record.shape[0]))
    pieces += caption.part([record], language())
    pieces += caption.sink(first_share(one, compute=True), one, language())
    return [*pieces, *caption.no_key(share_of_no_key(one), language())]
