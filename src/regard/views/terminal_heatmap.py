"""One head as a heatmap in the terminal: numbers in the cells if they fit, else smaller cells.

    numbers   a cell is four columns or more and shows the weight
    tiles     two columns, no number
    pixels    one column and half a line: the smallest, with colour only
    strokes   one column and a line: the smallest without colour

A larger picture is pooled until it fits. An exact part is never pooled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.text import Text

from regard.errors import ArgumentError
from regard.messages import Language, say
from regard.views import caption
from regard.views.colours import DIM, FULLY_MASKED, PROMPT, CellPainter, Depth
from regard.views.exact_part import ExactPart
from regard.views.labels import ARROW, pad, printable_label, special_token_sign, upright
from regard.views.picture import Picture, first_share, share_of_no_key

Mode = Literal["numbers", "tiles", "pixels", "strokes"]
MOST_LINES = 64
_WIDEST_TILE = 9
_FEW_COLUMNS, _WIDEST_OF_FEW = 6, 18
"""Up to this many columns may be wider, so that their labels are complete."""
_TALLEST_LABEL = 10
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_LARGE, _LARGE_TILE = 6, 7
"""Up to this many rows are drawn large with colour: three lines each, in tiles of at least this width."""
_FEW_ROWS = 12
"""Up to this many rows of pixels get a whole line each."""
_WIDEST_SCREEN = 300
"""Columns. If labels need more, the note suggests the HTML page."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a picture is drawn: mode, widths of row labels and cells, and the picture pooled to fit."""

    mode: Mode
    gutter: int
    cell: int
    drawn: Picture
    tall: int = 1
    """Lines per row."""


def choose_layout(whole: Picture, width: int, depth: Depth | None) -> Layout:
    """The most detailed layout that fits in `width` columns. Raises ArgumentError if an exact part does not fit."""
    layout = _fitted(whole, width, depth)
    if layout.drawn is whole or not isinstance(whole.record, ExactPart):
        return layout
    (R, C), gutter = whole.cells.shape, max(layout.gutter, _pixel_gutter(whole, width) if depth else 0)
    high, wide = (2 * MOST_LINES, width - gutter - 1) if depth else (MOST_LINES, width - gutter - 3)
    if depth and high >= R and wide >= C:
        return Layout("pixels", gutter, 1, whole)
    raise ArgumentError("part-screen", rows=R, cols=C, width=width, high=high, wide=wide)


