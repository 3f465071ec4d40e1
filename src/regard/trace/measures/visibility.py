"""Exact weights of a record, some rows at a time; which keys each query sees, and which positions are text.

No T × S array is allocated. What is visible is known from the mask of a record, or from its weights.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from regard.arrays import Array, to_numpy
from regard.errors import ArgumentError
from regard.masks import BoundMask
from regard.records import Record
from regard.trace.pooling import bin_size

WEIGHTS_AT_A_TIME = 2**21
"""Number of weights computed at once, of all samples and heads together: 8 MiB of float32."""
LOWEST = -6e4
"""Lower than any score of a visible key: scores masked with float16's lowest number, or a lower one, are below it."""


class RowBlock(NamedTuple):
    """Some rows of a record, all samples and heads."""

    rows: slice
    weights: np.ndarray
    """B H r S, float32 or float64; rows that are fully masked, or have NaN, are 0."""
    valid: np.ndarray
    """B H r: the queries that are neither fully masked nor NaN."""


def blocks(record: Record, most: int | None = None) -> Iterator[RowBlock]:
    """All rows of the record, or about `most` of them in evenly spread blocks.

    NotKeptError where the record has no exact weights: its map is coarse, and neither q and k nor weights were kept.
    """
    if not record.has_weights:
        record.weights()  # raises now, because a record without weights may claim any length
    for rows in block_rows(record, most):
        weights = np.asarray(to_numpy(record.weights(rows=rows)))
        weights = weights.astype(np.float32) if weights.dtype == np.float16 else weights
        sums = weights.sum(-1)
        valid = np.isfinite(sums) & (sums > 0)
        if record.lse is not None:
            valid &= not_fully_masked(record.lse[:, :, rows])
        yield RowBlock(rows, np.where(valid[..., None], weights, 0), valid)


def not_fully_masked(lse: Array) -> np.ndarray:
    """Whether queries are not fully masked, by the LSE: −∞, or a large negative number, where all keys are masked.

    >>> not_fully_masked(np.array([1.5, -np.inf, -3.4e38]))
    array([ True, False, False])
    """
    found = np.asarray(to_numpy(lse))
    return np.isfinite(found) & (found > LOWEST)


