"""Several heads as small pictures in the terminal: the heads of a layer, one head of every layer, or layers × heads."""

from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from regard.messages import Language, say
from regard.records import Record
from regard.trace.trace import ScaleName
from regard.views import caption
from regard.views.colours import BOLD, DIM, CellPainter, Depth, is_sink, sink_bar
from regard.views.labels import cut_start, pad, printable_label, short_names
from regard.views.picture import Picture, picture

_GAP = 2
_MOST_TIMES = 4
FEW = 8
"""Up to this many heads may use several lines of pictures, so that none is pooled."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A picture pooled to `size` pixels, with a heading."""

    heading: str
    drawn: Picture
    size: int

    @classmethod
    def of(cls, heading: str, whole: Picture, size: int, depth: Depth | None) -> "Thumbnail":
        """The picture in `size` pixels, pooled if it is larger."""
        cells = size if depth else size // 2
        return cls(heading, whole.fitted(cells, cells), size)

    def lines(self, painter: CellPainter) -> list[Text]:
        """The lines of the picture, each `size` columns wide."""
        cells = self.drawn.cells
        if not cells.size:
            return [Text(" " * self.size)]
        cells = _enlarged(cells, self.size if painter.depth else self.size // 2)
        lines = []
        for at in range(0, len(cells), 2 if painter.depth else 1):
            line = Text()
            for column in range(cells.shape[1]):
                if painter.depth:
                    below = float(cells[at + 1, column]) if at + 1 < len(cells) else 0.0
                    painter.pixels(line, float(cells[at, column]), below)
                else:
                    painter.tile(line, float(cells[at, column]), 2)
            line.append(" " * (self.size - line.cell_len))
            lines.append(line)
        return lines


def _enlarged(cells: np.ndarray, size: int) -> np.ndarray:
    """The cells repeated to fill `size` pixels, at most `_MOST_TIMES` times: one word needs no large block."""
    times = max(1, min(_MOST_TIMES, size // max(cells.shape)))
    return cells.repeat(times, 0).repeat(times, 1)


def heads_of(
    record: Record, sample: int, width: int, depth: Depth | None, lang: Language, scale: ScaleName = "auto"
) -> list[Text]:
    """All heads of one record."""
    wholes = [picture(record, head, sample, scale) for head in range(record.shape[1])]
    headings = [say("screen-head", lang, head=whole.head) for whole in wholes]
    pieces = caption.about([record], sample, lang)
    pieces.insert(1, say("screen-heads", lang, count=len(wholes)))
    lines = [*caption.title(record.name, pieces, width), *caption.tokens(record, sample, lang, width), Text()]
    bar = sink_bar(wholes)
    sinks = [str(whole.head) for whole in wholes if is_sink(whole.first, bar)]
    notes = caption.sinks("screen-first-heads", sinks, bar, lang)
    return lines + _grid(headings, wholes, notes, width, depth, lang)


def layers_of(
    records: list[Record],
    heads: list[int],
    samples: list[int],
    width: int,
    depth: Depth | None,
    lang: Language,
    scale: ScaleName = "auto",
) -> list[Text]:
    """The same head of several records."""
    wholes = [picture(*each, scale) for each in zip(records, heads, samples, strict=True)]
    names, pattern = short_names([caption.name_of(record) for record in records])
    which = caption.head_of(records[0], heads[0], lang) or [say("screen-head", lang, head=heads[0])]
    pieces = [*which, say("screen-layers", lang, count=len(records))]
    pieces += caption.part(records, lang)
    lines = [*caption.title(pattern, pieces, width), Text()]
    bar = sink_bar(wholes)
    sinks = [name for name, whole in zip(names, wholes, strict=True) if is_sink(whole.first, bar)]
    notes = caption.sinks("screen-first-layers", sinks, bar, lang)
    return lines + _grid(names, wholes, notes, width, depth, lang)


def _grid(
    headings: list[str], wholes: list[Picture], notes: list[str], width: int, depth: Depth | None, lang: Language
) -> list[Text]:
    """Thumbnails under their headings, several side by side, then the legend."""
    size, across = _grid_size(len(wholes), width, max(max(whole.cells.shape, default=0) for whole in wholes))
    named = zip(headings, wholes, strict=True)
    thumbnails = [Thumbnail.of(heading, whole, size, depth) for heading, whole in named]
    painter = CellPainter.for_pictures((one.drawn for one in thumbnails), depth)
    lines = []
    for start in range(0, len(thumbnails), across):
        row = thumbnails[start : start + across]
        heading = Text(style=BOLD)
        for one in row:
            heading.append(pad(cut_start(one.heading, size), size) + " " * _GAP)
        heading.rstrip()
        lines += [heading, *side_by_side([one.lines(painter) for one in row], size, _GAP), Text()]
    return lines + legend_and_notes(painter, [one.drawn for one in thumbnails], notes, width, lang)


def _grid_size(count: int, width: int, cells: int) -> tuple[int, int]:
    """The size of each thumbnail and the number of thumbnails per row.

    Few heads of a short text are large enough to show every token, two pixels each; many heads share the width.

    >>> _grid_size(4, 80, 13), _grid_size(4, 80, 1000), _grid_size(12, 80, 13)
    ((26, 2), (18, 4), (18, 4))
    """
    whole = 2 * cells
    if count <= FEW and width >= whole > 18:
        across = even_row_length(count, (width + _GAP) // (whole + _GAP))
        return whole, across
    smallest = 18 if count <= 16 else 11
    across = even_row_length(count, (width + _GAP) // (smallest + _GAP))
    size = min(32, (width + _GAP) // across - _GAP)
    return size - size % 2, across


def even_row_length(count: int, most: int) -> int:
    """The number of items per row, at most `most`, so that rows are about equally long.

    >>> even_row_length(12, 10), even_row_length(12, 12), even_row_length(0, 4)
    (6, 12, 1)
    """
    return -(-count // -(-count // max(1, most))) if count else 1


def side_by_side(blocks: list[list[Text]], size: int, gap: int) -> list[Text]:
    """Blocks of lines side by side; shorter blocks are filled with spaces."""
    lines = []
    for at in range(max(len(block) for block in blocks)):
        line = Text()
        for number, block in enumerate(blocks):
            line.append(" " * gap if number else "")
            line.append_text(block[at] if at < len(block) else Text(" " * size))
        lines.append(line)
    return lines


def legend_and_notes(
    painter: CellPainter, drawn: list[Picture], more: list[str], width: int, lang: Language
) -> list[Text]:
    """The legend of the colours, then the notes."""
    notes = [caption.rows([one.record for one in drawn], lang, both=False), *caption.cells(drawn, lang)]
    notes += caption.masked(drawn, lang, dots=painter.depth is None)
    if any((one.cells != one.cells).any() for one in drawn):
        notes.append(say("screen-bad", lang))
    notes += caption.scaling(drawn[0], lang) if drawn else []
    return [*painter.legend(width), *caption.dimmed(caption.wrap_pieces([*notes, *more], width))]


_SMALLEST, _LARGEST = 5, 18
"""Pixels: smaller thumbnails show nothing, so heads continue on another line; larger ones are for fewer heads."""


def layers_by_heads(
    records: list[Record],
    samples: list[int],
    width: int,
    depth: Depth | None,
    lang: Language,
    scale: ScaleName = "auto",
) -> list[Text]:
    """All heads of all records."""
    names, pattern = short_names([printable_label(record.name) for record in records])
    column = say("screen-head-column", lang)
    gutter = min(max(cell_len(name) for name in [*names, column]), width // 4)
    most = max(record.shape[1] for record in records)
    size, across = _columns(most, width - gutter - 1, depth)
    chosen = list(zip(records, samples, strict=True))
    wholes = [[picture(record, head, sample, scale) for head in range(record.shape[1])] for record, sample in chosen]
    rows = [[Thumbnail.of(str(whole.head), whole, size, depth) for whole in row] for row in wholes]
    painter = CellPainter.for_pictures((one.drawn for row in rows for one in row), depth)

    lines = [*caption.title(pattern, _about(records, samples, lang), width), Text()]
    lines.append(Text(pad(column, gutter, "right") + " ", DIM))
    lines[-1].append("".join(pad(str(head), size + 1) for head in range(across)).rstrip())
    for name, row in zip(names, rows, strict=True):
        lines += _layer_lines(cut_start(name, gutter), row, gutter, across, painter)
    drawn = [one.drawn for row in rows for one in row]
    return lines + legend_and_notes(painter, drawn, _sinks([one for row in wholes for one in row], lang), width, lang)


def _columns(heads: int, available: int, depth: Depth | None) -> tuple[int, int]:
    """The size of a thumbnail and the number of thumbnails per line: all heads, or equal parts of them."""
    smallest = _SMALLEST if depth else _SMALLEST + 1
    across = even_row_length(heads, (available + 1) // (smallest + 1))
    size = min(_LARGEST, (available + 1) // across - 1)
    return size if depth else size - size % 2, across


def _about(records: list[Record], samples: list[int], lang: Language) -> list[str]:
    """Kinds, layers, heads and, if all agree, the size."""
    kinds = dict.fromkeys(say(f"screen-{record.kind}", lang) for record in records)
    layers = {record.module for record in records}  # generation calls each layer many times
    pieces = [*kinds, say("screen-layers", lang, count=len(layers))]
    if len({record.shape for record in records}) > 1:
        return pieces + caption.part(records, lang)
    pieces.append(say("screen-heads", lang, count=records[0].shape[1]))
    return pieces + caption.about(records, samples[0], lang)[1:]


def _layer_lines(name: str, row: list[Thumbnail], gutter: int, across: int, painter: CellPainter) -> list[Text]:
    lines = []
    for start in range(0, len(row), across):
        part = row[start : start + across]
        # A continued line is labelled with its first head.
        heading, style = (name, BOLD) if not start else (f"+{start}", DIM)
        for at, line in enumerate(side_by_side([one.lines(painter) for one in part], part[0].size, gap=1)):
            label = pad(heading if at == 0 else "", gutter, "right") + " "
            lines.append(Text.assemble((label, style), line))
        lines.append(Text())
    return lines


def _sinks(wholes: list[Picture], lang: Language) -> list[str]:
    bar = sink_bar(wholes)
    found = sum(is_sink(whole.first, bar) for whole in wholes)
    return caption.sinks("screen-first-count", [str(found)] if found else [], bar, lang, count=len(wholes))
