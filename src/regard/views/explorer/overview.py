"""What the model panel shows of a Trace: its records with labels and measures, and a small picture of every head.

Nothing here computes more than `MOST_WEIGHTS` exact weights: a text of a million tokens has an overview too.
"""

import base64
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from regard.errors import NotKeptError
from regard.images import RecordImage
from regard.messages import LANGUAGES, Language, catalogue, printable
from regard.records import Record, tokens_of
from regard.trace.measures.heads import find_heads
from regard.trace.measures.per_head import mean_distance, mean_entropy, sink_share
from regard.trace.measures.visibility import Visibility, is_across
from regard.trace.pooling import Merge, has_split_characters, key_groups, row_groups
from regard.trace.trace import Trace
from regard.views import caption
from regard.views.colours import Scale, diverging, nan_colour, sink_bar, viridis
from regard.views.exact_part import ExactPart
from regard.views.explorer.still import png
from regard.views.explorer.zoom import Cells
from regard.views.image_attention import image_title
from regard.views.labels import cut, printable_label, readable
from regard.views.picture import Picture, first_share, share_of_no_key

PREFIX = "explorer-"
"""The start of the keys of all texts of the front end."""
THUMBNAIL = 48
"""Rows and columns of the small picture of a head."""
COLOURS = 256
LONGEST_LABEL = 120
"""Columns of the longest label; the front end shortens labels further to draw them."""
MOST_LABELS = 2048
"""The longest text whose labels are sent where cells cover several tokens."""
LONGEST_TEXT = 20_000
"""Characters of the source and target text that are shown, and of tokens that are split into words."""
MOST_WEIGHTS = 2**26
"""Weights of a record from which measures are computed; of a longer one only what was kept is shown."""
QUERIES = 256
"""Queries from which the pattern of a head is found."""
MASKED, NAN = 0, 255
"""The numbers of a thumbnail that are no colour; colours are 1 to 254."""


class LabelTable:
    """Lists of labels, each stored once; records refer to them by number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}

    def number(self, labels: tuple[str, ...] | None) -> int | None:
        return None if labels is None else self._numbers.setdefault(labels, len(self._numbers))

    @property
    def lists(self) -> list[tuple[str, ...]]:
        return list(self._numbers)


def label(token: str) -> str:
    """One token as a bounded label without control characters; "" stays empty.

    >>> label(" cat"), label("<b>\\u202e"), len(label("x" * 10**6)), label("")
    ('␣cat', '<b>⟨202E⟩', 120, '')
    """
    return cut(printable_label(token[: 4 * LONGEST_LABEL]), LONGEST_LABEL) if token else ""


def bounded(text: str) -> str:
    """A text that is shown as a whole, without control characters, cut where it is very long."""
    return printable(text[:LONGEST_TEXT]) + ("…" if len(text) > LONGEST_TEXT else "")


def token_labels(rows: tuple[tuple[str, ...], ...] | None, sample: int) -> tuple[str, ...] | None:
    """The labels of one side of a sample."""
    return None if rows is None else tuple(map(label, readable(tokens_of(rows, sample))))


def labels_of(drawn: Picture, table: LabelTable) -> dict[str, Any]:
    """The labels of a record by how its tokens are merged.

    tokens       queries, keys, written: numbers of lists of labels; None for a long text with cells of several tokens
    characters   the same, and the first positions of the groups; None where no token is a part of a character
    words        the same; None where every token is a word, and for a text longer than LONGEST_TEXT
    """
    record, sample = drawn.record, drawn.sample
    T, S = record.shape[2:]
    rows, cols = drawn.high == 1 or T <= MOST_LABELS, drawn.wide == 1 or S <= MOST_LABELS
    tokens = {
        "queries": table.number(token_labels(record.query_tokens, sample)) if rows else None,
        "keys": table.number(token_labels(record.key_tokens, sample)) if cols else None,
        "written": table.number(token_labels(record.written, sample)) if rows else None,
    }
    found: dict[str, Any] = {"tokens": tokens, "characters": None, "words": None}
    if drawn.high > 1 or drawn.wide > 1 or isinstance(record, ExactPart):
        return found
    if has_split_characters(record, sample):
        found["characters"] = _grouped(record, "characters", sample, table)
    if _letters(record, sample) > LONGEST_TEXT:
        return found
    words = _grouped(record, "words", sample, table)
    if len(words["queryGroups"]) < record.shape[2] or len(words["keyGroups"]) < record.shape[3]:
        found["words"] = words
    return found


def labels_in(record: Record, sample: int, found: Cells) -> dict[str, list[str] | None]:
    """The labels of a rectangle; None for a side whose cells cover several tokens, or that has no tokens."""
    sides = {
        "queries": (record.query_tokens, found.rows, found.high),
        "keys": (record.key_tokens, found.cols, found.wide),
        "written": (record.written, found.rows, found.high),
    }
    return {
        side: None if rows is None or size > 1 else [label(token) for token in readable(tokens_of(rows, sample))[span]]
        for side, (rows, span, size) in sides.items()
    }


def _letters(record: Record, sample: int) -> int:
    """The number of characters of all tokens."""
    sides = (record.query_tokens, record.key_tokens, record.written)
    return sum(len(token) for rows in sides if rows is not None for token in tokens_of(rows, sample))


def _grouped(record: Record, by: Merge, sample: int, table: LabelTable) -> dict[str, Any]:
    rows, keys = row_groups(record, by, sample), key_groups(record, by, sample)

    def number(texts: list[str] | None) -> int | None:
        return None if texts is None else table.number(tuple(map(label, texts)))

    return {
        "queries": number(rows.read),
        "keys": number(keys.labels),
        "written": number(rows.written),
        "queryGroups": rows.starts.tolist(),
        "keyGroups": keys.starts.tolist(),
    }


def record_entry(record: Record, heads: list[Picture], table: LabelTable) -> dict[str, Any]:
    """The description of a record without its weights."""
    T, S = record.shape[2:]
    R, C = heads[0].cells.shape if heads else (0, 0)
    sizes = (heads[0].high, heads[0].wide) if heads else (1, 1)
    labels = labels_of(heads[0], table) if heads else {"tokens": dict.fromkeys(("queries", "keys", "written"))}
    return {
        "name": label(record.name),
        "kind": record.kind,
        "heads": len(heads),
        "T": T,
        "S": S,
        "part": _part(record),
        "R": R,
        "C": C,
        "high": sizes[0],
        "wide": sizes[1],
        "labels": labels,
        "rowsMean": caption.rows_key([record], named=labels["tokens"]["queries"] is not None),
        "prompt": record.prompt,
        "step": None if record.step is None else record.step.start,
        "firstColumn": heads[0].first_column if heads else 0,
        "firstKey": heads[0].first_key if heads else 0,
        "even": rounded(heads[0].even_share) if heads else 0.0,
        "sinkBar": rounded(sink_bar(heads)),
        "first": [rounded(first_share(one)) for one in heads],
        "noKey": [rounded(share_of_no_key(one)) for one in heads],
        "rest": record.rest,
    }


def _part(record: Record) -> dict[str, int] | None:
    """The position of a part, and the size of the whole map."""
    if not isinstance(record, ExactPart):
        return None
    T, S = record.whole.shape[2:]
    return {"top": record.rows.start, "left": record.cols.start, "T": T, "S": S}


def rounded(share: float | None) -> float | None:
    """A number with four significant digits; None where it is unknown or not finite."""
    return None if share is None or not np.isfinite(share) else float(f"{share:.4g}")


# --- measures --------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What each head of a record does: the name of its pattern and its score, "" and None without one."""

    pattern: list[str]
    score: list[float | None]


