"""Where to begin when nobody says: the head that stands for a Trace, what its layers are called, which texts it is of.

All of it is told from the records alone; a model's own word on its heads (`alignment_heads`) is not known here.
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
"""So many queries tell what a head does well enough to open there."""
_CONTROL = re.compile(r"[<\[].+[>\]]", re.DOTALL)
_WIDE = ("W", "F")


def opening_head(trace: Trace, records: Sequence[Record]) -> tuple[int, int]:
    """The place of a record and the number of its head with which every view of these records opens.

    The one that the settings of the model name, where it is among them; else `telling_head`. `records` are those of the
    Trace or some of them, before tokens are merged, so that all views choose among the same.
    """
    if trace.opening is not None:
        name, head = trace.opening
        for at, record in enumerate(records):
            if record.name == name and head < record.shape[1]:
                return at, head
    return telling_head(records)


def telling_head(records: Sequence[Record]) -> tuple[int, int]:
    """The place of a record and the number of its head: of cross-attention the head that aligns best on this text,
    what is written with what it looks at.

    Where there is none, the head of the decoder, or of all, whose pattern is the clearest, one that rests on the first
    token only where there is no other; the first where no head has any, or the weights are not exact.

    >>> import numpy as np
    >>> even, diagonal = np.full((4, 4), 0.25), np.eye(4)
    >>> telling_head([Trace.from_weights(np.stack([even, diagonal]), kind="cross")[0]])
    (0, 1)
    """
    kinds = [record.kind for record in records]
    kind = next((kind for kind in ("cross", "decoder") if kind in kinds), None)
    places = [at for at, record in enumerate(records) if kind in (None, record.kind)]
    exact = {record.name: at for at in places if _is_exact(record := records[at])}
    if not exact:
        return places[0], 0
    found = find_heads(Trace(records[at] for at in exact.values()), _QUERIES)
    heads = found.ranked("alignment") if kind == "cross" else _named(found)
    return (exact[heads[0].name], heads[0].head) if heads else (places[0], 0)


def _named(found: Heads) -> list[Head]:
    """The heads that have a name; last those that rest on the first token, for such a head is often idle."""
    named = [(head, best) for head in found if (best := head.best) is not None]
    return [head for head, _ in sorted(named, key=lambda pair: pair[1].pattern == "first")]


def _is_exact(record: Record) -> bool:
    """Whether the map holds the weights themselves, and there are any."""
    return record.map is not None and all(record.shape) and tuple(record.map.shape) == record.shape


# --- layers ----------------------------------------------------------------------------------------------


def layer_of(name: str) -> str | None:
    """The number of the layer in the path of a module: the first that there is.

    >>> layer_of("decoder.layers.1.cross_attention#2"), layer_of("attention")
    ('1', None)
    """
    return next((part for part in name.partition("#")[0].split(".") if part.isdecimal()), None)


def layer_titles(records: Sequence[Record], lang: Language) -> list[str]:
    """What each record is: its layer and kind; its path where it has no number, or two would be called the same.

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


def with_layer_named(record: Record, lang: Language) -> Record:
    """The record with a path that says which of its parts is the layer's number.

    >>> import numpy as np
    >>> with_layer_named(Trace.from_weights(np.eye(2), name="h.0.attn")[0], "en").name
    'h.layer 0.attn'
    """
    layer, (path, mark, call) = layer_of(record.name), record.name.partition("#")
    if layer is None:
        return record
    parts = path.split(".")
    parts[parts.index(layer)] = say("screen-layer", lang, layer=layer)
    return record.named(".".join(parts) + mark + call)


# --- texts -----------------------------------------------------------------------------------------------


def both_texts(records: Sequence[Record], sample: int) -> tuple[str, str] | None:
    """The text and what was made of it, as their tokens tell; None where no record looks from one to the other.

    None too where the second was written step by step: each record then has a part of it only. Where no token has a
    space, each is taken for a word.

    >>> import numpy as np
    >>> tokens = ["我", "爱", "你", "。"], ["I", "love", "you", "."]
    >>> both_texts([Trace.from_weights(np.eye(4), *tokens, kind="cross")[0]], 0)
    ('I love you.', '我爱你。')
    """
    for record in records if all(record.step is None for record in records) else []:
        if record.kind == "cross" and record.keys is not None and record.queries is not None:
            sides = (tokens_of(rows, sample) for rows in (record.keys, record.queries))
            source, target = (_joined(readable(row)) for row in sides)
            return source, target
    return None


def _joined(tokens: Sequence[str]) -> str:
    """The tokens as a text, without those that are no text; spaces as they are written, else as the script has them."""
    kept = [token for token in tokens if token and not _CONTROL.fullmatch(token)]
    if any(" " in token for token in kept) or not kept:
        return "".join(kept).strip()
    return kept[0] + "".join(" " * _stand_apart(a, b) + b for a, b in pairwise(kept))


def _stand_apart(before: str, after: str) -> bool:
    wide = any(unicodedata.east_asian_width(sign) in _WIDE for sign in (before[-1], after[0]))
    return not wide and unicodedata.category(after[0]) not in ("Po", "Pe", "Pf")
