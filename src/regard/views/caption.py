"""Captions of a picture in the chosen language: title, meaning of rows and cells, notes."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.text import Text

from regard.messages import Language, Listed, say
from regard.records import Record, tokens_of
from regard.trace.from_weights import is_mean, without_mean
from regard.views.colours import BOLD, DIM
from regard.views.exact_part import ExactPart, position_range
from regard.views.labels import cut, cut_start, printable_label, readable
from regard.views.picture import Picture
from regard.views.scales import is_sink, sink_bar


def title(name: str, pieces: Iterable[str], width: int) -> list[Text]:
    """The name in bold, then the other pieces, wrapped to the width."""
    lines = wrap_pieces([cut_start(printable_label(name), width), *pieces], width)
    lines[0].stylize(BOLD, 0, len(cut_start(printable_label(name), width)))
    return lines


def wrap_pieces(pieces: Iterable[str], width: int) -> list[Text]:
    """The pieces joined by dots; lines break only between pieces, and a piece longer than a line is cut."""
    lines: list[str] = []
    for piece in pieces:
        piece = cut(piece, width)
        if lines and cell_len(lines[-1]) + 3 + cell_len(piece) <= width:
            lines[-1] += f" · {piece}"
        else:
            lines.append(piece)
    return [Text(line) for line in lines]


def name_of(record: Record) -> str:
    """The module path in printable characters. `head_of` names a mean over heads."""
    return printable_label(without_mean(record.name) if is_mean(record) else record.name)


def head_of(record: Record, head: int, lang: Language) -> list[str]:
    """The head, if the record has several; or the note that the record is a mean over heads."""
    if is_mean(record):
        return [say("screen-mean", lang)]
    return [say("screen-head", lang, head=head)] if record.shape[1] > 1 else []


def prompt(record: Record, lang: Language) -> list[str]:
    """The number of prompt rows, for generated text."""
    return [] if record.prompt is None else [say("screen-prompt", lang, count=record.prompt)]


def dimmed(lines: list[Text]) -> list[Text]:
    """The same lines, dimmed."""
    for line in lines:
        line.stylize(DIM)
    return lines


def about(records: Sequence[Record], sample: int, lang: Language) -> list[str]:
    """Kind, size or part, and the sample if there are several. The records have the same shape."""
    B, _, T, S = records[0].shape
    pieces = [say(f"screen-{records[0].kind}", lang), *(part(records, lang) or [say("screen-size", lang, T=T, S=S)])]
    return [*pieces, say("screen-sample", lang, sample=sample, count=B)] if B > 1 else pieces


def part(records: Sequence[Record], lang: Language) -> list[str]:
    """The drawn queries and keys, and the size of the whole map. Empty for whole records; omits what differs."""
    parts = [record for record in records if isinstance(record, ExactPart)]
    sides = {
        "screen-part-queries": {position_range(one.rows) for one in parts},
        "screen-part-keys": {position_range(one.cols) for one in parts},
    }
    wholes = {one.whole.shape[2:] for one in parts}
    pieces = [say(key, lang, places=found.pop()) for key, found in sides.items() if len(found) == 1]
    return pieces + ([say("screen-part-of", lang, T=T, S=S) for T, S in wholes] if len(wholes) == 1 else [])


def names_written(record: Record) -> bool:
    """Whether row labels show the token read and the token written."""
    return record.written is not None and record.query_tokens is not None


def rows(records: Sequence[Record], lang: Language, named: bool = True, both: bool = True) -> str:
    """The meaning of a row, as `rows_key` determines it."""
    return say(f"screen-rows-{rows_key(records, named, both)}", lang)


def rows_key(records: Sequence[Record], named: bool = True, both: bool = True) -> str:
    """What a row stands for: "write" (token read → token written), "read" (token read) or "look" (just a query).

    named   whether rows are labelled with tokens
    both    whether the labels include the token written

    For weights that no model of this package produced, the meaning of a row is unknown: "look".
    """
    if named and all(names_written(record) for record in records):
        return "write" if both else "read"
    if named and all(record.kind == "cross" and record.ids is not None for record in records):  # recorded from a model
        return "read"
    return "look"


def cell(drawn: Picture, lang: Language) -> list[str]:
    """The size of a cell, if it is more than one weight."""
    return cells([drawn], lang)


def cells(drawn: Iterable[Picture], lang: Language) -> list[str]:
    """The size of a cell in several pictures. The last cells may cover fewer tokens and look fainter."""
    drawn = list(drawn)
    sizes = {(one.high, one.wide) for one in drawn}
    if not sizes - {(1, 1)}:
        return []
    high, wide = (max(each) for each in zip(*sizes, strict=True))
    is_ragged = any(one.record.shape[2] % one.high or one.record.shape[3] % one.wide for one in drawn)
    key = "screen-cell-most" if len(sizes) > 1 else "screen-cell-last" if is_ragged else "screen-cell"
    return [say(key, lang, high=high, wide=wide)]


def masked(drawn: Iterable[Picture], lang: Language, *, dots: bool) -> list[str]:
    """What empty cells mean, if there are any."""
    if not any((one.cells == 0).any() for one in drawn):
        return []
    return [say("screen-hidden" if dots else "screen-hidden-blank", lang)]


def sink(share: float | None, whole: Picture, lang: Language) -> list[str]:
    """The share of attention of the first token, if it is large or the caller chose a scale."""
    if share is None or not (is_sink(share, sink_bar([whole])) or whole.scale != "auto"):
        return []
    return [say("screen-first", lang, share=round(100 * share))]


def no_key(share: float | None, lang: Language) -> list[str]:
    """The share of attention that goes to no key: attention with a learned sink leaves the rest of each row to it."""
    return [] if share is None else [say("screen-no-key", lang, share=round(100 * share))]


def scaling(whole: Picture, lang: Language) -> list[str]:
    """What the scale does to the weights. Empty for the default scale and for a scale without effect."""
    if whole.scale == "auto" or (whole.scale == "hidden" and whole.first_column < 0):
        return []
    if whole.scale in ("linear", "log"):
        return [say(f"screen-scale-{whole.scale}", lang)]
    return [say(f"screen-scale-{whole.scale}", lang, count=whole.wide)]


def sinks(key: str, found: list[str], bar: float, lang: Language, **values: int) -> list[str]:
    """In which of several pictures the first token receives a large share."""
    if not found:
        return []
    names = Listed(found).joined(lang)
    return [say(key, lang, share=round(100 * bar), found=names, **values)]


def tokens(record: Record, sample: int, lang: Language, width: int) -> list[Text]:
    """The tokens on one line, for pictures too small to label their rows."""

    def line(key: str, rows: tuple[tuple[str, ...], ...] | None) -> list[Text]:
        if rows is None:
            return []
        text = " ".join(printable_label(token) for token in readable(tokens_of(rows, sample)[:width]))
        return [Text(cut(f"{say(key, lang)}{text}", width), DIM)]

    if record.query_tokens == record.key_tokens:
        return line("screen-tokens", record.query_tokens)
    return line("screen-queries", record.query_tokens) + line("screen-keys", record.key_tokens)
