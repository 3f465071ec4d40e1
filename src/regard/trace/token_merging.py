"""Tokens put together as people read them: bytes to characters, characters to words.

The keys of a word are summed and its queries averaged, so that a row still sums to 1. Which tokens belong together is
told by how they are spelled (`text.pieces`); samples differ in that, so one sample is merged at a time.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from regard.arrays import Array, to_kind_of, to_numpy
from regard.axes import bin_width, in_range
from regard.errors import ArgumentError
from regard.messages import Listed
from regard.padding import Padding
from regard.records import Record, tokens_of
from regard.text.token_text import character_groups, spelled, token_bytes, word_groups
from regard.trace.pooling import pool, pool_at

Merge = Literal["tokens", "characters", "words"]
_GROUPS: dict[str, Callable[[Sequence[bytes]], list[slice]]] = {"characters": character_groups, "words": word_groups}
_MAP = 256


class _Side(NamedTuple):
    """The queries or the keys of one sample: where each group begins, what it says, and how many tokens there are."""

    starts: np.ndarray
    labels: list[str] | None
    length: int

    @classmethod
    def of(cls, rows: tuple[tuple[str, ...], ...] | None, by: Merge, sample: int, length: int) -> "_Side":
        if rows is None:
            return cls(np.arange(length), None, length)
        tokens = tokens_of(rows, sample)
        if by == "tokens":
            return cls(np.arange(length), list(tokens), length)
        pieces = token_bytes(tokens)
        groups = _GROUPS[by](pieces)
        labels = [spelled(b"".join(pieces[group])) for group in groups]
        if by == "words":
            labels = [label.strip(" ") or label for label in labels]
        return cls(np.array([group.start for group in groups], int), labels, length)

    @property
    def ends(self) -> np.ndarray:
        """The last place of each group."""
        return np.append(self.starts[1:], self.length) - 1

    def labels_at(self, places: np.ndarray) -> list[str] | None:
        """What the groups say in which these places are."""
        if self.labels is None:
            return None
        return [self.labels[at] for at in np.searchsorted(self.starts, places, side="right") - 1]


def has_torn_characters(record: Record, sample: int) -> bool:
    """Whether a token of the sample is only a part of a character."""

    def torn(rows: tuple[tuple[str, ...], ...] | None) -> bool:
        if not rows:
            return False
        tokens = tokens_of(rows, sample)
        return len(character_groups(token_bytes(tokens))) < len(tokens)

    return torn(record.queries) or torn(record.keys) or torn(record.written)


def merged(record: Record, by: Merge = "words", sample: int = 0) -> Record:
    """One sample of the record, its tokens merged: as many queries and keys as there are characters or words.

    A side without tokens stays as it is. Queries that see nothing are left out of the mean. What merging would change
    (LSE, entropy, received, …) is not carried over. Raises ArgumentError for another `by`, and as `Record.weights`
    where exact weights cannot be had.

    >>> from regard.trace import Trace
    >>> record = Trace.from_weights(np.eye(3), ["un", "likely", " yes"])[0]
    >>> merged(record).keys, merged(record).weights()[0, 0].tolist()
    ((('unlikely', 'yes'),), [[1.0, 0.0], [0.0, 1.0]])
    """
    if by not in get_args(Merge):
        raise ArgumentError("option-unknown", option="merge", asked=by, choices=Listed(get_args(Merge)))
    sample = in_range("sample", sample, record.shape[0])
    given = record.weights()  # first: a record without them may be of any length
    rows, keys = _rows(record, by, sample), _Side.of(record.keys, by, sample, record.shape[3])
    weights = to_numpy(given)[sample]  # H T S
    looking = looking_before = weights.any(-1).astype(int)
    if weights.size:
        weights, looking = pool_at(weights, looking, rows.starts, keys.starts)
    sink = record.sink_mass if record.sink_mass is None else _mean_sink(record, sample, looking_before, rows.starts)
    kept = to_kind_of(weights[None], given)
    H, T, S = weights.shape
    small = pool(weights, looking, bin_width(T, _MAP), bin_width(S, _MAP))[0] if max(T, S) > _MAP else weights
    made = Record(
        shape=(1, H, T, S),
        name=record.name,
        kind=record.kind,
        fused=record.fused,
        rest=record.rest,
        map=kept if small is weights else to_kind_of(small[None], given),
        rectangle=lambda rows, cols: kept[..., rows, cols],
        kept={"weights": kept},
        prompt=None if record.prompt is None else int(np.searchsorted(rows.starts, record.prompt)),
        padding=_padding(record, sample, rows.starts, keys.starts),
        sink_mass=sink,
    )
    return made.with_tokens(rows.read, keys.labels, rows.written)


class _Rows(NamedTuple):
    """The rows of a merged record: the first query of each, what it has read and what it writes."""

    starts: np.ndarray
    read: list[str] | None
    written: list[str] | None


def _rows(record: Record, by: Merge, sample: int) -> _Rows:
    """The queries that write one word, in cross-attention; elsewhere, those that have read one, since keys are read.

    The first query that writes a word has read the word before; the last that has read a word writes the next.
    """
    T = record.shape[2]
    read = _Side.of(record.queries, by, sample, T)
    if record.written is None:
        return _Rows(read.starts, read.labels, None)
    written = _Side.of(record.written, by, sample, T)
    if record.kind == "cross":
        return _Rows(written.starts, read.labels_at(written.starts), written.labels)
    return _Rows(read.starts, read.labels, written.labels_at(read.ends))


def _padding(record: Record, sample: int, rows: np.ndarray, cols: np.ndarray) -> Padding | None:
    """Which groups are text: those of which a token is."""
    if record.padding is None:
        return None

    def grouped(text: Array | None, starts: np.ndarray) -> np.ndarray | None:
        own = None if text is None else to_numpy(text)[sample]
        return None if own is None or not own.size else np.logical_or.reduceat(own, starts)[None]

    return Padding(grouped(record.padding.queries, rows), grouped(record.padding.keys, cols))


def _mean_sink(record: Record, sample: int, looking: np.ndarray, rows: np.ndarray) -> Array:
    """What went to no key, H T, as the mean of each group's queries that look."""
    mass = to_numpy(record.sink_mass)[sample][..., None]
    return to_kind_of(pool_at(mass, looking, rows, np.zeros(1, int))[0][None, ..., 0], record.sink_mass)
