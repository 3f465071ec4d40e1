"""A drawing in the terminal: the same blocks as lines of rich text, with colours or with shading characters.

What does not fit in the width is drawn narrower: matrices side by side go below each other, long labels are cut.
"""

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from regard.course.drawings.blocks import (
    Axis,
    Bars,
    Block,
    Box,
    Curves,
    Drawing,
    Flow,
    Line,
    Links,
    Matrix,
    Sign,
    axis_of,
    text_in,
    tick_text,
)
from regard.messages import Language
from regard.views.colours import BOLD, DIM, SHADES, Depth, TerminalColour, text_on, viridis
from regard.views.curve_drawing import CharacterSet
from regard.views.labels import cut, fold, pad

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_PLOT_ROWS, _PLOT_COLUMNS = 12, 64
_BELOW, _ABOVE = TerminalColour((125, 167, 213), "#7da7d5"), TerminalColour((222, 160, 118), "#dea076")
"""Numbers below and above 0 in matrices that have both."""

Lines = list[Text]


def drawing_lines(drawing: Drawing, lang: Language, width: int, depth: Depth | None) -> Lines:
    """The lines of a drawing, none wider than `width`; `depth` is the depth of colours, None without colours."""
    lines = [Text(line, BOLD) for line in fold(text_in(drawing.title, lang), width)]
    for block in drawing.blocks:
        lines += [Text(), *_block_lines(block, lang, width, depth)]
    caption = text_in(drawing.caption, lang)
    lines += [Text(), *(Text(line, DIM) for line in fold(caption, width))] if caption else []
    for line in lines:
        line.truncate(width)
        line.rstrip()
    return lines


def _block_lines(block: Block, lang: Language, width: int, depth: Depth | None) -> Lines:
    match block:
        case Matrix():
            return _matrix(block, lang, width, depth)
        case Line():
            return _side_by_side(block, lang, width, depth)
        case Flow():
            return _flow(block, lang, width)
        case Curves():
            return _curves(block, lang, width, depth)
        case Bars():
            return _bars(block, lang, width)
        case Links():
            return _links(block, lang, width, depth)


# --- matrices --------------------------------------------------------------------------------------------


