"""Statistics of attention weights: brute-force definitions that every kernel must reproduce."""

import numpy as np

from regard.axes import bin_count, bin_width, distance_count
from regard.masks.padding import Padding, without_rows
from regard.records import See, Statistics, Top
from regard.reference.inputs import array_likes


@array_likes
def pooled_map(weights: np.ndarray, bins: int) -> np.ndarray:
    """The weights (…, T, S) pooled to at most `bins` × `bins`: summed over keys, averaged over queries.

    Bins are ceil(S / bins) keys wide and ceil(T / bins) queries high, the last ones ragged. Fully masked
    queries are left out of the mean. A row of the map sums to 1; a row of fully masked queries is 0.

    >>> pooled_map(np.eye(4), 2)
    array([[1., 0.],
           [0., 1.]])
    """
    T, S = weights.shape[-2:]
    high, wide = bin_width(T, bins), bin_width(S, bins)
    pooled = np.zeros((*weights.shape[:-2], bin_count(T, bins), bin_count(S, bins)), weights.dtype)
    unmasked = weights.sum(-1) != 0  # … T; NaN counts as not masked
    for r in range(pooled.shape[-2]):
        rows = slice(r * high, (r + 1) * high)
        count = np.maximum(unmasked[..., rows].sum(-1), 1)
        for c in range(pooled.shape[-1]):
            block = weights[..., rows, c * wide : (c + 1) * wide]
            pooled[..., r, c] = block.sum((-2, -1)) / count
    return pooled


@array_likes
def max_score(scores: np.ndarray) -> np.ndarray:
    """The largest score of each query, (…, T); -inf for a fully masked query.

    >>> max_score(np.array([[0.5, 2.0], [-np.inf, -np.inf]]))
    array([  2., -inf])
    """
    return scores.max(-1, initial=-np.inf)


def _max_score_from(weights: np.ndarray, lse: np.ndarray) -> np.ndarray:
    """The same without scores: the largest weight is exp(score − LSE)."""
    with np.errstate(divide="ignore"):
        found = np.log(weights.max(-1, initial=0)) + lse
    return np.where(lse == -np.inf, -np.inf, found)


@array_likes
def entropy(weights: np.ndarray, sink_mass: np.ndarray | None = None) -> np.ndarray:
    """−Σ w ln w along the keys, in nats: 0 for one key, ln n for n equal ones, 0 for a fully masked query.

    `sink_mass`, (…, T), is the weight given to no key; it counts as one more key.

    >>> entropy(np.array([0.25, 0.25]), np.array(0.5)).round(4)
    np.float64(1.0397)
    """
    if sink_mass is not None:
        weights = np.concatenate([weights, sink_mass[..., None]], axis=-1)
    return (weights * -np.log(np.where(weights > 0, weights, 1))).sum(-1) + 0.0  # never -0


@array_likes
def received(weights: np.ndarray) -> np.ndarray:
    """The total weight of each key: the column sums, (…, S)."""
    return weights.sum(-2)


@array_likes
def top_keys(weights: np.ndarray, k: int, scores: np.ndarray | None = None) -> Top:
    """The k keys of largest weight of each query, in descending order, ties by position; k at most S.

    `scores`, -inf where masked, also order keys whose weights are too small to differ: masked keys come last.

    >>> top_keys(np.array([[0.0, 0.25, 0.5, 0.25]]), 3)
    Top(indices=array([[2, 1, 3]]), weights=array([[0.5 , 0.25, 0.25]]))
    """
    indices = np.argsort(-(weights if scores is None else scores), axis=-1, kind="stable")[..., :k]
    return Top(indices, np.take_along_axis(weights, indices, axis=-1))


@array_likes
def sink(weights: np.ndarray, first: np.ndarray | None = None) -> np.ndarray:
    """The mean weight of the first key, (…), over the queries that are not fully masked; 0 if all are.

    first   B, the index of the first key in each sample of B H T S; None for key 0

    >>> sink(np.full((2, 1, 1, 4), [0.1, 0.2, 0.3, 0.4]), first=np.array([0, 2])).ravel()
    array([0.1, 0.3])
    """
    if first is None or not weights.shape[-1]:
        return weights[..., :1].sum((-2, -1)) / _unmasked_queries(weights)
    own = np.take_along_axis(weights, first[:, None, None, None], axis=-1)  # B H T 1
    return own.sum((-2, -1)) / _unmasked_queries(weights)


@array_likes
def distance(weights: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
    """The share of the weight at distance 0, 1, 2–3, 4–7, …, (…, D): a mean over queries that are not fully masked.

    The last query is at the last key, as in masks.

    offsets   B, the key position of query 0 in each sample of B H T S; None for S − T

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
    shares += 0 * weights.sum((-2, -1))[..., None]  # a NaN weight makes every bin NaN
    return shares / _unmasked_queries(weights)[..., None]


def _unmasked_queries(weights: np.ndarray) -> np.ndarray:
    """The number of queries that are not fully masked, at least 1; NaN counts as not masked."""
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
    """The statistics that `see` requests; `scores` as in `top_keys`. Without scores, `lse` must be that of the weights.

    Padding queries count as fully masked, and the first key is the first of the text. `sink_mass`, B H T, is the
    weight given to no key.
    """
    first = offsets = None
    if padding is not None:
        weights, lse = without_rows(weights, padding.queries, 0, axes=1), without_rows(lse, padding.queries, -np.inf)
        scores = None if scores is None else without_rows(scores, padding.queries, -np.inf, axes=1)
        sink_mass = None if sink_mass is None else without_rows(sink_mass, padding.queries, 0)
        first, offsets = padding.first_keys(), padding.offsets(*weights.shape[-2:])
    largest = None
    if see.max_score:
        largest = _max_score_from(weights, lse) if scores is None else max_score(scores)
    return Statistics(
        map=pooled_map(weights, see.map) if see.map else None,
        lse=lse if see.lse or see.qk else None,
        max_score=largest,
        entropy=entropy(weights, sink_mass) if see.entropy else None,
        received=received(weights) if see.received else None,
        top=top_keys(weights, see.top, scores) if see.top else None,
        sink=sink(weights, first) if see.sink else None,
        distance=distance(weights, offsets) if see.distance else None,
        sink_mass=sink_mass,
    )
