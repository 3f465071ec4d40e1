"""Sight: who may look where in a record, and which of its places are a text and not padding.

It knows masks, weights and statistics, and which of them to believe; what is measured is known next door.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from regard.kinds import to_numpy
from regard.masks import BoundMask, Mask
from regard.records import Record
from regard.trace.measures.blocks import Block, blocks, is_across, pieces, places
from regard.trace.measures.outline import Outline, outlined
from regard.trace.pooling import bin_size

_MOST = 1024
"""Rows of a mask that are asked which keys they see."""
_SQUARE = 256


class Reach(NamedTuple):
    """Of each sample: keys before `start`, and from `stop` on, are padding. All queries see all others."""

    start: np.ndarray
    """B"""
    stop: np.ndarray
    """B"""


class Sight:
    """Who may look where. Padding is no query and no key, so that a padded text is measured as it is alone.

    A record that knows its padding says what is none. Else it is asked, in this order, for

    the mask    kept beside q and k by `See(qk=True)`, unless there is a bias, which may hide keys too
    weights     where they are exact: see `outlined`. So for small maps, for Hugging Face's `eager`, stitched texts and
                weights from elsewhere
    statistics  of a coarse map: `received`, else the map's bins, tell before which key and behind which nobody looked.
                Padding that fills no whole bin is not found then

    Keys that nobody may look at are padding. In self-attention they are no queries either; neither are queries that see
    nothing. The queries of cross-attention are another text: `queries`, B T, or the Sight of a decoder's
    own attention, says which of them count.

    A coarse map may be of any number of positions: what is told of each of them is made only when it is asked for.
    """

    def __init__(self, record: Record, queries: "np.ndarray | Sight | None" = None) -> None:
        self.record, self._given = record, queries
        self._by: BoundMask | Outline | Reach = _bound(record) or _told(record)

    @property
    def _reach(self) -> Reach | None:
        """Where the text is told by its ends alone, and so nothing of its length need be made."""
        return self._by if isinstance(self._by, Reach) and self.record.padding is None else None

    @cached_property
    def keys(self) -> np.ndarray:
        """B S: which keys are no padding."""
        B, _, _, S = self.record.shape
        if self.record.padding is not None:
            known = self.record.padding.keys
            return np.ones((B, S), bool) if known is None else np.asarray(to_numpy(known))
        if isinstance(self._by, Reach):
            at = np.arange(S)
            keys: np.ndarray = (at >= self._by.start[:, None]) & (at < self._by.stop[:, None])
            return keys
        return self._by.keep if isinstance(self._by, Outline) else _keys_seen(self.record, self._by)

    @cached_property
    def queries(self) -> np.ndarray:
        """B T: which queries are none."""
        B, _, T, S = self.record.shape
        given = self._given.queries if isinstance(self._given, Sight) else self._given
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
        if (reach := self._reach) is not None:
            return np.where(reach.start < reach.stop, reach.start, 0)
        return self.keys.argmax(1) if self.record.shape[-1] else np.zeros(self.record.shape[0], int)

    @property
    def count(self) -> np.ndarray:
        """B: how many keys are no padding."""
        if (reach := self._reach) is not None:
            return np.maximum(0, reach.stop - reach.start)
        return self.keys.sum(1)

    @property
    def sees_all(self) -> bool:
        """Whether nothing hides a key of the text from a query, as far as can be told."""
        return isinstance(self._by, Reach)

    @property
    def whole(self) -> np.ndarray:
        """B: whether every query is one."""
        B, _, T, S = self.record.shape
        reach = self._reach
        if reach is not None and isinstance(self._given, Sight):
            return self._given.whole
        if reach is None or self._given is not None:
            return np.asarray(self.queries.all(1))
        if is_across(self.record):
            return np.ones(B, bool)
        start, stop = reach
        whole: np.ndarray = (start >= stop) | (stop <= S - T) | ((start <= S - T) & (stop >= S))
        return whole

    @property
    def offsets(self) -> np.ndarray:
        """B: the key at which query 0 of each text would stand; its last query stands at its last key."""
        B, _, T, S = self.record.shape
        found = None if self.record.padding is None else self.record.padding.offsets(T, S)
        return np.full(B, S - T) if found is None else np.asarray(to_numpy(found))

    @property
    def padded(self) -> np.ndarray:
        """B: whether a query is none, or the first key is not the first of the text."""
        return (self.first > 0) | ~self.whole

    def of(self, rows: slice) -> np.ndarray:
        """B h r S, boolean; h is 1 where all heads see alike."""
        B, _, _, S = self.record.shape
        if isinstance(self._by, BoundMask):
            return _block(self._by, rows, slice(0, S), B)
        if isinstance(self._by, Reach):
            return np.broadcast_to(self.keys[:, None, None], (B, 1, rows.stop - rows.start, S))
        at = np.zeros(rows.stop - rows.start, int) if is_across(self.record) else places(self.record, rows)
        return self._by.of(at)[:, None]

    def blocks(self, most: int | None = None) -> Iterator[Block]:
        """As `blocks`, padding's rows 0 and not looking."""
        for block in blocks(self.record, most):
            looking = block.looking & self.queries[:, None, block.rows]
            yield Block(block.rows, np.where(looking[..., None], block.weights, 0), looking)


