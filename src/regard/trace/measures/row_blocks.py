"""Exact weights of a record, a few rows at a time: what every measure walks over.

Nothing T × S is made. It knows records and positions; who could have been looked at, and what is measured, is known
next door.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from regard.arrays import Array, to_numpy
from regard.errors import ArgumentError
from regard.records import Record

WEIGHTS_AT_A_TIME = 2**21
"""Weights made at once, of all samples and heads together: 8 MiB of float32."""
LOWEST = -6e4
"""No score of a key that may be seen is as low: so low are those that float16's lowest number, or a lower one, hid."""


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
    if not record.has_weights:
        record.weights()  # raises, before the rows of a record of any length are counted
    for rows in pieces(record, most):
        weights = np.asarray(to_numpy(record.weights(rows=rows)))
        weights = weights.astype(np.float32) if weights.dtype == np.float16 else weights
        sums = weights.sum(-1)
        looking = np.isfinite(sums) & (sums > 0)
        if record.lse is not None:
            looking &= sees_anything(record.lse[:, :, rows])
        yield Block(rows, np.where(looking[..., None], weights, 0), looking)


def sees_anything(lse: Array) -> np.ndarray:
    """By the LSE: −∞ where all keys were hidden, or nearly that where a large negative number was to hide them.

    >>> sees_anything(np.array([1.5, -np.inf, -3.4e38]))
    array([ True, False, False])
    """
    found = np.asarray(to_numpy(lse))
    return np.isfinite(found) & (found > LOWEST)


def pieces(record: Record, most: int | None = None) -> list[slice]:
    """The rows of each block."""
    B, H, T, S = record.shape
    high = max(1, min(T, WEIGHTS_AT_A_TIME // max(1, B * H * S)))
    if most is None or most >= T:
        return [slice(start, min(T, start + high)) for start in range(0, T, high)]
    high = min(high, max(1, most // 32))  # at least 32 places in the text
    starts = np.linspace(0, T - high, max(1, most // high)).astype(int)
    return [slice(start, start + high) for start in dict.fromkeys(starts.tolist())]


def is_across(record: Record) -> bool:
    """Whether queries and keys are two texts."""
    return record.kind == "cross" or record.shape[-2] > record.shape[-1]


def places(record: Record, rows: slice) -> np.ndarray:
    """Where the queries of some rows stand among the keys, r: the last query stands at the last key.

    ArgumentError for cross-attention, whose queries and keys are two texts.
    """
    T, S = record.shape[-2:]
    if is_across(record):
        raise ArgumentError("measure-two-texts", name=record.name, T=T, S=S)
    return np.arange(rows.start, rows.stop) + S - T
