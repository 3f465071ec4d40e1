"""Pooling of weights, or of a map, into larger cells: a fast `reference.pooled_map` that can also pool maps.

This module handles arrays and sizes only. Pooling a map is exact because the number of queries of each row is known.
"""

import numpy as np

from regard.axes import bin_count


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