def sights(records: Iterable[Record]) -> Iterator[Sight]:
    """Of the records of a run, in call order: padding among a decoder's queries holds for its cross-attention too."""
    before: Sight | None = None
    for record in records:
        B, _, T, _ = record.shape
        if record.kind == "cross":
            fits = before is not None and (before.record.shape[0], before.record.shape[2]) == (B, T)
            yield Sight(record, before if fits else None)
            continue
        sight = Sight(record)
        before = before if record.kind == "encoder" else sight
        yield sight


def _bound(record: Record) -> BoundMask | None:
    """The mask of q and k, where nothing else hides keys."""
    kept, (T, S) = record.kept, record.shape[-2:]
    if not {"q", "mask"} & kept.keys() or kept.get("bias") is not None:  # a file may keep the mask alone
        return None
    mask = Mask.window(None, None) if kept.get("mask") is None else Mask.of(kept["mask"])
    return mask.bind(tuple(kept.get("lead", record.shape[:2])), T, S, kept.get("q"))


def _block(bound: BoundMask, rows: slice, cols: slice, samples: int) -> np.ndarray:
    """B h r c of the mask."""
    seen = np.asarray(to_numpy(bound.block(rows, cols)))
    seen = seen[(None,) * (4 - seen.ndim)]
    return np.broadcast_to(seen, (samples, seen.shape[1], rows.stop - rows.start, cols.stop - cols.start))


def _keys_seen(record: Record, bound: BoundMask) -> np.ndarray:
    """B S: keys that anybody may see; of a long text, some rows are asked, and each query whether it sees itself."""
    B, _, T, S = record.shape
    found = np.zeros((B, S), bool)
    for rows in pieces(record, _MOST):
        found |= _block(bound, rows, slice(0, S), B).any((1, 2))
    if T > _MOST and not is_across(record):
        for start in range(0, T, _SQUARE):
            rows = slice(start, min(T, start + _SQUARE))
            cols = slice(rows.start + S - T, rows.stop + S - T)
            found[:, cols] |= np.diagonal(_block(bound, rows, cols, B).any(1), axis1=1, axis2=2)
    return found


def _told(record: Record) -> Outline | Reach:
    """By exact weights, else by statistics, which tell of keys only."""
    B, H, T, S = record.shape
    if record.has_weights:
        return outlined(record)
    none, all_ = np.zeros(B, int), np.full(B, S)
    if record.received is not None and H:
        seen, wide = np.any(to_numpy(record.received), axis=1), 1
    elif record.map is not None and H and T and S:
        seen = np.any(to_numpy(record.map), axis=(1, 2))  # B C
        wide = bin_size(S, seen.shape[1])
    else:
        return Reach(none, all_)
    # Padding stands before a text or behind it; a key between, at which nobody looks, is sooner one that nobody wanted.
    some, C = seen.any(1), seen.shape[1]
    if not C:
        return Reach(none, none)
    start, stop = seen.argmax(1) * wide, np.minimum((C - seen[:, ::-1].argmax(1)) * wide, S)
    return Reach(np.where(some, start, 0), np.where(some, stop, 0))