def measures_of(record: Record, sample: int, found: Found) -> dict[str, Any]:
    """Entropy, sink, distance, pattern and score of every head; None where it is unknown."""
    whole = record.whole if isinstance(record, ExactPart) else record
    visibility = Visibility(whole)
    computed: dict[str, tuple[Callable[..., np.ndarray], bool]] = {
        "entropy": (mean_entropy, whole.entropy is not None and whole.lse is not None),
        "sink": (sink_share, whole.sink is not None),
        "distance": (mean_distance, False),
    }
    entry: dict[str, Any] = {}
    for name, (measure, kept) in computed.items():
        entry[name] = [None] * whole.shape[1]
        if name == "distance" and is_across(whole):  # two texts have no common positions
            continue
        if kept or _is_measured(whole):
            try:
                entry[name] = [rounded(float(value)) for value in measure(whole, visibility)[sample]]
            except NotKeptError:  # a kept sink is not valid beside padding that was unknown
                continue
    return entry | {"effect": None, "pattern": found.pattern, "score": found.score}


def patterns_of(records: Sequence[Record]) -> list[Found]:
    """The pattern of every head of the records, where exact weights are at hand."""
    wholes = [record.whole if isinstance(record, ExactPart) else record for record in records]
    measured = [at for at, record in enumerate(wholes) if _is_measured(record)]
    found = [Found([""] * record.shape[1], [None] * record.shape[1]) for record in wholes]
    # Numbered names, because a name may occur twice among the chosen records.
    named = Trace(wholes[at].named(str(at)) for at in measured)
    for head in find_heads(named, QUERIES) if measured else ():
        best = head.best
        if best is not None:
            found[int(head.name)].pattern[head.head] = best.pattern
            found[int(head.name)].score[head.head] = rounded(best.value)
    return found


def _is_measured(record: Record) -> bool:
    return record.has_weights and 0 < prod(record.shape[1:]) <= MOST_WEIGHTS


# --- pictures --------------------------------------------------------------------------------------------