def _matrix(matrix: Matrix, lang: Language, width: int, depth: Depth | None) -> Lines:
    rows, columns = matrix.values.shape
    names = [text_in(label, lang) for label in matrix.columns]
    labels = [text_in(label, lang) for label in matrix.rows]
    gutter = min(max([0, *map(cell_len, labels)]), width // 3)
    numbers = [[matrix.number(r, c) for c in range(columns)] for r in range(rows)]
    widest = max([2, *(cell_len(text) + 2 for row in numbers for text in row), *(cell_len(name) + 1 for name in names)])
    cell = max(1, min(widest, (width - gutter - 1) // columns))
    has_numbers = cell >= max([2, *(cell_len(text) + 1 for row in numbers for text in row)])
    title = text_in(matrix.title, lang)
    lines = [Text(line, BOLD) for line in fold(title, width)] if title else []
    if names and cell >= 2:
        lines.append(Text(" " * (gutter + 1 if gutter else 0)))
        for name in names:
            lines[-1].append(pad(cut(name, cell - 1), cell, "middle"), DIM)
    for r in range(rows):
        line = Text(pad(cut(labels[r], gutter), gutter, "right") + " ", DIM) if labels else Text()
        for c in range(columns):
            _add_cell(line, matrix, r, c, cell, numbers[r][c] if has_numbers else "", depth)
        lines.append(line)
    return lines


def _add_cell(line: Text, matrix: Matrix, row: int, column: int, width: int, number: str, depth: Depth | None) -> None:
    """Append one cell: coloured, or with a shading character where there are no colours."""
    value = matrix.values[row, column]
    text = f"[{number}]" if (row, column) in matrix.marked and width >= len(number) + 2 else number
    if matrix.is_mask:
        sign = "■" if value else "·"
        line.append(pad(sign, width, "middle"), Style.null() if value else DIM)
        return
    level = matrix.level(row, column)
    if level != level or np.isinf(value):
        line.append(pad(text or "·", width, "middle"), DIM)
        return
    if depth is not None:
        colour = (
            viridis(level, depth)
            if not matrix.is_signed
            else _ABOVE
            if level > 0.05
            else _BELOW
            if level < -0.05
            else None
        )
        style = Style.null() if colour is None else text_on(colour)
        line.append(pad(text, width, "middle"), style)
        return
    shade = SHADES[min(len(SHADES) - 1, int(abs(level) * len(SHADES)))]
    line.append(pad(text or shade * min(2, width), width, "middle"))


def _side_by_side(parts: Line, lang: Language, width: int, depth: Depth | None) -> Lines:
    """The parts in one row if they fit, else below each other."""
    blocks = [
        [Text(f" {text_in(part.text, lang)} ", DIM)] if isinstance(part, Sign) else _matrix(part, lang, width, depth)
        for part in parts.parts
    ]
    widths = [max(line.cell_len for line in block) for block in blocks]
    if sum(widths) + 2 * (len(blocks) - 1) > width:
        return [line for block in blocks for line in (*block, Text())][:-1]
    height = max(map(len, blocks))
    lines = [Text() for _ in range(height)]
    for part, block, wide in zip(parts.parts, blocks, widths, strict=True):
        # Matrices stand on one base line; a sign is beside the middle of the cells.
        above = height - len(block) if isinstance(part, Matrix) else height - 1 - _cells_beside(parts, part) // 2
        for row, line in enumerate(lines):
            inside = 0 <= row - above < len(block)
            line.append_text(block[row - above].copy() if inside else Text())
            used = block[row - above].cell_len if inside else 0
            line.append(" " * (wide - used + 2))
    return lines


def _cells_beside(parts: Line, sign: Sign) -> int:
    at = parts.parts.index(sign)
    beside = [part for part in parts.parts[max(0, at - 1) : at + 2] if isinstance(part, Matrix)]
    return min((part.values.shape[0] for part in beside), default=1)


# --- flow charts -----------------------------------------------------------------------------------------


def _flow(flow: Flow, lang: Language, width: int) -> Lines:
    """Boxes with an arrow of one line between them; names that are too long are folded."""
    gutters = [3 if any(skip[0] == at for skip in flow.skips) else 0 for at in range(len(flow.lanes))]
    names = [[("" if box is None else text_in(box.text, lang)) for box in lane] for lane in flow.lanes]
    shapes = [max([0, *(cell_len(box.shape) + 1 for box in lane if box and box.shape)]) for lane in flow.lanes]
    gap = 4
    available = width - sum(gutters) - sum(shapes) - gap * (len(flow.lanes) - 1)
    most = max(8, available // len(flow.lanes) - 4)
    inner = [min(most, max(map(cell_len, lane))) for lane in names]
    columns = [g + i + 4 + s for g, i, s in zip(gutters, inner, shapes, strict=True)]
    folded = [[_folded(name, wide) for name in lane] for lane, wide in zip(names, inner, strict=True)]
    heights = [max(len(lane[row]) for lane in folded) for row in range(flow.height)]
    middles = [sum(heights[:row]) + 3 * row + 1 + (high - 1) // 2 for row, high in enumerate(heights)]
    lines = [Text() for _ in range(sum(heights) + 3 * flow.height - 1)]
    for at in range(len(flow.lanes)):
        drawn = _lane(flow, at, folded[at], heights, inner[at])
        drawn = [_around(flow, at, number, middles, gutters[at]) + line for number, line in enumerate(drawn)]
        crossing = {middles[row]: (start, end) for row, start, end in flow.across}
        for number, (line, text) in enumerate(zip(lines, drawn, strict=True)):
            line.append(text)
            wide = columns[at] - cell_len(text) + (gap if at + 1 < len(flow.lanes) else 0)
            line.append(_across(crossing.get(number), at, wide), DIM)
    titles = Text()
    for at, title in enumerate(flow.titles):
        name = cut(text_in(title, lang), columns[at] - gutters[at])
        titles.append(" " * gutters[at] + pad(name, columns[at] - gutters[at] + gap), BOLD)
    return [titles, *lines] if flow.titles else lines


def _folded(name: str, width: int) -> list[str]:
    """The name as lines of at most `width` columns; a word that is longer is divided at its hyphens."""
    words = (word.replace("-", "- ") if cell_len(word) > width else word for word in name.split(" "))
    return fold(" ".join(words), width) or [""]


def _across(crossing: tuple[int, int] | None, lane: int, wide: int) -> str:
    """The space between a box with its shape and the next box: an arrow where one crosses it."""
    if crossing is None or not min(crossing) <= lane < max(crossing):
        return " " * wide
    start, end = crossing
    return " " + ("─" * (wide - 2) + "▶" if start < end else "◀" + "─" * (wide - 2))


def _lane(flow: Flow, at: int, names: list[list[str]], heights: list[int], inner: int) -> list[str]:
    """One lane as plain lines: boxes, shapes and arrows. `heights` are the lines of text of each row."""
    lines: list[str] = []
    for row, box in enumerate(flow.lanes[at]):
        if row:
            passes = flow.has_arrow_into(at, row) or _passes(flow, at, row)
            sign = "▼" if flow.has_arrow_into(at, row) else "│" if passes else " "
            lines.append(" " * (1 + (inner + 2) // 2) + sign)
        high = heights[row]
        lines += _box_lines(box, names[row], inner, high) if box else [_empty(flow, at, row, inner)] * (high + 2)
    return lines


def _box_lines(box: Box, name: list[str], inner: int, height: int) -> list[str]:
    edge, above = "─" * (inner + 2), (height - len(name)) // 2
    texts = [""] * above + name + [""] * (height - len(name) - above)
    lines = [f"│ {pad(text, inner, 'middle')} │" for text in texts]
    if box.shape:
        lines[(height - 1) // 2] += f" {box.shape}"
    return [f"┌{edge}┐", *lines, f"└{edge}┘"]


def _passes(flow: Flow, at: int, row: int) -> bool:
    """Whether an arrow from above passes this empty place to a box below."""
    below = next((r for r in range(row, flow.height) if flow.lanes[at][r] is not None), None)
    return below is not None and flow.has_arrow_into(at, below) and any(flow.lanes[at][r] for r in range(row))


def _empty(flow: Flow, at: int, row: int, inner: int) -> str:
    return " " * (1 + (inner + 2) // 2) + ("│" if _passes(flow, at, row) else " ")


def _around(flow: Flow, at: int, number: int, middles: list[int], gutter: int) -> str:
    """The left margin of one line: part of an arrow around boxes, or spaces."""
    for lane, start, end in flow.skips:
        first, last = middles[start], middles[end]
        if lane == at and first <= number <= last:
            return "┌──" if number == first else "└─▶" if number == last else "│  "
    return " " * gutter


# --- curves, bars, links ---------------------------------------------------------------------------------


def _curves(curves: Curves, lang: Language, width: int, depth: Depth | None) -> Lines:
    x_axis, y_axis = axis_of(curves, "x"), axis_of(curves, "y")
    marks = {round((1 - y_axis.place(value)) * (_PLOT_ROWS - 1)): tick_text(value) for value in y_axis.values}
    gutter = max(map(cell_len, marks.values()))
    columns = max(8, min(_PLOT_COLUMNS, width - gutter - 2))
    characters = CharacterSet.for_terminal("utf-8", depth is not None, len(curves.series))
    marked = None if curves.marked_x is None else round(x_axis.place(curves.marked_x) * (columns - 1))
    empty = [("┆", DIM) if column == marked else (" ", Style.null()) for column in range(columns)]
    cells = [list(empty) for _ in range(_PLOT_ROWS)]
    for number, values in enumerate(curves.series.values()):
        for row, column, sign in _signs(curves, values, x_axis, y_axis, columns, characters, number):
            cells[row][column] = (sign, characters.style(number))
    y_label = text_in(curves.y_label, lang)
    lines = [Text(cut(y_label, width), DIM)] if y_label else []
    for row in range(_PLOT_ROWS):
        line = Text(f"{pad(marks.get(row, ''), gutter, 'right')} {characters.box[1 if row in marks else 0]}", DIM)
        for sign, style in cells[row]:
            line.append(sign, style)
        lines.append(line)
    lines += _x_axis(x_axis, gutter, columns, characters)
    x_label = text_in(curves.x_label, lang)
    if x_label:
        lines.append(Text(pad(cut(x_label, width), min(width, gutter + 2 + columns), "right"), DIM))
    for number, label in enumerate(curves.series):
        mark = "⠤⠤" if characters.dots else characters.letter(number)
        lines.append(Text(f"{mark} ", characters.style(number)).append(cut(text_in(label, lang), width - 3), "default"))
    return lines


def _signs(
    curves: Curves, values: np.ndarray, x_axis: Axis, y_axis: Axis, columns: int, characters: CharacterSet, number: int
) -> list[tuple[int, int, str]]:
    """The characters of one curve with their places."""
    down, across = (4, 2) if characters.dots else (1, 1)
    known = np.isfinite(values) & ((values > 0) | (not curves.log_y)) & ((curves.x > 0) | (not curves.log_x))
    xs = np.array([x_axis.place(float(x)) for x in curves.x[known]]) * (columns * across - 1)
    ys = (1 - np.array([y_axis.place(float(y)) for y in values[known]])) * (_PLOT_ROWS * down - 1)
    at = np.arange(int(np.ceil(xs.min() - 1e-9)), int(xs.max() + 1e-9) + 1)
    heights = np.clip(np.rint(np.interp(at, xs, ys)), 0, _PLOT_ROWS * down - 1).astype(int)
    path = np.zeros((_PLOT_ROWS * down, columns * across), dtype=bool)
    for place, here, before in zip(at, heights, [heights[0], *heights[:-1]], strict=True):
        start = before + np.sign(here - before)
        path[min(start, here) : max(start, here) + 1, place] = True
    found = []
    for row in range(_PLOT_ROWS):
        for column in range(columns):
            block = path[row * down : (row + 1) * down, column * across : (column + 1) * across]
            if block.any():
                sign = chr(0x2800 + int(_DOTS[block].sum())) if characters.dots else characters.letter(number)
                found.append((row, column, sign))
    return found


def _x_axis(axis: Axis, gutter: int, columns: int, characters: CharacterSet) -> Lines:
    line, numbers = list(characters.box[3] * columns), ""
    for value in axis.values:
        at, label = round(axis.place(value) * (columns - 1)), tick_text(value)
        start = min(max(0, at - len(label) // 2), columns - len(label))
        if not numbers or start > len(numbers):
            numbers = numbers.ljust(start) + label
            line[at] = characters.box[4]
    corner = " " * (gutter + 1) + characters.box[2]
    return [Text(corner + "".join(line), DIM), Text(" " * (gutter + 2) + numbers, DIM)]


def _bars(bars: Bars, lang: Language, width: int) -> Lines:
    names = [text_in(label, lang) for label in bars.values]
    numbers = [f"{value:,.{bars.decimals}f}{bars.unit}" for value in bars.values.values()]
    return _bar_lines(text_in(bars.title, lang), names, list(bars.values.values()), numbers, width)


def _bar_lines(title: str, names: Sequence[str], values: Sequence[float], numbers: Sequence[str], width: int) -> Lines:
    gutter = min(max(map(cell_len, names)), width // 3)
    longest = max(4, min(40, width - gutter - 2 - max(map(cell_len, numbers))))
    most = max(values) or 1
    lines = [Text(line, BOLD) for line in fold(title, width)] if title else []
    for name, value, number in zip(names, values, numbers, strict=True):
        eighths = round(8 * longest * value / most)
        bar = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
        lines.append(Text(pad(cut(name, gutter), gutter, "right") + " ").append(bar or "▏").append(f" {number}", DIM))
    return lines


def _links(links: Links, lang: Language, width: int, depth: Depth | None) -> Lines:
    """A terminal has no slanted lines: the same weights as a matrix, or as bars where there is one query."""
    if len(links.queries) == 1:
        title, weights = text_in(links.title, lang) or links.queries[0], [float(weight) for weight in links.weights[0]]
        return _bar_lines(title, links.keys, weights, [f"{weight:.2f}" for weight in weights], width)
    return _matrix(
        Matrix(values=links.weights, title=links.title, rows=links.queries, columns=links.keys, highest=1.0),
        lang,
        width,
        depth,
    )
