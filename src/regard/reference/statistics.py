"""What can be read off the weights: the definitions, by brute force, that every kernel must reproduce."""

import numpy as np

from regard.axes import bin_count, bin_width, distance_count
from regard.padding import Padding, without_rows
from regard.records import See, Statistics, Top
from regard.reference.inputs import array_likes


@array_likes
def pooled_map(weights: np.ndarray, bins: int) -> np.ndarray:
    """The weights (…, T, S) in at most `bins` × `bins` bins: summed over keys, averaged over queries that see any.

    Bins are ceil(S / bins) keys wide and ceil(T / bins) queries high, the last ones ragged. A row of the map sums
    to 1; one whose queries see nothing is 0.

    >>> pooled_map(np.eye(4), 2)
    array([[1., 0.],
           [0., 1.]])
    """
    T, S = weights.shape[-2:]
    high, wide = bin_width(T, bins), bin_width(S, bins)
    pooled = np.zeros((*weights.shape[:-2], bin_count(T, bins), bin_count(S, bins)), weights.dtype)
    looking = weights.sum(-1) != 0  # … T; NaN counts as looking
    for r in range(pooled.shape[-2]):
        rows = slice(r * high, (r + 1) * high)
        count = np.maximum(looking[..., rows].sum(-1), 1)
        for c in range(pooled.shape[-1]):
            block = weights[..., rows, c * wide : (c + 1) * wide]
            pooled[..., r, c] = block.sum((-2, -1)) / count
    return pooled


@array_likes
def entropy(weights: np.ndarray, sink_mass: np.ndarray | None = None) -> np.ndarray:
    """−Σ w ln w along the keys, in nats: 0 for one key, ln n for n equal ones, 0 for a query that sees nothing.

    `sink_mass`, (…, T), is what went to no key; it counts as one key more.

    >>> entropy(np.array([0.25, 0.25]), np.array(0.5)).round(4)
    np.float64(1.0397)
    """
    if sink_mass is not None:
        weights = np.concatenate([weights, sink_mass[..., None]], axis=-1)
    return (weights * -np.log(np.where(weights > 0, weights, 1))).sum(-1) + 0.0  # never -0


@array_likes
def received(weights: np.ndarray) -> np.ndarray:
    """How much attention each key received: the column sums, (…, S)."""
    return weights.sum(-2)


@array_likes
def strongest(weights: np.ndarray, k: int, scores: np.ndarray | None = None) -> Top:
    """The k strongest keys of each query, the stronger first, of equal ones the earlier; k at most S.

    `scores`, -inf where hidden, also tell keys apart whose weights are too small to differ: hidden ones come last.

    >>> strongest(np.array([[0.0, 0.25, 0.5, 0.25]]), 3)
    Top(indices=array([[2, 1, 3]]), weights=array([[0.5 , 0.25, 0.25]]))
    """
    indices = np.argsort(-(weights if scores is None else scores), axis=-1, kind="stable")[..., :k]
    return Top(indices, np.take_along_axis(weights, indices, axis=-1))


@array_likes
def sink(weights: np.ndarray, first: np.ndarray | None = None) -> np.ndarray:
    """The mean weight of the first key, (…), over the queries that see any; 0 where none does.

    first   B, which key that is in each sample of B H T S; None for key 0

    >>> sink(np.full((2, 1, 1, 4), [0.1, 0.2, 0.3, 0.4]), first=np.array([0, 2])).ravel()
    array([0.1, 0.3])
    """
    if first is None or not weights.shape[-1]:
        return weights[..., :1].sum((-2, -1)) / _looking(weights)
    own = np.take_along_axis(weights, first[:, None, None, None], axis=-1)  # B H T 1
    return own.sum((-2, -1)) / _looking(weights)


@array_likes
def distance(weights: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
    """The share of the weight at distance 0, 1, 2–3, 4–7, … of query and key, (…, D): a mean over queries that see any.

    The last query stands at the last key, as everywhere.

    offsets   B, the key at which query 0 of each sample of B H T S stands; None for S − T

    >>> distance(np.eye(4)), distance(np.ones((1, 4)) / 4)
    (array([1., 0., 0.]), array([0.25, 0.25, 0.5 ]))
    """
    T, S = weights.shape[-2:]
    shares = np.zeros((*weights.shape[:-2], distance_count(T, S)), weights.dtype)
    for i, j in np.ndindex(T, S):
        if offsets is None:
            shares[..., abs(i + S - T - j).bit_length()] += weights[..., i, j]
            continue
        for b, offset in enumerate(offsets):
            bin = min(abs(i + int(offset) - j).bit_length(), shares.shape[-1] - 1)
            shares[b, ..., bin] += weights[b, ..., i, j]
    shares += 0 * weights.sum((-2, -1))[..., None]  # who met NaN has no distance, not even a far one
    return shares / _looking(weights)[..., None]


def _looking(weights: np.ndarray) -> np.ndarray:
    """How many queries see any key, 1 at least; NaN counts as looking."""
    return np.maximum((weights.sum(-1) != 0).sum(-1), 1)


@array_likes
def statistics_of(
    weights: np.ndarray,
    lse: np.ndarray,
    see: See,
    scores: np.ndarray | None = None,
    padding: Padding | None = None,
    sink_mass: np.ndarray | None = None,
) -> Statistics:
    """Everything that `see` asks for; `scores` as for `strongest`.

    Queries that are padding count as queries that see nothing, and the first key is the first of the text.
    `sink_mass`, B H T, is what went to no key.
    """
    first = offsets = None
    if padding is not None:
        weights, lse = without_rows(weights, padding.queries, 0, axes=1), without_rows(lse, padding.queries, -np.inf)
        scores = None if scores is None else without_rows(scores, padding.queries, -np.inf, axes=1)
        sink_mass = None if sink_mass is None else without_rows(sink_mass, padding.queries, 0)
        first, offsets = padding.first_keys(), padding.offsets(*weights.shape[-2:])
    return Statistics(
        map=pooled_map(weights, see.map) if see.map else None,
        lse=lse if see.lse or see.qk else None,
        entropy=entropy(weights, sink_mass) if see.entropy else None,
        received=received(weights) if see.received else None,
        top=strongest(weights, see.top, scores) if see.top else None,
        sink=sink(weights, first) if see.sink else None,
        distance=distance(weights, offsets) if see.distance else None,
        sink_mass=sink_mass,
    )
