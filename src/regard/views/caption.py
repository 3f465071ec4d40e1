"""Captions of a picture: titles of layers, meaning of rows and cells, notes; and the head that a view opens with.

Derived from the records alone, except that `opening_head` prefers `Trace.opening`, the head named by the model.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rich.cells import cell_len
from rich.text import Text

from regard.messages import Language, Listed, say
from regard.records import Record, tokens_of
from regard.trace.from_weights import is_mean, without_mean
from regard.trace.measures.heads import Head, Heads, find_heads
from regard.trace.trace import Trace
from regard.views.colours import BOLD, DIM, is_sink, sink_bar
from regard.views.exact_part import ExactPart, position_range
from regard.views.labels import cut, cut_start, printable_label, readable
from regard.views.picture import Picture


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


_QUERIES = 256
"""This many queries are enough to select a head."""
HEADLINE = 160
"""Columns of a text made of tokens."""
_CONTROL = re.compile(r"[<\[].+[>\]]", re.DOTALL)
_WIDE = ("W", "F")


def opening_head(trace: Trace, records: Sequence[Record]) -> tuple[int, int]:
    """The index of the record and of its head that every view of these records opens with.

    The head named by the model's settings if it is among them, else `clearest_head`. `records` are records of the Trace
    before tokens are merged, so that all views select from the same heads.
    """
    if trace.opening is not None:
        name, head = trace.opening
        for at, record in enumerate(records):
            if record.name == name and head < record.shape[1]:
                return at, head
    return clearest_head(records)


def clearest_head(records: Sequence[Record]) -> tuple[int, int]:
    """The index of a record and of its head with the clearest pattern.

    For cross-attention, the head that aligns the written tokens best with the tokens it attends to. Otherwise the
    head of the decoder, or of all records, with the clearest pattern; a head that attends to the first token only if
    there is no other. The first head if no head has a pattern, or if the weights are not exact.

    >>> import numpy as np
    >>> even, diagonal = np.full((4, 4), 0.25), np.eye(4)
    >>> clearest_head([Trace.from_weights(np.stack([even, diagonal]), kind="cross")[0]])
    (0, 1)
    """
    kinds = [record.kind for record in records]
    kind = next((kind for kind in ("cross", "decoder") if kind in kinds), None)
    places = [at for at, record in enumerate(records) if kind in (None, record.kind)]
    exact = {record.name: at for at in places if _is_exact(record := records[at])}
    if not exact:
        return places[0], 0
    found = find_heads(Trace(records[at] for at in exact.values()), _QUERIES)
    heads = found.ranked("alignment") if kind == "cross" else _ranked_by_pattern(found)
    return (exact[heads[0].name], heads[0].head) if heads else (places[0], 0)


def _ranked_by_pattern(found: Heads) -> list[Head]:
    """The heads with a pattern; heads that attend to the first token last, as they are often idle."""
    named = [(head, best) for head in found if (best := head.best) is not None]
    return [head for head, _ in sorted(named, key=lambda pair: pair[1].pattern == "first")]


def _is_exact(record: Record) -> bool:
    """Whether the map holds the weights themselves and is not empty."""
    return record.map is not None and all(record.shape) and tuple(record.map.shape) == record.shape


# --- layers ----------------------------------------------------------------------------------------------


def layer_of(name: str) -> str | None:
    """The layer number in a module path: its first numeric part.

    >>> layer_of("decoder.layers.1.cross_attention#2"), layer_of("attention")
    ('1', None)
    """
    return next((part for part in name.partition("#")[0].split(".") if part.isdecimal()), None)


def layer_titles(records: Sequence[Record], lang: Language) -> list[str]:
    """The title of each record: layer and kind; the module path without a layer number or for equal titles.

    >>> import numpy as np
    >>> record = Trace.from_weights(np.eye(2), name="decoder.layers.1.cross_attention", kind="cross")[0]
    >>> layer_titles([record], "en"), layer_titles([record], "zh")
    (['layer 1 · cross-attention'], ['第 1 层 · 交叉注意力'])
    """
    titles = [_title(record, lang) for record in records]
    counts = Counter(titles)
    named = zip(records, titles, strict=True)
    return [title if title and counts[title] == 1 else record.name for record, title in named]


def _title(record: Record, lang: Language) -> str | None:
    layer, (_, mark, call) = layer_of(record.name), record.name.partition("#")
    if layer is None:
        return None
    return say("screen-layer-of-kind", lang, layer=layer, kind=say(f"screen-{record.kind}", lang)) + f"{mark}{call}"


def with_layer_label(record: Record, lang: Language) -> Record:
    """The record with its layer number spelled out in its name.

    >>> import numpy as np
    >>> with_layer_label(Trace.from_weights(np.eye(2), name="h.0.attn")[0], "en").name
    'h.layer 0.attn'
    """
    layer, (path, mark, call) = layer_of(record.name), record.name.partition("#")
    if layer is None:
        return record
    parts = path.split(".")
    parts[parts.index(layer)] = say("screen-layer", lang, layer=layer)
    return record.named(".".join(parts) + mark + call)


# --- texts -----------------------------------------------------------------------------------------------


def source_and_target(records: Sequence[Record], sample: int) -> tuple[str, str] | None:
    """The source and the target text, from their tokens; None without cross-attention.

    Also None for step-by-step generation, where each record has only a part of the target, and for pictures, whose
    patches are no text. If no token contains a space, each token is a word.

    >>> import numpy as np
    >>> tokens = ["我", "爱", "你", "。"], ["I", "love", "you", "."]
    >>> source_and_target([Trace.from_weights(np.eye(4), *tokens, kind="cross")[0]], 0)
    ('I love you.', '我爱你。')
    """
    for record in records if all(record.step is None for record in records) else []:
        if record.images:
            continue
        if record.kind == "cross" and record.key_tokens is not None and record.query_tokens is not None:
            sides = (tokens_of(rows, sample) for rows in (record.key_tokens, record.query_tokens))
            source, target = (_joined(readable(row)) for row in sides)
            return source, target
    return None


def texts_of_tokens(records: Sequence[Record], sample: int) -> tuple[str, str] | None:
    """The texts of a translation, or the text that was read and its continuation, which is "" where nothing is written.

    From the tokens, and shortened; None where they are unknown, or some of them are patches of pictures.

    >>> import numpy as np
    >>> texts_of_tokens([Trace.from_weights(np.eye(5), ["[CLS]", "I", "play", "##ed", "."])[0]], 0)
    ('I played.', '')
    """
    found = source_and_target(records, sample)
    named = [record for record in records if record.key_tokens is not None and record.kind != "cross"]
    if found is not None or not named or any(record.kind == "cross" or record.images for record in records):
        return found
    longest = max(named, key=lambda record: record.shape[3])
    assert longest.key_tokens is not None
    tokens, prompt = tokens_of(longest.key_tokens, sample), max(record.prompt or 0 for record in records)
    parts = (tokens[:prompt], tokens[prompt:]) if prompt else (tokens, ())
    read, written = (cut(" ".join(_joined(readable(part[: 4 * HEADLINE])).split()), HEADLINE) for part in parts)
    return (read, written) if read else None


def _joined(tokens: Sequence[str]) -> str:
    """The tokens as a text, without special tokens; spaces as in the tokens, else by the rules of the script."""
    kept = [token for token in tokens if token and not _CONTROL.fullmatch(token)]
    if any(" " in token for token in kept) or not kept:
        return "".join(kept).strip()
    return kept[0] + "".join(_after(a, b) for a, b in pairwise(kept))


def _after(before: str, token: str) -> str:
    """A token with the space before it; one of WordPiece such as `##ing` continues a word."""
    if token.startswith("##") and len(token) > 2:
        return token[2:]
    return " " * _needs_space(before, token) + token


def _needs_space(before: str, after: str) -> bool:
    wide = any(unicodedata.east_asian_width(sign) in _WIDE for sign in (before[-1], after[0]))
    return not wide and unicodedata.category(after[0]) not in ("Po", "Pe", "Pf")
