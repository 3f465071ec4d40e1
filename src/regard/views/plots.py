"""Heatmaps with matplotlib: on the caller's Axes or new ones, never shown, and no setting of theirs changed.

Here is what is drawn and one map with everything beside it; several maps in one figure are `panels`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import ArgumentError, MissingPackageError
from regard.files.output import PICTURES, check_place, ending_of, write_output
from regard.messages import Language, language, say, speaking
from regard.trace.token_merging import Merge
from regard.trace.trace import Range, ScaleName, Trace
from regard.views import caption
from regard.views.exact_part import Part
from regard.views.figure_layout import (
    Room,
    Ticks,
    cell_size,
    columns,
    figure_size,
    free_around,
    inches_of,
    line,
    points_of,
    restore,
    room_for_numbers,
    shrink,
    ticks,
    wrapped,
)
from regard.views.fonts import drawable, spoken, text_style
from regard.views.heatmap import FLATTEST, Look, bar_numbers, colours_mean, draw_bar, draw_cells, notes, rows_are
from regard.views.labels import cut_start
from regard.views.panels import draw_panels
from regard.views.picture import (
    Picture,
    as_read,
    chosen_heads,
    chosen_language,
    chosen_records,
    chosen_sample,
    first_share,
    picture,
    share_of_no_key,
)
from regard.views.scales import chosen_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACROSS = 4
"""Maps in a row, where rows are not layers."""
_MAP, _LARGEST, _NARROWEST, _LOWEST = 3.8, 8.0, 2.4, 1.0
"""Inches of the longer side of a map, of one with many tokens, and of the shorter side."""
_CELL = 1 / 24
"""Inches of a weight in a part of a text, where every one is to be seen; of the largest part less."""
_BAR, _GAP = 0.14, 0.1
"""Inches of the colour bar and before it."""
_SIZES = {"medium": 3.0, "small": 2.2}
"""Inches of a place from which on its words have this size."""


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
    """Draw one head on an Axes; layers × heads on an array of them; heads or layers alone likewise, in rows of four.

    Raises ArgumentError, NotKeptError and, where matplotlib is not installed, MissingPackageError.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="trace.plot") from error
    grid = _chosen(trace, layer, head, sample, chosen_scale(scale), merge, rows, cols)
    with speaking(spoken(chosen_language(lang))):
        return _drawn(pyplot.subplots, grid, ax, Look(vmax, cmap, colorbar))


def draw_one(ax: "Axes", one: Picture, look: Look) -> "Axes":
    """A picture on an Axes of the caller's, with its words."""
    return _on_theirs(ax, one, look)


def save_plot(trace: Trace, path: Path, head: int | Sequence[int] | None = None, lang: Language | None = None) -> None:
    """Write what `plot` draws as its ending says, whole or not at all; pyplot is not touched. Raises as `plot`."""
    kind = ending_of(path, *PICTURES).removeprefix(".")
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
        _drawn(subplots, _chosen(trace, None, head, 0), None, Look())
    drawn = BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    write_output(path, drawn.getvalue())


def _drawn(
    subplots: Callable[..., Any], grid: list[list[Picture]], ax: "Axes | None", look: Look
) -> "Axes | np.ndarray":
    """The pictures, on new Axes unless one picture was given its own."""
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        raise ArgumentError("ax-not-axes", found=type(ax).__name__)
    if len(grid) == len(grid[0]) == 1:
        return _on_its_own(subplots, grid[0][0], look) if ax is None else _on_theirs(ax, grid[0][0], look)
    if ax is not None:
        raise ArgumentError("ax-one-picture", count=sum(len(row) for row in grid))
    return draw_panels(subplots, grid, look)


def _chosen(
    trace: Trace,
    layer: int | str | None,
    head: int | Sequence[int] | None,
    sample: int,
    scale: ScaleName = "auto",
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
) -> list[list[Picture]]:
    """The pictures in lines: a line for each record, or where one line or one column would do, in lines of four."""
    lines = []
    for given in chosen_records(trace, layer):
        record, at = as_read(given, chosen_sample(given, sample), merge, rows, cols)
        lines.append([picture(record, each, at, scale) for each in chosen_heads(record, head)])
    if len(lines) > 1 and max(len(line) for line in lines) > 1:
        return lines
    everything = [one for line in lines for one in line]
    return [everything[start : start + _ACROSS] for start in range(0, len(everything), _ACROSS)]


# --- one map ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A map of so many inches with its words, as they fit there, and the room that these take around it."""

    wide: float
    high: float
    size: str
    """Of the words."""
    x: Ticks
    y: Ticks
    title: str
    below: str
    at_bar: str
    numbers: list[str]
    """The weights beside the bar."""

    @property
    def room(self) -> Room:
        points = points_of(self.size)
        numbers = room_for_numbers(self.numbers, points)
        bar = _GAP + _BAR + numbers + line(points, _lines(self.at_bar)) if self.at_bar else 0
        return Room(
            left=self.y.room + line(points) + 0.25,
            right=bar + 0.1,
            bottom=self.x.room + line(points, _lines(self.below)) + 0.2,
            top=line(points, _lines(self.title)) + 0.15,
        )


