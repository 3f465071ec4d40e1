"""Weights in larger cells: pooled into the bins of a map, or merged into characters or words.

Keys are summed and queries averaged, so that a row still sums to 1. `pool` is a fast `reference.pooled_map` that can
also pool maps, which is exact because the number of queries of each row is known. `text.segmentation` decides by
spelling which tokens belong together; samples differ in that, so one sample is merged at a time.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from regard.arrays import Array, convert_like, to_numpy
from regard.axes import bin_count, bin_width, in_range
from regard.errors import ArgumentError
from regard.exact_weights import WeightsArray
from regard.masks.padding import Padding
from regard.messages import Listed
from regard.records import Record, tokens_of
from regard.text.segmentation import character_groups, text_or_hex, token_bytes, word_groups


def pool(weights: np.ndarray, counts: np.ndarray, high: int, wide: int) -> tuple[np.ndarray, np.ndarray]:
    """(…, T, S) in cells of `high` rows and `wide` columns, and the number of queries of each row of cells.

    Columns are summed; rows are averaged in proportion to `counts` (…, T), the number of queries of each, so that a
    fully masked row (0 queries) is left out of the mean. The last cells may be smaller.

    >>> pool(np.eye(3), np.ones(3, int), high=2, wide=2)
    (array([[1., 0.],
           [0., 1.]]), array([2, 1]))
    """
    T, S = weights.shape[-2:]
    return pool_at(weights, counts, np.arange(0, T, high), np.arange(0, S, wide))


def pool_at(
    weights: np.ndarray, counts: np.ndarray, rows: np.ndarray, cols: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same in cells of any size, given by the first row and the first column of each."""
    if not weights.size:
        empty = np.zeros((*weights.shape[:-2], len(rows), len(cols)), weights.dtype)
        return empty, np.zeros((*counts.shape[:-1], len(rows)), int)
    exact = weights.dtype if weights.dtype == np.float64 else np.dtype(np.float32)
    summed = np.add.reduceat(weights, cols, axis=-1, dtype=exact)
    total = np.add.reduceat(counts, rows, axis=-1)  # … R
    mean = np.add.reduceat(summed * counts[..., None].astype(exact), rows, axis=-2)
    return mean / np.maximum(total, 1)[..., None].astype(exact), total


