"""Curves in the terminal: braille dots where the encoding has them, else letters, with axes and a legend.

    braille   two dots wide and four high a character; curves are told apart by colour
    letters   a character a column; without colours, and where there are no dots: a, b, c, …

Behind the first curve of a single run stands a shade from the lowest to the highest value of each column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from regard.messages import Language, Listed, say
from regard.trace.trace import Colour
from regard.views.caption import title
from regard.views.colours import DIM
from regard.views.curves import Curve, metric_name, number, thin, ticks, value_range
from regard.views.labels import cut, visible
from regard.views.picture import chosen_language
from regard.views.terminal import columns_of, console_for, depth_of, holds, write_lines

TALLEST, SHORTEST = 18, 6
WIDEST = 1000
"""In columns: whatever COLUMNS says, no screen is wider."""
_SHADE = "░"
_COLOURS = (75, 214, 78, 205, 185, 51, 203, 250)
"""Of the 256, far apart in hue and in lightness, and bright enough on black and on white."""
# The bit of each dot in a character of braille, four rows of two (Unicode, U+2800).
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


@dataclass(frozen=True, slots=True)
class Frame:
    """The room for the curves: columns and rows of characters, and what their edges stand for."""

    columns: int
    rows: int
    steps: tuple[float, float]
    values: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Signs:
    """What curves are drawn with: the encoding and the colours decide."""

    dots: bool
    colours: bool
    box: str
    """The signs of the axes: side, tick on the side, corner, bottom, tick on the bottom."""

    @classmethod
    def for_terminal(cls, encoding: str, colours: bool, count: int) -> "Signs":
        """Dots need an encoding that has them, and colours as soon as there are several curves."""
        box = "│┤└─┬" if holds("│┤└─┬", encoding) else "|++-+"
        return cls(holds("⣿", encoding) and (colours or count == 1), colours, box)

    def letter(self, number: int) -> str:
        """What a curve is called in the legend, and drawn with where there are no dots."""
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
    spoken = chosen_language(lang)
    console = console_for(file, color)
    columns = columns_of(console, width)
    rows = height or min(TALLEST, max(SHORTEST, console.height - len(curves) - 6))
    signs = Signs.for_terminal(console.encoding, depth_of(console) is not None, len(curves))
    write_lines(console, curve_lines(curves, columns, rows, signs, spoken))


def curve_lines(curves: Sequence[Curve], width: int, rows: int, signs: Signs, lang: Language) -> list[Text]:
    """The lines of the picture, none wider than `width`."""
    values = value_range(curves)
    marks = {_row(value, values, rows): number(value) for value in ticks(*values, max(3, rows // 3))}
    gutter = max(map(len, marks.values()))
    steps = min(float(one.steps[0]) for one in curves), max(float(one.steps[-1]) for one in curves)
    frame = Frame(max(4, min(width, WIDEST) - gutter - 2), rows, steps, values)
    cells, styles = _drawn(curves, frame, signs)
    metrics = dict.fromkeys(metric_name(one.metric, lang) for one in curves)
    lines = [*title(say("curves-over-steps", lang, metric=Listed(metrics)), [], width), Text()]
    for row in range(rows):
        line = Text(f"{marks.get(row, ''):>{gutter}} {signs.box[1] if row in marks else signs.box[0]}", DIM)
        for column in range(frame.columns):
            line.append(cells[row][column], styles[row][column])
        lines.append(line)
    lines += _bottom(frame, gutter, signs)
    lines.append(Text())
    if _SHADE in "".join(map("".join, cells)):
        lines += _folded(_SHADE + " " + say("curves-shade", lang), width)
    return lines + [line for at, one in enumerate(curves) for line in _legend(one, at, signs, width, lang)]


def _row(value: float, values: tuple[float, float], rows: int) -> int:
    low, high = values
    return round((high - value) / (high - low) * (rows - 1))


# --- curves ----------------------------------------------------------------------------------------------


def _drawn(curves: Sequence[Curve], frame: Frame, signs: Signs) -> tuple[list[list[str]], list[list[Style]]]:
    """The character and the style of every place."""
    cells = [[" "] * frame.columns for _ in range(frame.rows)]
    styles = [[Style.null()] * frame.columns for _ in range(frame.rows)]
    if _alone(curves) and curves[0].noisy:
        for row, column in np.argwhere(_shaded(curves[0], frame)):
            cells[row][column], styles[row][column] = _SHADE, DIM
    for at, one in enumerate(curves):
        down, across = (4, 2) if signs.dots else (1, 1)
        path = trail(one, frame, frame.rows * down, frame.columns * across)
        for row, column in np.argwhere(_blocks(path, down, across).any((-1, -2))):
            block = path[row * down : (row + 1) * down, column * across : (column + 1) * across]
            sign = chr(0x2800 + int(_DOTS[block].sum())) if signs.dots else signs.letter(at)
            below = ord(cells[row][column]) if cells[row][column] >= "\u2800" else 0x2800
            cells[row][column] = chr(ord(sign) | below) if signs.dots else sign
            styles[row][column] = signs.style(at)
    return cells, styles


def trail(one: Curve, frame: Frame, rows: int, columns: int) -> np.ndarray:
    """Where the smoothed curve goes, rows × columns of booleans, without a gap from its first step to its last."""
    mean = thin(one.steps, one.smooth, columns, frame.steps).mean
    known = np.flatnonzero(~np.isnan(mean))
    at = np.arange(known[0], known[-1] + 1)
    low, high = frame.values
    heights = np.interp(at, known, mean[known])
    places = np.clip(np.rint((high - heights) / (high - low) * (rows - 1)), 0, rows - 1).astype(int)
    path = np.zeros((rows, columns), dtype=bool)
    for column, here, before in zip(at, places, [places[0], *places[:-1]], strict=True):
        # From just past the last place to this one, so that steep parts are one dot thin.
        start = before + np.sign(here - before)
        path[min(start, here) : max(start, here) + 1, column] = True
    return path


def _alone(curves: Sequence[Curve]) -> bool:
    """Whether all are of one run: the shades of several would hide each other."""
    return len({one.run for one in curves}) == 1


def _shaded(one: Curve, frame: Frame) -> np.ndarray:
    """Where the values themselves lie, rows × columns."""
    _, low, high = thin(one.steps, one.values, frame.columns, frame.steps)
    tops, bottoms = (
        np.array([_row(value, frame.values, frame.rows) if value == value else -1 for value in side])
        for side in (high, low)
    )
    rows = np.arange(frame.rows)[:, None]
    return (rows >= tops) & (rows <= bottoms) & (tops < bottoms)


def _blocks(path: np.ndarray, down: int, across: int) -> np.ndarray:
    """The path cut into characters: rows, columns, then the dots of each."""
    rows, columns = path.shape
    return path.reshape(rows // down, down, columns // across, across).swapaxes(1, 2)


# --- words and numbers -----------------------------------------------------------------------------------


def _bottom(frame: Frame, gutter: int, signs: Signs) -> list[Text]:
    """The axis of the steps, and its numbers."""
    first, last = frame.steps
    longest = len(f"{last:.0f}") + 2
    axis, numbers = list(signs.box[3] * frame.columns), ""
    for step in ticks(first, last, max(2, frame.columns // (2 * longest))):
        if step != round(step):
            continue
        at = round((step - first) / (last - first) * (frame.columns - 1)) if last > first else 0
        label = f"{step:.0f}"
        start = min(max(0, at - len(label) // 2), frame.columns - len(label))
        if start >= 0 and (not numbers or start > len(numbers)):
            numbers = numbers.ljust(start) + label
            axis[at] = signs.box[4]
    corner = " " * (gutter + 1) + signs.box[2]
    return [Text(corner + "".join(axis), DIM), Text(" " * (gutter + 2) + numbers, DIM)]


def _legend(one: Curve, at: int, signs: Signs, width: int, lang: Language) -> list[Text]:
    """Which curve it is, where it ended, and its lowest value."""
    lowest = int(one.values.argmin())
    said = say(
        "curves-legend",
        lang,
        run=visible(one.run),
        metric=metric_name(one.metric, lang),
        last=number(float(one.values[-1])),
        lowest=number(float(one.values[lowest])),
        step=int(one.steps[lowest]),
    )
    mark = "⠤⠤" if signs.dots else signs.letter(at)
    lines = _folded(f"{mark} {said}", width)
    lines[0].stylize(signs.style(at), 0, len(mark))
    return lines


def _folded(text: str, width: int) -> list[Text]:
    """The text on as many lines as it takes, the later ones set in; what has no space is cut."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1].strip() and cell_len(lines[-1]) + 1 + cell_len(word) > width:
            lines.append("  ")
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return [Text(cut(line, width)) for line in lines]
