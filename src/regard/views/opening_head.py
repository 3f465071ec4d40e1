"""Defaults of a view: the head it opens with, titles of layers, and the source and target text.

Derived from the records alone, except that `opening_head` prefers `Trace.opening`, the head named by the model.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from regard.messages import Language, say
from regard.records import Record, tokens_of
from regard.trace.measures.heads import Head, Heads, find_heads
from regard.trace.trace import Trace
from regard.views.labels import readable

_QUERIES = 256
"""This many queries are enough to select a head."""
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

    Also None for step-by-step generation, where each record has only a part of the target. If no token contains a
    space, each token is a word.

    >>> import numpy as np
    >>> tokens = ["我", "爱", "你", "。"], ["I", "love", "you", "."]
    >>> source_and_target([Trace.from_weights(np.eye(4), *tokens, kind="cross")[0]], 0)
    ('I love you.', '我爱你。')
    """
    for record in records if all(record.step is None for record in records) else []:
        if record.kind == "cross" and record.key_tokens is not None and record.query_tokens is not None:
            sides = (tokens_of(rows, sample) for rows in (record.key_tokens, record.query_tokens))
            source, target = (_joined(readable(row)) for row in sides)
            return source, target
    return None


def _joined(tokens: Sequence[str]) -> str:
    """The tokens as a text, without special tokens; spaces as in the tokens, else by the rules of the script."""
    kept = [token for token in tokens if token and not _CONTROL.fullmatch(token)]
    if any(" " in token for token in kept) or not kept:
        return "".join(kept).strip()
    return kept[0] + "".join(" " * _needs_space(a, b) + b for a, b in pairwise(kept))


def _needs_space(before: str, after: str) -> bool:
    wide = any(unicodedata.east_asian_width(sign) in _WIDE for sign in (before[-1], after[0]))
    return not wide and unicodedata.category(after[0]) not in ("Po", "Pe", "Pf")