def bin_size(length: int, bins: int) -> int:
    """The number of positions in a bin of a map that has `bins` bins.

    >>> bin_size(1000, 250), bin_size(5, 3)
    (4, 2)
    """
    return max(1, -(-length // max(1, bins)))


def is_binning(length: int, bins: int) -> bool:
    """Whether `length` positions can form exactly `bins` bins."""
    return bins == 0 if length == 0 else 0 < bins <= length and bin_count(length, bins) == bins


Merge = Literal["tokens", "characters", "words"]
_GROUPS: dict[str, Callable[[Sequence[bytes]], list[slice]]] = {"characters": character_groups, "words": word_groups}
_MAP = 256


class Side(NamedTuple):
    """The queries or the keys of one sample: the start and the text of each group, and the number of tokens."""

    starts: np.ndarray
    labels: list[str] | None
    length: int

    @classmethod
    def of(cls, rows: tuple[tuple[str, ...], ...] | None, by: Merge, sample: int, length: int) -> "Side":
        if rows is None:
            return cls(np.arange(length), None, length)
        tokens = tokens_of(rows, sample)
        if by == "tokens":
            return cls(np.arange(length), list(tokens), length)
        pieces = token_bytes(tokens)
        groups = _GROUPS[by](pieces)
        labels = [text_or_hex(b"".join(pieces[group])) for group in groups]
        if by == "words":
            labels = [label.strip(" ") or label for label in labels]
        return cls(np.array([group.start for group in groups], int), labels, length)

    @property
    def ends(self) -> np.ndarray:
        """The last position of each group."""
        return np.append(self.starts[1:], self.length) - 1

    def labels_at(self, places: np.ndarray) -> list[str] | None:
        """The texts of the groups at these positions."""
        if self.labels is None:
            return None
        return [self.labels[at] for at in np.searchsorted(self.starts, places, side="right") - 1]


def has_split_characters(record: Record, sample: int) -> bool:
    """Whether a token of the sample is only a part of a character."""

    def is_split(rows: tuple[tuple[str, ...], ...] | None) -> bool:
        if not rows:
            return False
        tokens = tokens_of(rows, sample)
        return len(character_groups(token_bytes(tokens))) < len(tokens)

    return is_split(record.query_tokens) or is_split(record.key_tokens) or is_split(record.written)


def merged(record: Record, by: Merge = "words", sample: int = 0) -> Record:
    """One sample of the record with merged tokens: one query and one key for each character or word.

    A side without tokens is unchanged. Fully masked queries are left out of the mean. Statistics that merging would
    change (LSE, entropy, received, …) are dropped. Raises ArgumentError for another `by`, and the errors of
    `Record.weights` where exact weights are not available.

    >>> from regard.trace import Trace
    >>> record = Trace.from_weights(np.eye(3), ["un", "likely", " yes"])[0]
    >>> merged(record).key_tokens, merged(record).weights()[0, 0].tolist()
    ((('unlikely', 'yes'),), [[1.0, 0.0], [0.0, 1.0]])
    """
    if by not in get_args(Merge):
        raise ArgumentError("option-unknown", option="merge", asked=by, choices=Listed(get_args(Merge)))
    sample = in_range("sample", sample, record.shape[0])
    given = record.weights()  # first, because a record without weights may claim any length
    rows, keys = row_groups(record, by, sample), key_groups(record, by, sample)
    weights = to_numpy(given)[sample]  # H T S
    counts = counts_before = weights.any(-1).astype(int)
    if weights.size:
        weights, counts = pool_at(weights, counts, rows.starts, keys.starts)
    sink = record.sink_mass if record.sink_mass is None else _mean_sink(record, sample, counts_before, rows.starts)
    kept = convert_like(weights[None], given)
    H, T, S = weights.shape
    small = pool(weights, counts, bin_width(T, _MAP), bin_width(S, _MAP))[0] if max(T, S) > _MAP else weights
    made = Record(
        shape=(1, H, T, S),
        name=record.name,
        kind=record.kind,
        fused=record.fused,
        rest=record.rest,
        map=kept if small is weights else convert_like(small[None], given),
        exact=WeightsArray(kept),
        prompt=None if record.prompt is None else int(np.searchsorted(rows.starts, record.prompt)),
        padding=_padding(record, sample, rows.starts, keys.starts),
        sink_mass=sink,
    )
    return made.with_tokens(rows.read, keys.labels, rows.written)


class Rows(NamedTuple):
    """The rows of a merged record: the first query of each, the text it reads and the text it generates."""

    starts: np.ndarray
    read: list[str] | None
    written: list[str] | None


def key_groups(record: Record, by: Merge, sample: int) -> Side:
    """The keys of one sample, merged."""
    return Side.of(record.key_tokens, by, sample, record.shape[3])


def row_groups(record: Record, by: Merge, sample: int) -> Rows:
    """In cross-attention, the queries that generate one word; else the queries that read one, like the keys.

    The first query that generates a word has read the previous word; the last query of a word generates the next.
    """
    T = record.shape[2]
    read = Side.of(record.query_tokens, by, sample, T)
    if record.written is None:
        return Rows(read.starts, read.labels, None)
    written = Side.of(record.written, by, sample, T)
    if record.kind == "cross":
        return Rows(written.starts, read.labels_at(written.starts), written.labels)
    return Rows(read.starts, read.labels, written.labels_at(read.ends))


def _padding(record: Record, sample: int, rows: np.ndarray, cols: np.ndarray) -> Padding | None:
    """Which groups are text: those with a token that is text."""
    if record.padding is None:
        return None

    def grouped(text: Array | None, starts: np.ndarray) -> np.ndarray | None:
        own = None if text is None else to_numpy(text)[sample]
        return None if own is None or not own.size else np.logical_or.reduceat(own, starts)[None]

    return Padding(grouped(record.padding.queries, rows), grouped(record.padding.keys, cols))


def _mean_sink(record: Record, sample: int, counts: np.ndarray, rows: np.ndarray) -> Array:
    """The attention that goes to no key, H T: the mean over the queries of each group that are not fully masked."""
    mass = to_numpy(record.sink_mass)[sample][..., None]
    return convert_like(pool_at(mass, counts, rows, np.zeros(1, int))[0][None, ..., 0], record.sink_mass)
