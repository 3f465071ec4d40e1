"""How kernels cut the score matrix into pieces, and when an LSE is too coarse to compute weights from."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

from regard.arrays import Array
from regard.axes import bin_count, bin_width, distance_count
from regard.records import See

SCORES_AT_A_TIME = 2**20
"""Scores in one block of rows: 4 MiB of float32, which stays near a core while it is read several times."""

COLUMNS_PER_QUESTION = 256
"""A mask is asked about so many keys at once, where it does not know beforehand."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of a map along both axes."""

    high: int
    wide: int
    R: int
    C: int

    @classmethod
    def of(cls, T: int, S: int, see: See | None) -> "Bins | None":
        if see is None or not see.map:
            return None
        return cls(bin_width(T, see.map), bin_width(S, see.map), bin_count(T, see.map), bin_count(S, see.map))


def by_distance(diagonals: Array, S: int, offset: int | None = None) -> list[Array]:
    """Sums along the diagonals (…, T + S − 1), lower left first, as sums by distance: 0, 1, 2–3, 4–7, …

    offset   the key at which query 0 stands; None for S − T
    """
    T = diagonals.shape[-1] - S + 1
    middle = S - 1 if offset is None else max(0, T - 1 + offset)  # where each query meets its own key
    sums = [diagonals[..., middle : middle + 1].sum(-1)]
    for b in range(1, distance_count(T, S)):
        near, far = 2 ** (b - 1), 2**b
        below = diagonals[..., max(0, middle - far + 1) : max(0, middle - near + 1)]
        sums.append(below.sum(-1) + diagonals[..., middle + near : middle + far].sum(-1))
    return sums


def head_of(x: Array | None, b: int, h: int) -> Array | None:
    """One head of one sample of an array that broadcasts to B H · ·."""
    return None if x is None else x[b if x.shape[0] > 1 else 0, h if x.shape[1] > 1 else 0]


def block_of(x: Array, rows: slice, cols: slice) -> Array:
    """A rectangle of an array that broadcasts to … T S."""
    whole = slice(None)
    return x[..., rows if x.shape[-2] > 1 else whole, cols if x.shape[-1] > 1 else whole]


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def rows_per_block(T: int, S: int, most: int, high: int | None = None) -> int:
    """How many rows to take at a time: at most `most`, fewer when they are long, whole bins where bins are lower.

    Never fewer than sixteen, however long they are.
    """
    rows = max(16, min(most, SCORES_AT_A_TIME // max(1, S), max(1, T)))
    return rows if high is None or high > rows else rows // high * high


def row_blocks(start: int, stop: int, step: int) -> Iterator[slice]:
    """Consecutive slices of at most `step` rows."""
    for first in range(start, stop, step):
        yield slice(first, min(stop, first + step))


def units_of_work(heads: int, T: int, grain: int, workers: int) -> list[tuple[int, int, int]]:
    """(head, first row, last row) pieces: a head each, cut further when heads are too few to keep everyone busy.

    Cuts fall on multiples of `grain`, so that no two pieces share a bin of the map.
    """
    parts = 1 if heads >= 2 * workers else -(-2 * workers // max(1, heads))
    rows = -(-T // parts)
    rows = max(1, -(-rows // grain)) * grain
    return [(head, r.start, r.stop) for head in range(heads) for r in row_blocks(0, T, rows)]


COARSE = 1e-4
"""Of a weight exp(score − LSE) no larger part may be lost because both are rounded."""


def is_coarse(lse: Array, eps: float) -> bool:
    """Whether any is so far from 0 that it was rounded to too few digits; -inf is of a row that sees nothing.

    >>> import numpy as np
    >>> [is_coarse(np.array([3.0, far]), 2.0**-23) for far in (-800, 900, -np.inf, -3.4e38)]
    [False, True, False, True]
    """
    far = abs(lse)
    return bool(((far * eps > COARSE) & (far < math.inf)).any())
