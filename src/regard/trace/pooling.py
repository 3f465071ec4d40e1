"""Weights, or a map of them, in fewer and larger cells: `reference.pooled_map` at speed and for maps of maps.

It knows arrays and sizes only. What makes pooling a map again exact is the number of queries behind each row.
"""

import numpy as np

from regard.axes import bin_count


def pool(weights: np.ndarray, looking: np.ndarray, high: int, wide: int) -> tuple[np.ndarray, np.ndarray]:
    """(…, T, S) in cells of `high` rows and `wide` columns, and the queries that look in each row of cells.

    Columns are summed; rows are averaged in proportion to `looking` (…, T), the queries behind each of them, so
    that a row which looks at nothing (0 queries) is left out of the mean. The last cells are ragged.

    >>> pool(np.eye(3), np.ones(3, int), high=2, wide=2)
    (array([[1., 0.],
           [0., 1.]]), array([2, 1]))
    """
    T, S = weights.shape[-2:]
    return pool_at(weights, looking, np.arange(0, T, high), np.arange(0, S, wide))


def pool_at(
    weights: np.ndarray, looking: np.ndarray, rows: np.ndarray, cols: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same in cells of any size, told by the first row and the first column of each."""
    if not weights.size:
        empty = np.zeros((*weights.shape[:-2], len(rows), len(cols)), weights.dtype)
        return empty, np.zeros((*looking.shape[:-1], len(rows)), int)
    exact = weights.dtype if weights.dtype == np.float64 else np.dtype(np.float32)
    summed = np.add.reduceat(weights, cols, axis=-1, dtype=exact)
    total = np.add.reduceat(looking, rows, axis=-1)  # … R
    mean = np.add.reduceat(summed * looking[..., None].astype(exact), rows, axis=-2)
    return mean / np.maximum(total, 1)[..., None].astype(exact), total


def bin_size(length: int, bins: int) -> int:
    """How many positions a bin of a finished map holds, told by how many bins there are.

    >>> bin_size(1000, 250), bin_size(5, 3)
    (4, 2)
    """
    return max(1, -(-length // max(1, bins)))


def is_binning(length: int, bins: int) -> bool:
    """Whether `length` positions can have been put in just so many bins."""
    return bins == 0 if length == 0 else 0 < bins <= length and bin_count(length, bins) == bins
