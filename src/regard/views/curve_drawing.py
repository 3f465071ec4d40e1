"""Curves in the terminal (braille dots or letters, with axes and a legend) and as a matplotlib figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from regard.errors import MissingPackageError
from regard.files.output import PICTURES, check_target, extension_of, write_output
from regard.messages import Language, Listed, say
from regard.trace.trace import Colour
from regard.views.caption import title
from regard.views.colours import DIM
from regard.views.curves import VALIDATION, Curve, bin_points, metric_name, number, ticks, value_range
from regard.views.fonts import drawable, drawable_language, text_style
from regard.views.labels import cut, printable_label
from regard.views.picture import chosen_language
from regard.views.terminal import can_encode, columns_of, console_for, depth_of, write_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TALLEST, SHORTEST = 18, 6
WIDEST = 1000
"""Columns. A larger value of COLUMNS is ignored."""
_SHADE = "░"
_COLOURS = (75, 214, 78, 205, 185, 51, 203, 250)
"""Numbers in the 256-colour palette: far apart in hue and lightness, readable on black and on white."""
# The bit of each dot in a braille character, four rows of two (Unicode, U+2800).
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The area of the curves: its columns and rows of characters, and the ranges of steps and values on its axes."""

    columns: int
    rows: int
    steps: tuple[float, float]
    values: tuple[float, float]


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """The characters and colours that curves are drawn with."""

    dots: bool
    colours: bool
    box: str
    """The characters of the axes: vertical line, vertical tick, corner, horizontal line, horizontal tick."""

    @classmethod
    def for_terminal(cls, encoding: str, colours: bool, count: int) -> "CharacterSet":
        """Braille needs an encoding that has it, and colours if there are several curves."""
        box = "│┤└─┬" if can_encode("│┤└─┬", encoding) else "|++-+"
        return cls(can_encode("⣿", encoding) and (colours or count == 1), colours, box)

    def letter(self, number: int) -> str:
        """The letter of a curve in the legend; also drawn without braille."""
        return chr(ord("a") + number % 26)

    def style(self, number: int) -> Style:
        return Style(color=f"color({_COLOURS[number % len(_COLOURS)]})") if self.colours else Style.null()


def show_curves(
    curves: Sequence[Curve],
    *,
    file: TextIO | None = None,
    width: int | None = None,
    height: int | None = None,
    color: Colour | None = None,
    lang: Language | None = None,
) -> None:
    """Draw the curves in one picture on `file`, by default on the screen. Raises ArgumentError."""
    text_lang = chosen_language(lang)
    console = console_for(file, color)
    columns = columns_of(console, width)
    rows = height or min(TALLEST, max(SHORTEST, console.height - len(curves) - 6))
    characters = CharacterSet.for_terminal(console.encoding, depth_of(console) is not None, len(curves))
    write_lines(console, curve_lines(curves, columns, rows, characters, text_lang))


