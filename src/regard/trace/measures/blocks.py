"""Exact weights of a record, a few rows at a time, and who could have been looked at: what every measure walks over.

Nothing T × S is made. It knows records and positions; what is measured is known next door.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from regard.errors import ArgumentError
from regard.kinds import to_numpy
from regard.masks import BoundMask, Mask
from regard.records import Record

WEIGHTS_AT_A_TIME = 2**21
"""Weights made at once, of all samples and heads together: 8 MiB of float32."""
_LOOK = 16
"""Rows looked at to tell whether a record without a mask is causal."""


class Block(NamedTuple):
    """Some rows of a record, all samples and heads."""

    rows: slice
    weights: np.ndarray
    """B H r S, float32 or float64; rows that see nothing, or met NaN, are 0."""
    looking: np.ndarray
    """B H r: the queries that see anything, and nothing but numbers."""


def blocks(record: Record, most: int | None = None) -> Iterator[Block]:
    """All rows of the record, or some `most` of them in pieces evenly spread.

    NotKeptError where the record has no exact weights: its map is coarser, and neither q and k nor weights were kept.
    """
    for rows in pieces(record, most):
        weights = np.asarray(to_numpy(record.weights(rows=rows)))
        weights = weights.astype(np.float32) if weights.dtype == np.float16 else weights
        sums = weights.sum(-1)
        looking = np.isfinite(sums) & (sums > 0)
        yield Block(rows, np.where(looking[..., None], weights, 0), looking)


def pieces(record: Record, most: int | None = None) -> list[slice]:
    """The rows of each block."""
    B, H, T, S = record.shape
    high = max(1, min(T, WEIGHTS_AT_A_TIME // max(1, B * H * S)))
    if most is None or most >= T:
        return [slice(start, min(T, start + high)) for start in range(0, T, high)]
    high = min(high, max(1, most // 32))  # at least 32 places in the text
    starts = np.linspace(0, T - high, max(1, most // high)).astype(int)
    return [slice(start, start + high) for start in dict.fromkeys(starts.tolist())]


def places(record: Record, rows: slice) -> np.ndarray:
    """Where the queries of some rows stand among the keys, r: the last query stands at the last key.

    ArgumentError for cross-attention, whose queries and keys are two texts.
    """
    T, S = record.shape[-2:]
    if record.kind == "cross" or T > S:
        raise ArgumentError("measure-two-texts", name=record.name, T=T, S=S)
    return np.arange(rows.start, rows.stop) + S - T


class Sight:
    """Who may look where: by the mask that was kept, else causal where the weights are."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._bound = _bound(record)
        self._causal = self._bound is None and _is_causal(record)

    def of(self, rows: slice) -> np.ndarray:
        """B h r S, boolean; h is 1 where all heads see alike."""
        B, _, _, S = self.record.shape
        height = rows.stop - rows.start
        if self._bound is not None:
            seen = to_numpy(self._bound.block(rows, slice(0, S)))
            seen = seen[(None,) * (4 - seen.ndim)]
            return np.broadcast_to(seen, (B, seen.shape[1], height, S))
        seen = np.ones((height, S), bool)
        if self._causal:
            seen = np.arange(S) <= places(self.record, rows)[:, None]
        return np.broadcast_to(seen, (B, 1, height, S))

    def first(self) -> np.ndarray:
        """B: the first key of each text, padding passed over; the first that the first visible query sees."""
        B, _, T, S = self.record.shape
        found = np.zeros(B, int)
        if self._bound is None or not T or not S:
            return found
        left = np.ones(B, bool)
        for start in range(0, T, _LOOK):
            rows = slice(start, min(T, start + _LOOK))
            seen = np.any(self.of(rows), axis=1)  # B r S
            real = seen.any(-1)
            if self.record.kind != "cross" and T <= S:
                real = seen[:, np.arange(real.shape[1]), places(self.record, rows)]  # padding does not see itself
            for b in np.flatnonzero(left & real.any(1)):
                found[b] = seen[b, real[b].argmax()].argmax()
                left[b] = False
            if not left.any():
                break
        return found


def _bound(record: Record) -> BoundMask | None:
    mask = record.kept.get("mask")
    if not isinstance(mask, Mask):
        return None
    T, S = record.shape[-2:]
    return mask.bind(tuple(record.kept.get("lead", record.shape[:2])), T, S, record.kept.get("q"))


def _is_causal(record: Record) -> bool:
    """Whether nobody looks ahead, in the first rows of a record that kept no mask."""
    T, S = record.shape[-2:]
    if record.kind == "cross" or T > S or T < 2:
        return False
    rows = slice(0, min(T, _LOOK))
    ahead = np.arange(S) > places(record, rows)[:, None]
    return not to_numpy(record.weights(rows=rows))[..., ahead].any()