def block_rows(record: Record, most: int | None = None) -> list[slice]:
    """The rows of each block of `blocks`."""
    B, H, T, S = record.shape
    high = max(1, min(T, WEIGHTS_AT_A_TIME // max(1, B * H * S)))
    if most is None or most >= T:
        return [slice(start, min(T, start + high)) for start in range(0, T, high)]
    high = min(high, max(1, most // 32))  # at least 32 blocks, spread over the text
    starts = np.linspace(0, T - high, max(1, most // high)).astype(int)
    return [slice(start, start + high) for start in dict.fromkeys(starts.tolist())]


def is_across(record: Record) -> bool:
    """Whether queries and keys are two texts."""
    return record.kind == "cross" or record.shape[-2] > record.shape[-1]


def places(record: Record, rows: slice) -> np.ndarray:
    """The key positions of the queries of some rows, r: the last query is aligned with the last key.

    ArgumentError for cross-attention, where queries and keys are two texts.
    """
    T, S = record.shape[-2:]
    if is_across(record):
        raise ArgumentError("measure-two-texts", name=record.name, T=T, S=S)
    return np.arange(rows.start, rows.stop) + S - T


_MOST = 1024
"""Rows that are read of a long text."""


class InferredMask(NamedTuple):
    """For each sample: a query sees the kept keys from `left` places before it to `right` places after it."""

    left: np.ndarray
    """B"""
    right: np.ndarray
    """B"""
    keep: np.ndarray
    """B S"""

    def of(self, at: np.ndarray) -> np.ndarray:
        """B r S: the visible keys of queries at some positions, r."""
        keys, here = np.arange(self.keep.shape[-1]), at[:, None]
        near = (keys >= here - self.left[:, None, None]) & (keys <= here + self.right[:, None, None])
        return near & self.keep[:, None]


class _Rows(NamedTuple):
    """Some rows of one sample, each with its position, and the first, last and number of its keys."""

    at: np.ndarray
    first: np.ndarray
    last: np.ndarray
    number: np.ndarray
    seen: np.ndarray
    """S: the keys with a weight in any of the rows."""


_Band = tuple[int, int, np.ndarray]
"""left, right, keep"""


def inferred_mask(record: Record) -> InferredMask:
    """The mask of each sample, inferred from the exact weights of the record.

    The usual masks are: all keys; causal; or, where an LSE shows that the weights come from a softmax, a window; each
    without padding keys, which have no weight. A mask must fit every query exactly, and without a softmax leave two or
    more adjacent keys. Otherwise all keys count as visible, except later keys if no query attends to them.

    Where no mask fits, rows with equal weights on all keys are left out: a softmax gives these where a large negative
    number masks everything, as in Hugging Face's `eager`.
    """
    B, _, _, S = record.shape
    has_softmax, across = _has_lse(record), is_across(record)
    found = []
    for choices in _read(record):
        bands = [_fitting(rows, has_softmax, across) for rows in choices]
        found.append(next((band for band in bands if band is not None), None) or _usual(choices[-1], across))
    left, right, keep = zip(*found, strict=True) if B else ((), (), ())
    return InferredMask(np.array(left, int), np.array(right, int), np.array(keep, bool).reshape(B, S))


def _has_lse(record: Record) -> bool:
    return record.lse is not None or (record.exact is not None and record.exact.lse is not None)


def _read(record: Record) -> list[list[_Rows]]:
    """For each sample its rows with any weight; then, where some rows are equal on all keys, the other rows."""
    B, _, _, S = record.shape
    parts: list[list[np.ndarray]] = [[np.zeros((5, 0), int)] for _ in range(B)]  # each 5 r
    seen = np.zeros((2, B, S), bool)
    for block in blocks(record, _MOST) if S else ():
        on = np.any(block.weights, axis=1)  # B r S
        at = np.zeros(on.shape[1], int) if is_across(record) else places(record, block.rows)
        same = np.zeros(on.shape[:2], bool)
        if record.lse is None:  # with an LSE, such rows are already left out
            same = (block.weights.max(-1) == block.weights.min(-1)).all(1)
        seen |= np.stack([on.any(1), (on & ~same[..., None]).any(1)])
        first, last, number = on.argmax(-1), S - 1 - on[..., ::-1].argmax(-1), on.sum(-1)
        for b in range(B):
            parts[b].append(np.stack([at, first[b], last[b], number[b], same[b]])[:, on[b].any(-1)])
    found = []
    for b in range(B):
        rows = np.concatenate(parts[b], axis=1)
        others = rows[:, rows[-1] == 0]
        choices = [rows, others] if 0 < others.shape[1] < rows.shape[1] else [rows]
        found.append([_Rows(*each[:4], *seen[n : n + 1, b]) for n, each in enumerate(choices)])
    return found


def _usual(rows: _Rows, across: bool) -> _Band:
    """All keys, or all keys up to the query."""
    S = len(rows.seen)
    is_causal = not across and len(rows.at) > 1 and bool((rows.last <= rows.at).all())
    return S, 0 if is_causal else S, np.ones(S, bool)


def _fitting(rows: _Rows, has_softmax: bool, across: bool) -> _Band | None:
    """A mask that fits all the rows, without padding; None where there is none."""
    S = len(rows.seen)
    left, right, _ = _usual(rows, across)
    if has_softmax and not across and len(rows.at):
        left, right = int((rows.at - rows.first).max()), max(0, int((rows.last - rows.at).max()))
    low, high = np.clip(rows.at - left, 0, S), np.clip(rows.at + right + 1, 0, S)
    keep = rows.seen | _between(rows, low, high)
    kept = np.concatenate([[0], np.cumsum(keep)])
    fits = bool((kept[high] - kept[low] == rows.number).all())
    return (left, right, keep) if fits and (has_softmax or _is_text(keep)) else None


def _is_text(keep: np.ndarray) -> bool:
    """Whether the kept keys are two or more adjacent ones."""
    at = np.flatnonzero(keep)
    return len(at) > 1 and at[-1] - at[0] == len(at) - 1


def _between(rows: _Rows, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """S: keys of the text that are visible to none of these rows, each of which sees low … high."""
    S = len(rows.seen)
    edges = np.zeros(S + 1, int)
    np.add.at(edges, low, 1)
    np.add.at(edges, high, -1)
    keys = np.arange(S)
    within = (keys >= rows.first.min(initial=S)) & (keys <= rows.last.max(initial=-1))
    return within & (np.cumsum(edges)[:S] == 0)


_SQUARE = 256


class TextEnds(NamedTuple):
    """For each sample: keys before `start`, and from `stop` on, are padding. All other keys are visible."""

    start: np.ndarray
    """B"""
    stop: np.ndarray
    """B"""


class Visibility:
    """Which keys are visible to each query. Padding is left out, so that a padded text is measured like the text alone.

    Where the record knows its padding, that is used. Else it is inferred from, in this order,

    the mask    kept with q and k by `See(qk=True)`, unless there is a bias, which may mask keys too
    weights     where they are exact: see `inferred_mask`. For small maps, Hugging Face's `eager`, stitched texts and
                given weights
    statistics  of a coarse map: `received`, else the map's bins, show before which key and after which there is no
                weight. Padding that fills no whole bin is not found

    Keys that are masked for all queries are padding. In self-attention their queries are padding too, and so are fully
    masked queries. The queries of cross-attention are another text: `queries`, B T, or the Visibility of the
    decoder's self-attention, gives which of them count.

    A coarse map may have any number of positions: arrays of that length are computed only when needed.
    """

    def __init__(self, record: Record, queries: "np.ndarray | Visibility | None" = None) -> None:
        self.record, self._given = record, queries
        self._by: BoundMask | InferredMask | TextEnds = _bound(record) or _inferred(record)

    @property
    def _text_ends(self) -> TextEnds | None:
        """The ends of the text where nothing else is known, so that no array of its length is needed."""
        return self._by if isinstance(self._by, TextEnds) and self.record.padding is None else None

    @cached_property
    def keys(self) -> np.ndarray:
        """B S: which keys are text."""
        B, _, _, S = self.record.shape
        if self.record.padding is not None:
            known = self.record.padding.keys
            return np.ones((B, S), bool) if known is None else np.asarray(to_numpy(known))
        if isinstance(self._by, TextEnds):
            at = np.arange(S)
            keys: np.ndarray = (at >= self._by.start[:, None]) & (at < self._by.stop[:, None])
            return keys
        return self._by.keep if isinstance(self._by, InferredMask) else _keys_seen(self.record, self._by)

    @cached_property
    def queries(self) -> np.ndarray:
        """B T: which queries are text."""
        B, _, T, S = self.record.shape
        given = self._given.queries if isinstance(self._given, Visibility) else self._given
        if self.record.padding is not None:
            counted = np.ones((B, T), bool) if given is None else given
            known = self.record.padding.queries
            return counted if known is None else np.asarray(counted & to_numpy(known))
        if given is not None:
            return given
        if is_across(self.record):
            return np.ones((B, T), bool)
        own = self.keys[:, S - T :]
        return own | ~own.any(1, keepdims=True)

    @cached_property
    def first(self) -> np.ndarray:
        """B: the first key of each text."""
        if (ends := self._text_ends) is not None:
            return np.where(ends.start < ends.stop, ends.start, 0)
        return self.keys.argmax(1) if self.record.shape[-1] else np.zeros(self.record.shape[0], int)

    @property
    def count(self) -> np.ndarray:
        """B: the number of keys that are text."""
        if (ends := self._text_ends) is not None:
            return np.maximum(0, ends.stop - ends.start)
        return self.keys.sum(1)

    @property
    def is_unmasked(self) -> bool:
        """Whether no key of the text is masked, as far as is known."""
        return isinstance(self._by, TextEnds)

    @property
    def whole(self) -> np.ndarray:
        """B: whether every query is text."""
        B, _, T, S = self.record.shape
        ends = self._text_ends
        if ends is not None and isinstance(self._given, Visibility):
            return self._given.whole
        if ends is None or self._given is not None:
            return np.asarray(self.queries.all(1))
        if is_across(self.record):
            return np.ones(B, bool)
        start, stop = ends
        whole: np.ndarray = (start >= stop) | (stop <= S - T) | ((start <= S - T) & (stop >= S))
        return whole

    @property
    def offsets(self) -> np.ndarray:
        """B: the key position of query 0 of each text, if its last query is aligned with its last key."""
        B, _, T, S = self.record.shape
        found = None if self.record.padding is None else self.record.padding.offsets(T, S)
        return np.full(B, S - T) if found is None else np.asarray(to_numpy(found))

    @property
    def padded(self) -> np.ndarray:
        """B: whether a query is padding, or the first key is not the first of the text."""
        return (self.first > 0) | ~self.whole

    def of(self, rows: slice) -> np.ndarray:
        """B h r S, boolean: the visible keys; h is 1 where they are the same for all heads."""
        B, _, _, S = self.record.shape
        if isinstance(self._by, BoundMask):
            return _block(self._by, rows, slice(0, S), B)
        if isinstance(self._by, TextEnds):
            return np.broadcast_to(self.keys[:, None, None], (B, 1, rows.stop - rows.start, S))
        at = np.zeros(rows.stop - rows.start, int) if is_across(self.record) else places(self.record, rows)
        return self._by.of(at)[:, None]

    def blocks(self, most: int | None = None) -> Iterator[RowBlock]:
        """Like `blocks`, with the rows of padding set to 0 and not valid."""
        for block in blocks(self.record, most):
            valid = block.valid & self.queries[:, None, block.rows]
            yield RowBlock(block.rows, np.where(valid[..., None], block.weights, 0), valid)


def visibilities(records: Iterable[Record]) -> Iterator[Visibility]:
    """The Visibility of each record of a run, in call order; a decoder's padding applies to its cross-attention too."""
    before: Visibility | None = None
    for record in records:
        B, _, T, _ = record.shape
        if record.kind == "cross":
            fits = before is not None and (before.record.shape[0], before.record.shape[2]) == (B, T)
            yield Visibility(record, before if fits else None)
            continue
        visibility = Visibility(record)
        before = before if record.kind == "encoder" else visibility
        yield visibility


def _bound(record: Record) -> BoundMask | None:
    """The kept mask, where nothing else masks keys."""
    known = None if record.exact is None else record.exact.known_mask
    return None if known is None else known.bind(*record.shape[-2:])


def _block(bound: BoundMask, rows: slice, cols: slice, samples: int) -> np.ndarray:
    """B h r c of the mask."""
    seen = np.asarray(to_numpy(bound.block(rows, cols)))
    seen = seen[(None,) * (4 - seen.ndim)]
    return np.broadcast_to(seen, (samples, seen.shape[1], rows.stop - rows.start, cols.stop - cols.start))


def _keys_seen(record: Record, bound: BoundMask) -> np.ndarray:
    """B S: keys that are visible to any query; a long text uses some rows, and each query's own key."""
    B, _, T, S = record.shape
    found = np.zeros((B, S), bool)
    for rows in block_rows(record, _MOST):
        found |= _block(bound, rows, slice(0, S), B).any((1, 2))
    if T > _MOST and not is_across(record):
        for start in range(0, T, _SQUARE):
            rows = slice(start, min(T, start + _SQUARE))
            cols = slice(rows.start + S - T, rows.stop + S - T)
            found[:, cols] |= np.diagonal(_block(bound, rows, cols, B).any(1), axis1=1, axis2=2)
    return found


def _inferred(record: Record) -> InferredMask | TextEnds:
    """Inferred from exact weights, else from statistics, which show padding keys only."""
    B, H, T, S = record.shape
    if record.has_weights:
        return inferred_mask(record)
    none, all_ = np.zeros(B, int), np.full(B, S)
    if record.received is not None and H:
        seen, wide = np.any(to_numpy(record.received), axis=1), 1
    elif record.map is not None and H and T and S:
        seen = np.any(to_numpy(record.map), axis=(1, 2))  # B C
        wide = bin_size(S, seen.shape[1])
    else:
        return TextEnds(none, all_)
    # Padding is before or after a text; a key between without any weight is more likely one that no head needed.
    some, C = seen.any(1), seen.shape[1]
    if not C:
        return TextEnds(none, none)
    start, stop = seen.argmax(1) * wide, np.minimum((C - seen[:, ::-1].argmax(1)) * wide, S)
    return TextEnds(np.where(some, start, 0), np.where(some, stop, 0))
