"""Sight: who may look where in a record, and which of its places are a text and not padding.

It knows masks, weights and statistics, and which of them to believe; what is measured is known next door.
"""

from collections.abc import Iterable, Iterator

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


class Sight:
    """Who may look where. Padding is no query and no key, so that a padded text is measured as it is alone.

    A record is asked, in this order, for

    the mask    kept beside q and k by `See(qk=True)`, unless there is a bias, which may hide keys too
    weights     where they are exact: see `outlined`. So for small maps, for Hugging Face's `eager`, stitched texts and
                weights from elsewhere
    statistics  of a coarse map: `received`, else the map's bins, tell before which key and behind which nobody looked.
                Padding that fills no whole bin is not found then

    Keys that nobody may look at are padding. In self-attention they are no queries either; neither are queries that see
    nothing. The queries of cross-attention are another text: `queries`, B T, says which of them count.
    """

    def __init__(self, record: Record, queries: np.ndarray | None = None) -> None:
        B, _, T, S = record.shape
        self.record = record
        self._by: BoundMask | Outline = _bound(record) or _outline(record)
        self.keys: np.ndarray = self._by.keep if isinstance(self._by, Outline) else _keys_seen(record, self._by)
        """B S: which keys are no padding."""
        self.queries: np.ndarray = np.ones((B, T), bool) if queries is None else queries
        """B T: which queries are none."""
        if queries is None and not is_across(record):
            own = self.keys[:, S - T :]
            self.queries = own | ~own.any(1, keepdims=True)
        self.first: np.ndarray = self.keys.argmax(1) if S else np.zeros(B, int)
        """B: the first key of each text."""

    @property
    def padded(self) -> np.ndarray:
        """B: whether a query is none, or the first key is not the first of the text."""
        return (self.first > 0) | ~self.queries.all(1)

    def of(self, rows: slice) -> np.ndarray:
        """B h r S, boolean; h is 1 where all heads see alike."""
        B, _, _, S = self.record.shape
        if isinstance(self._by, BoundMask):
            return _block(self._by, rows, slice(0, S), B)
        at = np.zeros(rows.stop - rows.start, int) if is_across(self.record) else places(self.record, rows)
        return self._by.of(at)[:, None]

    def blocks(self, most: int | None = None) -> Iterator[Block]:
        """As `blocks`, padding's rows 0 and not looking."""
        for block in blocks(self.record, most):
            looking = block.looking & self.queries[:, None, block.rows]
            yield Block(block.rows, np.where(looking[..., None], block.weights, 0), looking)


def sights(records: Iterable[Record]) -> Iterator[Sight]:
    """Of the records of a run, in call order: padding among a decoder's queries holds for its cross-attention too."""
    before: np.ndarray | None = None
    for record in records:
        B, _, T, _ = record.shape
        if record.kind == "cross":
            yield Sight(record, before if before is not None and before.shape == (B, T) else None)
            continue
        sight = Sight(record)
        before = before if record.kind == "encoder" else sight.queries
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


def _outline(record: Record) -> Outline:
    """By exact weights, else by statistics, which tell of keys only."""
    B, H, T, S = record.shape
    if record.has_weights:
        return outlined(record)
    seen = np.ones((B, S), bool)
    if record.received is not None:
        seen = np.any(to_numpy(record.received), axis=1)
    elif record.map is not None and H and T and S:
        bins = np.any(to_numpy(record.map), axis=(1, 2))  # B C
        seen = np.repeat(bins, bin_size(S, bins.shape[1]), axis=1)[:, :S]
    # Padding stands before a text or behind it; a key between, at which nobody looks, is sooner one that nobody wanted.
    keep = np.maximum.accumulate(seen, 1) & np.maximum.accumulate(seen[:, ::-1], 1)[:, ::-1]
    return Outline(np.full(B, S), np.full(B, S), keep)