def _lines(text: str) -> int:
    return text.count("\n") + 1


def _sheet(one: Picture, look: Look, wide: float, high: float, size: str = "medium") -> _Sheet:
    """What fits beside a map of so many inches."""
    # Words over and under a map may be a little wider than its place: left and right of it are words, too.
    about = wide + (0.6 if look.bar else 0.0)
    across, down = cell_size(one, wide, high)
    wide, high = across * max(1, one.record.shape[3]), down * max(1, one.record.shape[2])
    points = points_of(size)
    x = ticks(one.keys, "x", across, size, max(high / 2, wide / 4), one.origin[1])
    top = one.origin[0]
    y = ticks(one.row_labels, "y", down, size, max(wide / 2, high / 4), top, top + one.record.shape[2])
    step = max(x.step, y.step)
    scale = look.scale_of([one])
    told = [*notes([one]), *([say("plot-thinned", step=step)] if step > 1 else [])]
    return _Sheet(
        wide=wide,
        high=high,
        size=size,
        x=x,
        y=y,
        title=wrapped(_title(one, columns(about, points)), about, points),
        below="\n".join([*drawable([say("plot-keys")]), *([wrapped(told, about, points)] if told else [])]),
        at_bar=wrapped(colours_mean(one, scale), high, points) if look.bar and one.cells.size else "",
        numbers=bar_numbers(scale),
    )


def _inside(one: Picture, look: Look, wide: float, high: float, free: Room) -> tuple[_Sheet, Room]:
    """What fits in a place of so many inches, words included where they do not fit around it; and what these take."""
    size = next((name for name, least in _SIZES.items() if min(wide, high) >= least), "x-small")
    room = _sheet(one, look, 0.7 * wide, 0.7 * high, size).room
    taken = Room(*(max(0.0, needed - there) for needed, there in zip(room, free, strict=True)))
    left = max(wide / 3, wide - taken.left - taken.right), max(high / 3, high - taken.bottom - taken.top)
    return _sheet(one, look, *left, size), taken


def _on_its_own(subplots: Callable[..., Any], one: Picture, look: Look) -> "Axes":
    """On a figure that grows with the tokens, or is as large as the caller's setting says."""
    size = figure_size()
    if size is None:
        T, S = (max(1, each) for each in one.record.shape[2:])
        named = max([0, *(len(tokens) for tokens in (one.queries, one.keys) if tokens is not None)])
        in_full = _CELL * max(T, S) if isinstance(one.record, Part) else 0.0
        longer = min(_LARGEST, max(_MAP, in_full, named * line(points_of("medium"))))
        wide, high = (longer * min(1.0, max(FLATTEST, share)) for share in (S / T, T / S))
        sheet = _sheet(one, look, max(_NARROWEST, wide), max(_LOWEST, high))
        room = sheet.room
        size = sheet.wide + room.left + room.right, sheet.high + room.bottom + room.top
    else:
        sheet, _ = _inside(one, look, *size, Room(0, 0, 0, 0))
    _, ax = subplots(figsize=size, layout="constrained")
    _draw(ax, one, look, sheet)
    return ax


def _on_theirs(ax: "Axes", one: Picture, look: Look) -> "Axes":
    """On the caller's Axes: where nobody lays the figure out, everything is kept inside the place that it had."""
    restore(ax)
    free = free_around(ax)
    sheet, taken = _inside(one, look, *inches_of(ax), free or Room(9, 9, 9, 9))
    if free is not None and ax.get_figure().get_layout_engine() is None:  # type: ignore[union-attr]
        shrink(ax, taken)
    _draw(ax, one, look, sheet)
    return ax


def _draw(ax: "Axes", one: Picture, look: Look, sheet: _Sheet) -> None:
    """One picture with everything beside it."""
    scale = look.scale_of([one])
    image = draw_cells(ax, one, scale, look)
    ax.set_title(sheet.title, fontsize=sheet.size, **text_style())
    sheet.x.draw(ax, "x", sheet.wide)
    sheet.y.draw(ax, "y", sheet.high)
    ax.set_xlabel(sheet.below, fontsize=sheet.size, **text_style())
    ax.set_ylabel(rows_are([one]), fontsize=sheet.size, **text_style())
    if image is not None and sheet.at_bar:
        # Inside the Axes' own measure, so that it is as high as the map, however that is laid out.
        place = ax.inset_axes((1 + _GAP / sheet.wide, 0, _BAR / sheet.wide, 1))
        bar = draw_bar(place.get_figure(), image, scale, cax=place)
        bar.set_label(sheet.at_bar, fontsize=sheet.size, **text_style())
        place.tick_params(labelsize=sheet.size)


def _title(one: Picture, width: int) -> list[str]:
    """What it is of; of a long name the end, where names differ."""
    record = one.record
    pieces = [cut_start(caption.name_of(record), width), say(f"screen-{record.kind}")]
    pieces += caption.head_of(record, one.head, language())
    if record.shape[0] > 1:
        pieces.append(say("screen-sample", sample=one.sample, count=record.shape[0]))
    pieces += caption.part([record], language())
    pieces += caption.sink(first_share(one, compute=True), one, language())
    return [*pieces, *caption.no_key(share_of_no_key(one), language())]
