"""A drawing as one SVG file that needs nothing else: no fonts, no scripts, no style sheet from elsewhere.

Each block becomes a piece with its own origin and size; pieces are stacked. The card has its own background, so that
it is readable on light and dark pages.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len

from regard.course.drawings.blocks import (
    Bars,
    Block,
    Box,
    BoxKind,
    Curves,
    Drawing,
    Flow,
    Label,
    Line,
    Links,
    Matrix,
    Sign,
    axis_of,
    text_in,
    tick_text,
)
from regard.messages import Language
from regard.views.colours import RGB, needs_white_text, viridis
from regard.views.labels import fold

INK, QUIET, LINE, CARD, HIDDEN = "#1b1b1f", "#5c5c66", "#c9c9d2", "#ffffff", "#ececf1"
ACCENTS = ("#2563a8", "#c2570c", "#2f855a", "#9b2c77", "#8a6d1a", "#0e7490")
"""Colours of curves and lines: far apart in hue and lightness, also for colour-blind readers."""
BOXES: dict[BoxKind, tuple[str, str]] = {
    "plain": ("#f4f5f8", "#9aa0ae"),
    "attention": ("#fdeeda", "#d08a2e"),
    "position-wise": ("#e0f0ea", "#4c9a7c"),
    "input": ("#e7edf8", "#5b7fb8"),
    "quiet": ("#ffffff", "#c9c9d2"),
}
FONTS = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"
SIZE, SMALL = 14, 12
"""Pixels of the two sizes of text."""
MARGIN, GAP = 24, 22
NARROWEST = 480


class PicturePart(NamedTuple):
    """Part of a picture with its own origin."""

    width: float
    height: float
    body: str

    def at(self, x: float, y: float) -> str:
        return f'<g transform="translate({x:.1f} {y:.1f})">{self.body}</g>'


def to_svg(drawing: Drawing, lang: Language) -> str:
    """The picture as the text of an SVG file."""
    pieces = [_piece(block, lang) for block in drawing.blocks]
    title, caption = (text_in(label, lang) for label in (drawing.title, drawing.caption))
    width = max(NARROWEST, _wide(title, SIZE + 2), *(piece.width for piece in pieces)) + 2 * MARGIN
    y, body = float(MARGIN + SIZE + 2), [_text(MARGIN, MARGIN + SIZE, title, size=SIZE + 2, weight=600)]
    for piece in pieces:
        y += GAP
        body.append(piece.at((width - piece.width) / 2, y))
        y += piece.height
    for line in fold(caption, int((width - 2 * MARGIN) / (SMALL * 0.56))) if caption else ():
        y += SMALL + 7
        body.append(_text(MARGIN, y + 8, line, size=SMALL, fill=QUIET))
    height = y + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-labelledby="t d" font-family="{FONTS}" fill="{INK}">\n'
        f'<title id="t">{escape(title)}</title>\n<desc id="d">{escape(caption or title)}</desc>\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="{QUIET}"/></marker></defs>\n'
        f'<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10" fill="{CARD}" '
        f'stroke="#e3e3ea"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _piece(block: Block, lang: Language) -> PicturePart:
    match block:
        case Matrix():
            return _matrix(block, lang)
        case Line():
            return _line(block, lang)
        case Flow():
            return _flow(block, lang)
        case Curves():
            return _curves(block, lang)
        case Bars():
            return _bars(block, lang)
        case Links():
            return _links(block, lang)


# --- matrices --------------------------------------------------------------------------------------------


def _matrix(matrix: Matrix, lang: Language) -> PicturePart:
    rows, columns = matrix.values.shape
    numbers = [matrix.number(r, c) for r in range(rows) for c in range(columns)]
    names = [text_in(label, lang) for label in matrix.columns]
    cell = max([26.0, *(_wide(text, SMALL) + 12 for text in numbers + names)])
    if not any(numbers):
        cell = max([min(26.0, 360 / max(rows, columns)), *(_wide(text, SMALL) + 6 for text in names)])
    high = 26.0 if any(numbers) or rows <= 14 else 360 / rows
    left = max([0.0, *(_wide(text_in(label, lang), SMALL) + 8 for label in matrix.rows)])
    title = text_in(matrix.title, lang)
    top = (SIZE + 8 if title else 0) + (SMALL + 6 if names else 0)
    width = max(left + cell * columns, _wide(title, SIZE))
    parts = [_text(left + cell * columns / 2, SIZE, title, anchor="middle", weight=600)] if title else []
    parts += [_text(left + cell * (c + 0.5), top - 5, name, SMALL, QUIET, "middle") for c, name in enumerate(names)]
    for r, label in enumerate(matrix.rows):
        parts.append(_text(left - 6, top + high * (r + 0.5) + 4, text_in(label, lang), SMALL, QUIET, "end"))
    for r in range(rows):
        for c in range(columns):
            parts.append(_cell(matrix, r, c, left + cell * c, top + high * r, cell, high))
    for r, c in sorted(matrix.marked):
        parts.append(_rect(left + cell * c + 1, top + high * r + 1, cell - 2, high - 2, "none", "#d62728", 2))
    return PicturePart(width, top + high * rows, "".join(parts))


def _cell(matrix: Matrix, row: int, column: int, x: float, y: float, width: float, height: float) -> str:
    if matrix.is_mask:
        visible = bool(matrix.values[row, column])
        fill = _hex(viridis(0.75).rgb) if visible else HIDDEN
        return _rect(x, y, width, height, fill, CARD)
    level, number = matrix.level(row, column), matrix.number(row, column)
    if level != level or math.isinf(float(matrix.values[row, column])):
        fill, ink = HIDDEN, QUIET
    else:
        rgb = _signed(level) if matrix.is_signed else viridis(level).rgb
        fill, ink = _hex(rgb), "#ffffff" if needs_white_text(rgb) else "#000000"
    text = _text(x + width / 2, y + height / 2 + 4, number, SMALL, ink, "middle") if number else ""
    return _rect(x, y, width, height, fill, CARD) + text


def _signed(level: float) -> RGB:
    """Blue below 0, white at 0, orange above it."""
    end = (194, 87, 12) if level > 0 else (37, 99, 168)
    red, green, blue = (round(255 + (to - 255) * min(1.0, abs(level)) * 0.85) for to in end)
    return red, green, blue


def _hex(rgb: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def _line(line: Line, lang: Language) -> PicturePart:
    pieces = [_sign(part, lang) if isinstance(part, Sign) else _matrix(part, lang) for part in line.parts]
    height, x, body = max(piece.height for piece in pieces), 0.0, []
    for part, piece in zip(line.parts, pieces, strict=True):
        # Matrices stand on one base line; signs are centred on the cells.
        y = (height - piece.height) if isinstance(part, Matrix) else height - 26 * _rows_beside(line, part) / 2 - 10
        body.append(piece.at(x, y))
        x += piece.width + 12
    return PicturePart(x - 12, height, "".join(body))


def _rows_beside(line: Line, sign: Sign) -> int:
    """The number of rows of the smaller matrix next to a sign."""
    at = line.parts.index(sign)
    beside = [part for part in line.parts[max(0, at - 1) : at + 2] if isinstance(part, Matrix)]
    return min((part.values.shape[0] for part in beside), default=1)


def _sign(sign: Sign, lang: Language) -> PicturePart:
    text = text_in(sign.text, lang)
    width = _wide(text, SIZE) + 4
    return PicturePart(width, 20, _text(width / 2, 14, text, SIZE, QUIET, "middle"))


# --- flow charts -----------------------------------------------------------------------------------------

HIGH, DOWN, BETWEEN, SKIP = 34, 22, 56, 22
"""Pixels: a box, the arrow below it, the space between lanes, the space for an arrow around boxes."""


def _flow(flow: Flow, lang: Language) -> PicturePart:
    widths = [max(_wide(text_in(box.text, lang), SIZE) + 28 for box in lane if box) for lane in flow.lanes]
    shapes = [max(_wide(box.shape, SMALL) + 10 if box.shape else 0 for box in lane if box) for lane in flow.lanes]
    lefts, x = [], 0.0
    for lane, (width, shape) in enumerate(zip(widths, shapes, strict=True)):
        x += SKIP if any(skip[0] == lane for skip in flow.skips) else 0
        lefts.append(x)
        x += width + shape + BETWEEN
    top = SIZE + 12 if flow.titles else 0
    parts = [
        _text(left + width / 2, SIZE, text_in(title, lang), weight=600, anchor="middle")
        for left, width, title in zip(lefts, widths, flow.titles, strict=False)
    ]

    def y_of(row: int) -> float:
        return top + row * (HIGH + DOWN)

    for at, boxes in enumerate(flow.lanes):
        for row, box in enumerate(boxes):
            if box is not None:
                parts.append(_box(box, lefts[at], y_of(row), widths[at], lang))
            if flow.has_arrow_into(at, row):
                above = max(r for r in range(row) if boxes[r] is not None)
                middle = lefts[at] + widths[at] / 2
                parts.append(_arrow(f"M{middle:.1f} {y_of(above) + HIGH:.1f}V{y_of(row) - 2:.1f}"))
    for row, start, end in flow.across:
        y = y_of(row) + HIGH / 2
        forward = start < end
        left, right = min(start, end), max(start, end)
        beside = flow.lanes[left][row]
        shape = _wide(beside.shape, SMALL) + 10 if beside and beside.shape else 0
        inner = lefts[left] + widths[left] + shape + 2, lefts[right] - 3
        parts.append(_arrow("M{:.1f} {y:.1f}H{:.1f}".format(*(inner if forward else inner[::-1]), y=y)))
    for at, start, end in flow.skips:
        x0, y0, y1 = lefts[at], y_of(start) + HIGH / 2, y_of(end) + HIGH / 2
        out = x0 - SKIP + 4
        parts.append(
            _arrow(
                f"M{x0:.1f} {y0:.1f}H{out + 6:.1f}Q{out:.1f} {y0:.1f} {out:.1f} {y0 + 6:.1f}V{y1 - 6:.1f}"
                f"Q{out:.1f} {y1:.1f} {out + 6:.1f} {y1:.1f}H{x0 - 3:.1f}"
            )
        )
    return PicturePart(x - BETWEEN, y_of(flow.height) - DOWN, "".join(parts))


def _box(box: Box, x: float, y: float, width: float, lang: Language) -> str:
    fill, edge = BOXES[box.kind]
    shape = _text(x + width + 8, y + HIGH / 2 + 4, box.shape, SMALL, QUIET) if box.shape else ""
    text = _text(x + width / 2, y + HIGH / 2 + 5, text_in(box.text, lang), SIZE, INK, "middle")
    return _rect(x, y, width, HIGH, fill, edge, radius=7) + text + shape


def _arrow(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{QUIET}" stroke-width="1.5" marker-end="url(#head)"/>'


# --- curves and bars -------------------------------------------------------------------------------------

PLOT = (520, 240)
"""Pixels of the area of the curves."""


def _curves(curves: Curves, lang: Language) -> PicturePart:
    wide, high = PLOT
    x_ticks, y_ticks = axis_of(curves, "x"), axis_of(curves, "y")
    left = max(_wide(tick_text(value), SMALL) for value in y_ticks.values) + 12
    top = SMALL + 12 if text_in(curves.y_label, lang) else 4
    parts = [_text(0, SMALL, text_in(curves.y_label, lang), SMALL, QUIET)] if top > 4 else []
    for value in y_ticks.values:
        y = top + high * (1 - y_ticks.place(value))
        parts.append(f'<path d="M{left} {y:.1f}h{wide}" stroke="{HIDDEN}"/>')
        parts.append(_text(left - 6, y + 4, tick_text(value), SMALL, QUIET, "end"))
    for value in x_ticks.values:
        x = left + wide * x_ticks.place(value)
        parts.append(f'<path d="M{x:.1f} {top + high}v4" stroke="{QUIET}"/>')
        parts.append(_text(x, top + high + 18, tick_text(value), SMALL, QUIET, "middle"))
    parts.append(f'<path d="M{left} {top}v{high}h{wide}" fill="none" stroke="{LINE}"/>')
    if curves.marked_x is not None:
        x = left + wide * x_ticks.place(curves.marked_x)
        parts.append(f'<path d="M{x:.1f} {top}v{high}" stroke="{QUIET}" stroke-dasharray="4 4"/>')
    for at, values in enumerate(curves.series.values()):
        points = [
            f"{left + wide * x_ticks.place(x):.1f} {top + high * (1 - y_ticks.place(y)):.1f}"
            for x, y in zip(curves.x, values, strict=True)
            if np.isfinite(y) and not (curves.log_y and y <= 0) and not (curves.log_x and x <= 0)
        ]
        colour = ACCENTS[at % len(ACCENTS)]
        dashes = "" if at < len(ACCENTS) else ' stroke-dasharray="5 3"'
        parts.append(f'<path d="M{"L".join(points)}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
    y = top + high + 36
    parts.append(_text(left + wide, y, text_in(curves.x_label, lang), SMALL, QUIET, "end"))
    x = left
    for at, label in enumerate(curves.series):
        name = text_in(label, lang)
        if x > left and x + _wide(name, SMALL) + 30 > left + wide - _wide(text_in(curves.x_label, lang), SMALL):
            x, y = left, y + 20
        parts.append(f'<path d="M{x:.1f} {y - 4:.1f}h18" stroke="{ACCENTS[at % len(ACCENTS)]}" stroke-width="3"/>')
        parts.append(_text(x + 24, y, name, SMALL))
        x += _wide(name, SMALL) + 44
    return PicturePart(left + wide + 16, y + 4, "".join(parts))


def _bars(bars: Bars, lang: Language) -> PicturePart:
    names = [text_in(label, lang) for label in bars.values]
    title = text_in(bars.title, lang)
    left = max(_wide(name, SIZE) for name in names) + 12
    top, wide, most = (SIZE + 10 if title else 0), 300, max(bars.values.values()) or 1
    parts = [_text(0, SIZE, title, weight=600)] if title else []
    longest = 0.0
    for row, (name, value) in enumerate(zip(names, bars.values.values(), strict=True)):
        y, length = top + row * 28, wide * value / most
        number = f"{value:,.{bars.decimals}f}{bars.unit}"
        longest = max(longest, length + 8 + _wide(number, SMALL))
        parts.append(_text(left - 10, y + 17, name, SIZE, INK, "end"))
        parts.append(_rect(left, y + 3, max(1, length), 20, ACCENTS[0], "none", radius=3))
        parts.append(_text(left + length + 8, y + 17, number, SMALL, QUIET))
    return PicturePart(left + max(wide, longest), top + 28 * len(names), "".join(parts))


# --- links -----------------------------------------------------------------------------------------------


def _links(links: Links, lang: Language) -> PicturePart:
    title = text_in(links.title, lang)
    top = SIZE + 10 if title else 0
    above, below = _spread(links.queries, links.tight), _spread(links.keys, links.tight)
    width = max(above[-1], below[-1])
    shift_above, shift_below = (width - above[-1]) / 2, (width - below[-1]) / 2
    parts = [_text(width / 2, SIZE, title, weight=600, anchor="middle")] if title else []
    high = 96
    for q in range(len(links.queries)):
        for k in range(len(links.keys)):
            weight = float(links.weights[q, k])
            if weight >= links.least:
                x0 = shift_above + (above[q] + above[q + 1]) / 2
                x1 = shift_below + (below[k] + below[k + 1]) / 2
                parts.append(
                    f'<path d="M{x0:.1f} {top + 24}C{x0:.1f} {top + 24 + high / 2} {x1:.1f} {top + 24 + high / 2} '
                    f'{x1:.1f} {top + 24 + high}" fill="none" stroke="{ACCENTS[q % len(ACCENTS)]}" '
                    f'stroke-width="{1 + 7 * weight:.1f}" stroke-opacity="{0.25 + 0.75 * weight:.2f}"/>'
                )
    for q, token in enumerate(links.queries):
        x, colour = shift_above + (above[q] + above[q + 1]) / 2, ACCENTS[q % len(ACCENTS)]
        parts.append(_text(x, top + 16, token, SIZE, colour, "middle", 600))
    for k, token in enumerate(links.keys):
        x = shift_below + (below[k] + below[k + 1]) / 2
        parts.append(_text(x, top + 24 + high + 18, token, SIZE, INK, "middle"))
    return PicturePart(width, top + 24 + high + 24, "".join(parts))


def _spread(tokens: Sequence[str], tight: bool = False) -> list[float]:
    """The left edge of each token, and the right edge of the last."""
    edges, least, space = [0.0], 26.0 if tight else 44.0, 12 if tight else 20
    for token in tokens:
        edges.append(edges[-1] + max(least, _wide(token, SIZE) + space))
    return edges


# --- text ------------------------------------------------------------------------------------------------


def _wide(text: Label, size: float) -> float:
    """The width of a text: about half the size for each column of a terminal, a little more to be safe."""
    return cell_len(str(text)) * size * 0.56


def _text(
    x: float, y: float, text: str, size: int = SIZE, fill: str = INK, anchor: str = "start", weight: int = 400
) -> str:
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    colour = "" if fill == INK else f' fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{colour}{place}{bold}>{escape(text)}</text>'


def _rect(
    x: float, y: float, width: float, height: float, fill: str, stroke: str, thick: float = 1, radius: float = 0
) -> str:
    round_ = f' rx="{radius}"' if radius else ""
    edge = "" if stroke == "none" else f' stroke="{stroke}" stroke-width="{thick}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"{edge}{round_}/>'