def curve_lines(curves: Sequence[Curve], width: int, rows: int, characters: CharacterSet, lang: Language) -> list[Text]:
    """The lines of the picture, none wider than `width`."""
    values = value_range(curves)
    marks = {_row(value, values, rows): number(value) for value in ticks(*values, max(3, rows // 3))}
    gutter = max(map(len, marks.values()))
    steps = min(float(one.steps[0]) for one in curves), max(float(one.steps[-1]) for one in curves)
    area = PlotArea(max(4, min(width, WIDEST) - gutter - 2), rows, steps, values)
    cells, styles = _drawn(curves, area, characters)
    metrics = dict.fromkeys(metric_name(one.metric, lang) for one in curves)
    lines = [*title(say("curves-over-steps", lang, metric=Listed(metrics)), [], width), Text()]
    for row in range(rows):
        line = Text(f"{marks.get(row, ''):>{gutter}} {characters.box[1] if row in marks else characters.box[0]}", DIM)
        for column in range(area.columns):
            line.append(cells[row][column], styles[row][column])
        lines.append(line)
    lines += _bottom(area, gutter, characters)
    lines.append(Text())
    if _SHADE in "".join(map("".join, cells)):
        lines += _wrapped(_SHADE + " " + say("curves-shade", lang), width)
    return lines + [line for at, one in enumerate(curves) for line in _legend(one, at, characters, width, lang)]


def _row(value: float, values: tuple[float, float], rows: int) -> int:
    low, high = values
    return round((high - value) / (high - low) * (rows - 1))


# --- curves ----------------------------------------------------------------------------------------------


def _drawn(
    curves: Sequence[Curve], area: PlotArea, characters: CharacterSet
) -> tuple[list[list[str]], list[list[Style]]]:
    """The character and the style of every position."""
    cells = [[" "] * area.columns for _ in range(area.rows)]
    styles = [[Style.null()] * area.columns for _ in range(area.rows)]
    if _is_one_run(curves) and curves[0].noisy:
        for row, column in np.argwhere(_shaded(curves[0], area)):
            cells[row][column], styles[row][column] = _SHADE, DIM
    for at, one in enumerate(curves):
        down, across = (4, 2) if characters.dots else (1, 1)
        path = curve_path(one, area, area.rows * down, area.columns * across)
        for row, column in np.argwhere(_blocks(path, down, across).any((-1, -2))):
            block = path[row * down : (row + 1) * down, column * across : (column + 1) * across]
            sign = chr(0x2800 + int(_DOTS[block].sum())) if characters.dots else characters.letter(at)
            below = ord(cells[row][column]) if cells[row][column] >= "\u2800" else 0x2800
            cells[row][column] = chr(ord(sign) | below) if characters.dots else sign
            styles[row][column] = characters.style(at)
    return cells, styles


def curve_path(one: Curve, area: PlotArea, rows: int, columns: int) -> np.ndarray:
    """The smoothed curve as booleans, rows × columns, without a gap from the first step to the last."""
    mean = bin_points(one.steps, one.smooth, columns, area.steps).mean
    known = np.flatnonzero(~np.isnan(mean))
    at = np.arange(known[0], known[-1] + 1)
    low, high = area.values
    heights = np.interp(at, known, mean[known])
    places = np.clip(np.rint((high - heights) / (high - low) * (rows - 1)), 0, rows - 1).astype(int)
    path = np.zeros((rows, columns), dtype=bool)
    for column, here, before in zip(at, places, [places[0], *places[:-1]], strict=True):
        # Start just past the previous row, so that steep parts are one dot wide.
        start = before + np.sign(here - before)
        path[min(start, here) : max(start, here) + 1, column] = True
    return path


def _is_one_run(curves: Sequence[Curve]) -> bool:
    """Whether all curves belong to one run. The shades of several runs would hide each other."""
    return len({one.run for one in curves}) == 1


def _shaded(one: Curve, area: PlotArea) -> np.ndarray:
    """The range of the raw values as booleans, rows × columns."""
    _, low, high = bin_points(one.steps, one.values, area.columns, area.steps)
    tops, bottoms = (
        np.array([_row(value, area.values, area.rows) if value == value else -1 for value in side])
        for side in (high, low)
    )
    rows = np.arange(area.rows)[:, None]
    return (rows >= tops) & (rows <= bottoms) & (tops < bottoms)


def _blocks(path: np.ndarray, down: int, across: int) -> np.ndarray:
    """The path split into characters: rows, columns, then the dots of each."""
    rows, columns = path.shape
    return path.reshape(rows // down, down, columns // across, across).swapaxes(1, 2)


# --- words and numbers -----------------------------------------------------------------------------------


def _bottom(area: PlotArea, gutter: int, characters: CharacterSet) -> list[Text]:
    """The step axis and its numbers."""
    first, last = area.steps
    longest = len(f"{last:.0f}") + 2
    axis, numbers = list(characters.box[3] * area.columns), ""
    for step in ticks(first, last, max(2, area.columns // (2 * longest))):
        if step != round(step):
            continue
        at = round((step - first) / (last - first) * (area.columns - 1)) if last > first else 0
        label = f"{step:.0f}"
        start = min(max(0, at - len(label) // 2), area.columns - len(label))
        if start >= 0 and (not numbers or start > len(numbers)):
            numbers = numbers.ljust(start) + label
            axis[at] = characters.box[4]
    corner = " " * (gutter + 1) + characters.box[2]
    return [Text(corner + "".join(axis), DIM), Text(" " * (gutter + 2) + numbers, DIM)]


def _legend(one: Curve, at: int, characters: CharacterSet, width: int, lang: Language) -> list[Text]:
    """The legend entry of a curve: run, metric, last value and lowest value."""
    lowest = int(one.values.argmin())
    text = say(
        "curves-legend",
        lang,
        run=printable_label(one.run),
        metric=metric_name(one.metric, lang),
        last=number(float(one.values[-1])),
        lowest=number(float(one.values[lowest])),
        step=int(one.steps[lowest]),
    )
    mark = "⠤⠤" if characters.dots else characters.letter(at)
    lines = _wrapped(f"{mark} {text}", width)
    lines[0].stylize(characters.style(at), 0, len(mark))
    return lines


def _wrapped(text: str, width: int) -> list[Text]:
    """The text wrapped to the width, later lines indented; a word longer than a line is cut."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1].strip() and cell_len(lines[-1]) + 1 + cell_len(word) > width:
            lines.append("  ")
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return [Text(cut(line, width)) for line in lines]


COLUMNS = 800
_PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito (2008), which colour-blind readers can distinguish."""
_STROKES = ("-", (0, (6, 1.5)), "-.", (0, (3, 1, 1, 1, 1, 1)))
"""Colours repeat from the eighth run on, with another line style."""
_WIDEST_NAME = 40


def plot_curves(curves: Sequence[Curve], lang: Language | None = None) -> "Figure":
    """A Figure with all curves. Raises MissingPackageError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="--png") from error
    lang = drawable_language(chosen_language(lang))
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    runs = list(dict.fromkeys(one.run for one in curves))
    for one in curves:
        _draw(axes, one, runs.index(one.run), len(runs) > 1, lang)
    low, high = value_range(curves)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    metrics = Listed(dict.fromkeys(metric_name(one.metric, lang) for one in curves)).joined(lang)
    pieces = [metrics] if len(runs) > 1 else [cut(printable_label(runs[0]), _WIDEST_NAME), metrics]
    axes.set_title(_text(" · ".join(pieces)), **text_style())
    axes.set_xlabel(_text(say("curves-step", lang)), **text_style())
    axes.set_ylabel(_text(metrics), **text_style())
    axes.grid(alpha=0.25)
    legend = axes.legend(frameon=False)
    for label in legend.get_texts():
        label.set(**text_style())
    return figure


def save_curves(curves: Sequence[Curve], path: Path, lang: Language | None = None) -> None:
    """Write the figure in the format of the file's extension, completely or not at all. Raises FileError and
    MissingPackageError.
    """
    kind = extension_of(path, *PICTURES).removeprefix(".")
    check_target(path)
    figure = plot_curves(curves, lang)
    drawn = BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    write_output(path, drawn.getvalue())


def _draw(axes: Any, one: Curve, run: int, several: bool, lang: Language) -> None:
    colour, stroke = _PALETTE[run % len(_PALETTE)], _STROKES[run // len(_PALETTE) % len(_STROKES)]
    columns = min(COLUMNS, len(one.steps))
    span = float(one.steps[0]), float(one.steps[-1])
    smooth, raw = (bin_points(one.steps, values, columns, span) for values in (one.smooth, one.values))
    there = ~np.isnan(raw.mean)
    steps = bin_points(one.steps, one.steps, columns, span).mean[there]
    name = metric_name(one.metric, lang)
    label = _text(f"{cut(printable_label(one.run), _WIDEST_NAME)} · {name}" if several else name)
    if one.metric == VALIDATION:  # same colour as the training loss of the run, other line style and markers
        axes.plot(steps, smooth.mean[there], color=colour, linestyle=":", marker="o", markersize=4, label=label)
        return
    if one.noisy:
        axes.fill_between(steps, raw.low[there], raw.high[there], color=colour, alpha=0.18, linewidth=0)
    marker = "o" if len(steps) == 1 else None
    axes.plot(steps, smooth.mean[there], color=colour, linestyle=stroke, marker=marker, linewidth=1.6, label=label)


def _text(text: str) -> str:
    return drawable([text])[0]
