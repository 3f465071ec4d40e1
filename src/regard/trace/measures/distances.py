"""Distances: how far a head looks, on average and bin by bin. Self-attention only: two texts share no positions."""

import numpy as np

from regard.axes import distance_count
from regard.kinds import to_numpy
from regard.records import Record
from regard.trace.measures.blocks import places
from regard.trace.measures.sight import Sight


def mean_distance(record: Record, sight: Sight | None = None) -> np.ndarray:
    """Σ w |query − key|, the mean over the queries that see anything, B H (Vig and Belinkov 2019).

    The last query stands at the last key; padding is no query (`Sight`). It needs exact weights; `distance_profile` may
    do without.

    >>> from regard.trace import Trace
    >>> mean_distance(Trace.from_weights(np.eye(4)[[0, 0, 1, 2]])[0])
    array([[0.75]])
    """
    B, H = record.shape[:2]
    sight = sight or Sight(record)
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    for block in sight.blocks():
        far = _distances(sight, block.rows)
        total += np.einsum("bhrs,brs->bh", block.weights, far.astype(block.weights.dtype))
        count += block.looking.sum(-1)
    mean: np.ndarray = total / np.maximum(count, 1)
    return mean


def distance_profile(record: Record) -> np.ndarray:
    """The share of the weight at distance 0, 1, 2–3, 4–7, … of query and key, B H D.

    Kept by `See(distance=True)`; from exact weights where it was not, or where the record did not know of its padding.

    >>> from regard.trace import Trace
    >>> distance_profile(Trace.from_weights(np.eye(4)[[0, 0, 1, 2]])[0])
    array([[[0.25, 0.75, 0.  ]]])
    """
    sight = Sight(record)
    if record.distance is not None and (record.padding is not None or sight.whole.all()):
        return np.asarray(to_numpy(record.distance))
    B, H, T, S = record.shape
    D = distance_count(T, S)
    total, count = np.zeros((B, H, D)), np.zeros((B, H), int)
    starts = np.array([0, *(2**bin for bin in range(D - 1))])  # the least distance of each bin
    for block in sight.blocks():
        far = _distances(sight, block.rows)
        bins = np.searchsorted(starts, far, side="right")[:, None] - 1  # B 1 r S
        for bin in range(D):
            total[..., bin] += np.where(bins == bin, block.weights, 0).sum((-2, -1))
        count += block.looking.sum(-1)
    return total / np.maximum(count, 1)[..., None]


def _distances(sight: Sight, rows: slice) -> np.ndarray:
    """How far each key is from the queries of some rows, B r S."""
    here = places(sight.record, rows) + (sight.offsets - sight.record.shape[-1] + sight.record.shape[-2])[:, None]
    return np.abs(here[..., None] - np.arange(sight.record.shape[-1]))