def thumbnail(drawn: Picture) -> np.ndarray:
    """The head in THUMBNAIL × THUMBNAIL numbers: 0 masked, 1 to 254 the colour under its own scale, 255 NaN."""
    small = drawn.fitted(THUMBNAIL, THUMBNAIL).cells
    if not small.size:
        return np.zeros((THUMBNAIL, THUMBNAIL), np.uint8)
    level = np.asarray(Scale.of([drawn]).level(np.nan_to_num(small)))
    numbers = np.where(small == 0, MASKED, 1 + np.round(level * (NAN - 2))).astype(np.uint8)
    numbers[np.isnan(small)] = NAN
    rows, cols = (np.arange(THUMBNAIL) * size // THUMBNAIL for size in small.shape)
    return numbers[np.ix_(rows, cols)]


def colours() -> dict[str, Any]:
    """The colours of weights, of differences, and of NaN."""
    return {
        "sequential": [viridis(step / (COLOURS - 1)).rgb for step in range(COLOURS)],
        "diverging": [diverging(step / (COLOURS - 2) * 2 - 1) for step in range(COLOURS - 1)],
        "nan": nan_colour().rgb,
    }


class PictureTable:
    """Pictures as data URLs, each stored once; records refer to them by number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[RecordImage] = []
        self.list: list[dict[str, Any]] = []

    def number(self, image: RecordImage) -> int | None:
        """The number of the pixels of an image; None where they are unknown."""
        if image.pixels is None:
            return None
        if id(image.pixels) not in self._numbers:
            data = image.pixels if isinstance(image.pixels, bytes) else png(image.pixels)
            width, height = image.size
            url = f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
            self._numbers[id(image.pixels)] = len(self.list)
            self.list.append({"width": width, "height": height, "data": url})
            self._kept.append(image)  # so that its id is not reused
        return self._numbers[id(image.pixels)]


def image_entries(record: Record, sample: int, table: PictureTable) -> list[dict[str, Any]]:
    """The pictures of a sample, with the grids of their patches and the positions of these."""
    return [
        {
            "picture": table.number(image),
            "grid": list(image.grid),
            "first": image.first,
            "positions": None if image.positions is None else image.patches.tolist(),
            "side": image.side,
            "name": label(image.name),
            "title": {lang: image_title(image, record.images, lang) for lang in LANGUAGES},
            "extra": [label(name) for name in image.extra],
        }
        for image in record.images
        if image.is_of(sample)
    ]


def words() -> dict[Language, dict[str, str]]:
    """All texts of the front end by language, with their placeholders; keys without their prefix."""
    texts = {key.removeprefix(PREFIX): text for key, text in catalogue().items() if key.startswith(PREFIX)}
    return {lang: {key: getattr(text, lang) for key, text in texts.items()} for lang in LANGUAGES}


def generation_of(trace: Trace, records: Sequence[Record], samples: Sequence[int]) -> dict[str, Any] | None:
    """The prompt, all tokens, and the candidates of each written token; None where nothing was generated.

    Token i, from the prompt on, was written by the query of token i − 1.
    """
    for record, sample in zip(records, samples, strict=True):
        if record.kind == "encoder" or record.query_tokens is None or record.written is None or not record.shape[2]:
            continue
        written = tokens_of(record.written, sample)
        prompt = record.prompt or next((at + 1 for at, token in enumerate(written) if token), None)
        if prompt is None:
            return None
        read = token_labels(record.query_tokens, sample) or ()
        tokens = [*read, label(written[-1])] if written[-1] else list(read)
        return {
            "prompt": prompt,
            "tokens": tokens,
            "candidates": _candidates(trace, record, prompt, len(tokens)),
            "temperatures": _temperatures(trace, record, prompt, len(tokens)),
            "beams": _beams(trace),
        }
    return None


def _beams(trace: Trace) -> list[dict[str, Any]] | None:
    """The texts that beam search found; None where they are unknown."""
    if trace.beams is None:
        return None
    return [{"tokens": [label(token) for token in tokens], "score": score} for tokens, score in trace.beams]


def _candidates(trace: Trace, record: Record, prompt: int, count: int) -> list[Any] | None:
    """The candidates of each written token; None where none are known, or where they belong to another text."""
    known = trace.candidates
    if known is None or len(known) != record.shape[2]:
        return None
    return [[[label(token), p] for token, p in known[at - 1]] for at in range(prompt, count)]


def _temperatures(trace: Trace, record: Record, prompt: int, count: int) -> dict[str, Any] | None:
    """The temperatures, and for each written token log Σ p^(1/T) at each of them; None where some are unknown."""
    known = trace.temperatures
    if known is None or len(known.log_sums) != record.shape[2]:
        return None
    rows = known.log_sums[prompt - 1 : count - 1]
    return {"stops": known.stops, "logSums": rows} if all(rows) else None