def _fitted(whole: Picture, width: int, depth: Depth | None) -> Layout:
    """The most detailed layout, pooled if nothing else fits."""
    C = whole.cells.shape[1]
    tallest = whole.fitted(MOST_LINES, C)
    gutter = _gutter(tallest, width)
    available = width - gutter - 3  # a space after the labels, and the sign of a fully masked row
    if available >= 4 * C:
        return _with_numbers(tallest, gutter, available, large=depth is not None)
    if available >= 2 * C:
        return Layout("tiles", gutter, 2, tallest)
    if depth is not None:
        gutter = _pixel_gutter(whole, width)
        most = min(width - gutter - 1, 2 * MOST_LINES)
        return Layout("pixels", gutter, 1, whole.fitted(most, most))
    if available >= C:
        return Layout("strokes", gutter, 1, tallest)
    gutter = max(gutter, _digits(whole))
    most = min((width - gutter - 3) // 2, MOST_LINES)
    return Layout("tiles", gutter, 2, whole.fitted(most, most))


def _pixel_gutter(whole: Picture, width: int) -> int:
    return max(_gutter(whole, width, pairs=True), _digits(whole))


def _digits(whole: Picture) -> int:
    """The width of the last position: a pooled picture may need positions as labels."""
    return len(str(whole.origin[0] + whole.record.shape[2]))


def _with_numbers(drawn: Picture, gutter: int, available: int, large: bool) -> Layout:
    """Tiles as wide as their labels, within limits; `large` draws few rows large."""
    R, C = drawn.cells.shape
    large = large and R <= _LARGE and available >= _LARGE_TILE * C
    longest = max(cell_len(label) for label in _column_names(drawn))
    widest = _WIDEST_OF_FEW if C <= _FEW_COLUMNS else _WIDEST_TILE
    wanted = max(_LARGE_TILE if large else 5, min(longest + 2, widest))
    return Layout("numbers", gutter, min(available // C, wanted), drawn, tall=3 if large else 1)


def _gutter(drawn: Picture, width: int, pairs: bool = False) -> int:
    """The width of the row labels: that of the longest, but at most a fifth of the width.

    For labels with two tokens, a third.
    """
    labels = _row_names(drawn, pairs)
    longest = max((cell_len(label) for label in labels), default=0)
    if pairs and drawn.queries is not None:
        longest = 2 * longest + 1
    return min(longest, max(5, width // (3 if caption.names_written(drawn.record) and not pairs else 5)))


def _row_names(drawn: Picture, read_only: bool = False) -> list[str]:
    tokens = drawn.queries if read_only else drawn.row_labels
    return _below_each_other(_labels(tokens, drawn.cells.shape[0], drawn.high, drawn.origin[0]))


def _below_each_other(labels: list[str]) -> list[str]:
    """The labels padded on the right, so that all arrows are aligned when the labels are right-aligned.

    >>> _below_each_other(["<bos> → I", "I → see", "see"])
    ['<bos> → I  ', 'I → see', 'see      ']
    """
    sides = [label.partition(ARROW) for label in labels]
    widest = max((cell_len(written) for _, _, written in sides), default=0)
    if not widest:
        return labels
    return [f"{read}{arrow or ' ' * len(ARROW)}{pad(written, widest)}" for read, arrow, written in sides]


def _column_names(drawn: Picture) -> list[str]:
    return _labels(drawn.keys, drawn.cells.shape[1], drawn.wide, drawn.origin[1])


def _labels(tokens: Sequence[str] | None, count: int, size: int, start: int) -> list[str]:
    """The tokens as labels; without tokens, the first position of each cell."""
    return [printable_label(token) for token in tokens] if tokens else [str(start + i * size) for i in range(count)]


# --- labels ----------------------------------------------------------------------------------------------


def column_labels(layout: Layout) -> list[Text]:
    """The lines above the map: tokens, written downwards if they are too long, or positions."""
    drawn, cell = layout.drawn, layout.cell
    C = drawn.cells.shape[1]
    indent = " " * (layout.gutter + 1)
    if (drawn.keys is None and cell < 4) or cell == 1:
        return [Text(indent + _ticks(C, cell, drawn.wide, drawn.origin[1]), DIM)]
    labels = _column_names(drawn)
    if cell >= 6 or all(cell_len(label) < cell for label in labels):
        return [Text(indent + "".join(_head(label, cell) for label in labels))]
    # A special token written downwards would be taller than every Chinese word.
    signs = {label: sign for label in labels if cell_len(label) >= cell and (sign := special_token_sign(label))}
    if signs:
        named = Text(indent + "  ".join(f"{sign} {label}" for label, sign in signs.items()), DIM)
        labels = [signs.get(label, label) for label in labels]
        if all(cell_len(label) < cell for label in labels):
            return [named, Text(indent + "".join(_head(label, cell) for label in labels))]
        return [named, *_upright(labels, cell, indent)]
    return _upright(labels, cell, indent)


def _upright(labels: list[str], cell: int, indent: str) -> list[Text]:
    """Labels written downwards, each above its column."""
    tall = [upright(label, _TALLEST_LABEL) for label in labels]
    height = max(len(letters) for letters in tall)
    side = "middle" if cell > 2 else "left"
    rows = zip(*([""] * (height - len(letters)) + letters for letters in tall), strict=True)
    return [Text(indent + "".join(pad(letter, cell, side) for letter in row)) for row in rows]


def _head(label: str, cell: int) -> str:
    """A label above its column, with a space before the next."""
    return pad(pad(label, min(cell - 1, cell_len(label))), cell, "middle")


def _ticks(count: int, cell: int, size: int, start: int = 0) -> str:
    """Positions along the columns, as many as fit.

    >>> _ticks(12, 1, 1), _ticks(12, 1, 1, start=1000)
    ('0    5    10', '1000')
    """
    longest = len(str(start + (count - 1) * size)) + 2
    step = next((step for step in _TICKS if step * cell >= longest), count)
    line = ""
    for index in range(0, count, step):
        label = str(start + index * size)
        if index * cell + len(label) <= count * cell:
            line = line.ljust(index * cell) + label
    return line


# --- rows ------------------------------------------------------------------------------------------------


def row_lines(layout: Layout, painter: CellPainter) -> list[Text]:
    """The map, each row after its label."""
    if layout.mode == "pixels":
        return _pixel_rows(layout, painter)
    drawn = layout.drawn
    labels = _row_names(drawn)
    lines = []
    for label, row, attending in zip(labels, drawn.cells, drawn.attending, strict=True):
        for at in range(layout.tall):
            middle = at == layout.tall // 2
            line = Text(pad(label if middle else "", layout.gutter, "right") + " ")
            for value in row:
                painter.tile(line, float(value), layout.cell, bare=not middle)
            if middle and not attending:
                line.append(f" {FULLY_MASKED}")
            lines.append(line)
    if drawn.high == 1 and (prompt := drawn.record.prompt) is not None and 0 < prompt < len(labels):
        border = " " * (layout.gutter + 1) + PROMPT * (layout.cell * drawn.cells.shape[1])
        lines.insert(prompt * layout.tall, Text(border, DIM))
    return lines


def _pixel_rows(layout: Layout, painter: CellPainter) -> list[Text]:
    drawn, gutter = layout.drawn, layout.gutter
    labels = _row_names(drawn, read_only=True)  # two rows share a line
    R, C = drawn.cells.shape
    if R <= _FEW_ROWS:
        pairs = [(i, i) for i in range(R)]
    else:
        pairs = [(i, i + 1) for i in range(0, R, 2)]
    lines = []
    for at, (upper, lower) in enumerate(pairs):
        if drawn.queries is not None:
            both = labels[upper : lower + 1]
            share = (gutter - len(both) + 1) // len(both)
            label = " ".join(pad(name, min(share, cell_len(name))) for name in both)
        else:
            label = labels[upper] if R <= _FEW_ROWS or at % 4 == 0 else ""
        line = Text()
        line.append(pad(label, gutter, "right") + " ", DIM)
        for column in range(C):
            below = float(drawn.cells[lower, column]) if lower < R else 0.0
            painter.pixels(line, float(drawn.cells[upper, column]), below)
        lines.append(line)
    return lines


def notes_on(whole: Picture, layout: Layout, lang: Language) -> list[str]:
    """The notes below the map."""
    drawn = layout.drawn
    named = drawn.queries is not None
    notes = [caption.rows([whole.record], lang, named, layout.mode != "pixels"), *caption.cell(drawn, lang)]
    notes += caption.prompt(whole.record, lang)
    if layout.mode == "pixels" and len(drawn.cells) > _FEW_ROWS:
        notes.append(say("screen-two-rows", lang))
    notes += caption.masked([drawn], lang, dots=layout.mode != "pixels")
    notes += _where_words_are(whole, layout, lang)
    masked = int((drawn.attending == 0).sum())
    if masked and layout.mode == "pixels":
        notes.append(say("screen-fully-masked-count", lang, count=masked))
    elif masked:
        notes.append(say("screen-fully-masked", lang))
    if layout.mode != "numbers" and (drawn.cells != drawn.cells).any():
        notes.append(say("screen-bad", lang))
    notes += [*caption.scaling(whole, lang), *caption.sink(first_share(whole, compute=True), whole, lang)]
    return [*notes, *caption.no_key(share_of_no_key(whole), lang)]


def _where_words_are(whole: Picture, layout: Layout, lang: Language) -> list[str]:
    """How to see the tokens of the columns, if only positions fit."""
    if whole.keys is None or (layout.cell > 1 and layout.drawn.keys is not None):
        return []
    C = whole.cells.shape[1]
    longest = max(cell_len(label) for label in _row_names(whole.fitted(MOST_LINES, C)))
    needed = longest + 3 + 2 * C
    if needed > _WIDEST_SCREEN:
        return [say("screen-positions-page", lang)]
    return [say("screen-positions", lang, width=needed)]
