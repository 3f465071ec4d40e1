"""The words around a picture: what it is of, what a cell is, what to notice. In the language asked for."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.text import Text

from regard.messages import Language, Listed, say
from regard.records import Record, tokens_of
from regard.trace.from_weights import is_mean, without_mean
from regard.views.colours import BOLD, DIM
from regard.views.exact_part import Part, places
from regard.views.labels import cut, cut_start, readable, visible
from regard.views.picture import Picture
from regard.views.scales import is_sink, sink_bar


def title(name: str, pieces: Iterable[str], width: int) -> list[Text]:
    """The name in bold, then what else there is to say, on as many lines as it takes."""
    lines = flow([cut_start(visible(name), width), *pieces], width)
    lines[0].stylize(BOLD, 0, len(cut_start(visible(name), width)))
    return lines


def flow(pieces: Iterable[str], width: int) -> list[Text]:
    """Pieces with dots between them, broken only between pieces; one too long for a line is cut."""
    lines: list[str] = []
    for piece in pieces:
        piece = cut(piece, width)
        if lines and cell_len(lines[-1]) + 3 + cell_len(piece) <= width:
            lines[-1] += f" · {piece}"
        else:
            lines.append(piece)
    return [Text(line) for line in lines]


def name_of(record: Record) -> str:
    """The path of the module, as it can be shown; that a mean is one is told by `head_of`."""
    return visible(without_mean(record.name) if is_mean(record) else record.name)


def head_of(record: Record, head: int, lang: Language) -> list[str]:
    """Which head it is, of a record that has several; or that it is the mean of them."""
    if is_mean(record):
        return [say("screen-mean", lang)]
    return [say("screen-head", lang, head=head)] if record.shape[1] > 1 else []


def prompt(record: Record, lang: Language) -> list[str]:
    """Where reading ended and writing began, in a text that was generated."""
    return [] if record.prompt is None else [say("screen-prompt", lang, count=record.prompt)]


def dimmed(lines: list[Text]) -> list[Text]:
    """The same, quieter."""
    for line in lines:
        line.stylize(DIM)
    return lines


def about(records: Sequence[Record], sample: int, lang: Language) -> list[str]:
    """Kind, size or part, and which sample where there are several, of records that have one shape."""
    B, _, T, S = records[0].shape
    pieces = [say(f"screen-{records[0].kind}", lang), *(part(records, lang) or [say("screen-size", lang, T=T, S=S)])]
    return [*pieces, say("screen-sample", lang, sample=sample, count=B)] if B > 1 else pieces


def part(records: Sequence[Record], lang: Language) -> list[str]:
    """Which queries and keys are drawn, and of how many; nothing of whole records, nor of what differs among parts."""
    parts = [record for record in records if isinstance(record, Part)]
    sides = {
        "screen-part-queries": {places(one.rows) for one in parts},
        "screen-part-keys": {places(one.cols) for one in parts},
    }
    wholes = {one.whole.shape[2:] for one in parts}
    pieces = [say(key, lang, places=found.pop()) for key, found in sides.items() if len(found) == 1]
    return pieces + ([say("screen-part-of", lang, T=T, S=S) for T, S in wholes] if len(wholes) == 1 else [])


def names_written(record: Record) -> bool:
    """Whether rows are labelled by what they have read and what they write."""
    return record.written is not None and record.queries is not None


def rows(records: Sequence[Record], lang: Language, named: bool = True, both: bool = True) -> str:
    """What a row is, as `rows_key` finds it."""
    return say(f"screen-rows-{rows_key(records, named, both)}", lang)


def rows_key(records: Sequence[Record], named: bool = True, both: bool = True) -> str:
    """Whether a row has read one token and writes another ("write"), has read a token ("read"), or just looks ("look").

    named   whether rows have tokens for labels
    both    whether these labels say what is written

    What rows are in weights from elsewhere, nobody knows.
    """
    if named and all(names_written(record) for record in records):
        return "write" if both else "read"
    if named and all(record.kind == "cross" and record.ids is not None for record in records):  # as a model read them
        return "read"
    return "look"


def cell(drawn: Picture, lang: Language) -> list[str]:
    """What a cell stands for, where it is more than one weight."""
    return cells([drawn], lang)


def cells(drawn: Iterable[Picture], lang: Language) -> list[str]:
    """The same of several pictures. The last cells may have less, and look fainter for it."""
    drawn = list(drawn)
    sizes = {(one.high, one.wide) for one in drawn}
    if not sizes - {(1, 1)}:
        return []
    high, wide = (max(each) for each in zip(*sizes, strict=True))
    is_ragged = any(one.record.shape[2] % one.high or one.record.shape[3] % one.wide for one in drawn)
    key = "screen-cell-most" if len(sizes) > 1 else "screen-cell-last" if is_ragged else "screen-cell"
    return [say(key, lang, high=high, wide=wide)]


def hidden(drawn: Iterable[Picture], lang: Language, *, dots: bool) -> list[str]:
    """What the empty cells are, where there are any."""
    if not any((one.cells == 0).any() for one in drawn):
        return []
    return [say("screen-hidden" if dots else "screen-hidden-blank", lang)]


def sink(share: float | None, whole: Picture, lang: Language) -> list[str]:
    """How much the first token receives, where it is a lot or somebody asked for a scale of their own."""
    if share is None or not (is_sink(share, sink_bar([whole])) or whole.scale != "auto"):
        return []
    return [say("screen-first", lang, share=round(100 * share))]


def no_key(share: float | None, lang: Language) -> list[str]:
    """How much goes to no key, where the attention has a sink of its own: the rest of each row."""
    return [] if share is None else [say("screen-no-key", lang, share=round(100 * share))]


def scaling(whole: Picture, lang: Language) -> list[str]:
    """What the scale does to the weights, where it is not the usual one, and does anything."""
    if whole.scale == "auto" or (whole.scale == "hidden" and whole.first_column < 0):
        return []
    if whole.scale in ("linear", "log"):
        return [say(f"screen-scale-{whole.scale}", lang)]
    return [say(f"screen-scale-{whole.scale}", lang, count=whole.wide)]


def sinks(key: str, found: list[str], bar: float, lang: Language, **values: int) -> list[str]:
    """Where it is a lot, of several pictures."""
    if not found:
        return []
    names = Listed(found).joined(lang)
    return [say(key, lang, share=round(100 * bar), found=names, **values)]


def tokens(record: Record, sample: int, lang: Language, width: int) -> list[Text]:
    """The tokens in one line, for pictures too small to name their rows."""

    def line(key: str, rows: tuple[tuple[str, ...], ...] | None) -> list[Text]:
        if rows is None:
            return []
        text = " ".join(visible(token) for token in readable(tokens_of(rows, sample)[:width]))
        return [Text(cut(f"{say(key, lang)}{text}", width), DIM)]

    if record.queries == record.keys:
        return line("screen-tokens", record.queries)
    return line("screen-queries", record.queries) + line("screen-keys", record.keys)
