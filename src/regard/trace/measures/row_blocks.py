"""Exact weights of a record, a block of rows at a time, for all measures.

No T × S array is allocated. Which keys are visible is in `visibility`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from regard.arrays import Array, to_numpy
from regard.errors import ArgumentError
from regard.records import Record

WEIGHTS_AT_A_TIME = 2**21
"""Number of weights computed at once, of all samples and heads together: 8 MiB of float32."""
LOWEST = -6e4
"""Lower than any score of a visible key: scores masked with float16's lowest number, or a lower one, are below it."""


class Block(NamedTuple):
    """Some rows of a record, all samples and heads."""

    rows: slice
    weights: np.ndarray
    """B H r S, float32 or float64; rows that are fully masked, or have NaN, are 0."""
    valid: np.ndarray
    """B H r: the queries that are neither fully masked nor NaN."""


def blocks(record: Record, most: int | None = None) -> Iterator[Block]:
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
        yield Block(rows, np.where(valid[..., None], weights, 0), valid)


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
