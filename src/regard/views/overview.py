"""The whole model at a glance: a row for each layer, a column for each head, a small picture where they meet."""

from rich.cells import cell_len
from rich.text import Text

from regard.records import Record
from regard.trace.trace import ScaleName
from regard.views import caption
from regard.views.colours import Depth
from regard.views.ink import BOLD, DIM, Ink
from regard.views.labels import cut_start, pad, short_names, visible
from regard.views.picture import Picture, picture
from regard.views.scales import is_sink, sink_bar
from regard.views.thumbnails import Thumbnail, below, beside, evenly
from regard.words import Language, say

_SMALLEST, _LARGEST = 5, 18
"""In pixels: smaller pictures show nothing, so heads go on a further line; larger ones are for fewer heads."""


def layers_by_heads(
    records: list[Record],
    samples: list[int],
    width: int,
    depth: Depth | None,
    lang: Language,
    scale: ScaleName = "auto",
) -> list[Text]:
    """All heads of all records."""
    names, pattern = short_names([visible(record.name) for record in records])
    column = say("screen-head-column", lang)
    gutter = min(max(cell_len(name) for name in [*names, column]), width // 4)
    most = max(record.shape[1] for record in records)
    size, across = _columns(most, width - gutter - 1, depth)
    chosen = list(zip(records, samples, strict=True))
    wholes = [[picture(record, head, sample, scale) for head in range(record.shape[1])] for record, sample in chosen]
    rows = [[Thumbnail.of(str(whole.head), whole, size, depth) for whole in row] for row in wholes]
    ink = Ink.for_pictures((one.drawn for row in rows for one in row), depth)

    lines = [*caption.title(pattern, _about(records, samples, lang), width), Text()]
    lines.append(Text(pad(column, gutter, "right") + " ", DIM))
    lines[-1].append("".join(pad(str(head), size + 1) for head in range(across)).rstrip())
    for name, row in zip(names, rows, strict=True):
        lines += _layer(cut_start(name, gutter), row, gutter, across, ink)
    drawn = [one.drawn for row in rows for one in row]
    return lines + below(ink, drawn, _sinks([one for row in wholes for one in row], lang), width, lang)


def _columns(heads: int, room: int, depth: Depth | None) -> tuple[int, int]:
    """How large a thumbnail is, and how many stand in a line: all heads, or equal parts of them."""
    smallest = _SMALLEST if depth else _SMALLEST + 1
    across = evenly(heads, (room + 1) // (smallest + 1))
    size = min(_LARGEST, (room + 1) // across - 1)
    return size if depth else size - size % 2, across


def _about(records: list[Record], samples: list[int], lang: Language) -> list[str]:
    """Kinds, layers, heads and, where they agree, the size."""
    kinds = dict.fromkeys(say(f"screen-{record.kind}", lang) for record in records)
    layers = {record.module for record in records}  # a generation calls each many times
    pieces = [*kinds, say("screen-layers", lang, count=len(layers))]
    if len({record.shape for record in records}) > 1:
        return pieces + caption.part(records, lang)
    pieces.append(say("screen-heads", lang, count=records[0].shape[1]))
    return pieces + caption.about(records, samples[0], lang)[1:]


def _layer(name: str, row: list[Thumbnail], gutter: int, across: int, ink: Ink) -> list[Text]:
    lines = []
    for start in range(0, len(row), across):
        part = row[start : start + across]
        # Heads that go on below are named by the first of them.
        heading, style = (name, BOLD) if not start else (f"+{start}", DIM)
        for at, line in enumerate(beside([one.lines(ink) for one in part], part[0].size, gap=1)):
            label = pad(heading if at == 0 else "", gutter, "right") + " "
            lines.append(Text.assemble((label, style), line))
        lines.append(Text())
    return lines


def _sinks(wholes: list[Picture], lang: Language) -> list[str]:
    bar = sink_bar(wholes)
    found = sum(is_sink(whole.first, bar) for whole in wholes)
    return caption.sinks("screen-first-count", [str(found)] if found else [], bar, lang, count=len(wholes))
