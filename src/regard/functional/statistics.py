"""Statistics of attention weights in PyTorch: the counterpart of `reference.statistics`.

`sums_of_weights` needs no weights: it calls a C++ function, compiled at first use, that computes them tile by tile.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from regard.axes import bin_count, bin_width, distance_count
from regard.functional.int8_weight import compiled_library
from regard.masks.padding import Padding, without_rows
from regard.records import See, Statistics, Top


def pooled_map(weights: Tensor, bins: int) -> Tensor:
    """The weights (…, T, S) pooled to at most `bins` × `bins`: summed over keys, averaged over queries."""
    T, S = weights.shape[-2:]
    high, wide = bin_width(T, bins), bin_width(S, bins)
    R, C = bin_count(T, bins), bin_count(S, bins)
    ragged = (0, C * wide - S, 0, R * high - T)
    padded = torch.nn.functional.pad(weights, ragged) if any(ragged) else weights
    by_bin = padded if wide == 1 else padded.unflatten(-1, (C, wide)).sum(-1)
    if high == 1:  # nothing to average
        return by_bin
    by_bin = by_bin.unflatten(-2, (R, high))  # … R high C
    unmasked = (by_bin.sum(-1) != 0).sum(-1, keepdim=True)  # NaN counts as not masked
    return by_bin.sum(-2) / unmasked.clamp(min=1)


def max_score(scores: Tensor) -> Tensor:
    """The largest score of each query, (…, T); -inf for a fully masked query."""
    return scores.amax(-1) if scores.shape[-1] else scores.new_full(scores.shape[:-1], -torch.inf)


def _max_score_from(weights: Tensor, lse: Tensor) -> Tensor:
    """The same without scores: the largest weight is exp(score − LSE)."""
    found = weights.amax(-1).log() + lse if weights.shape[-1] else lse
    return found.masked_fill(lse == -torch.inf, -torch.inf)


def entropy(weights: Tensor, sink_mass: Tensor | None = None) -> Tensor:
    """−Σ w ln w along the keys, in nats; `sink_mass`, (…, T), counts as one more key."""
    found = torch.special.entr(weights.clamp_min(0)).sum(-1) + 0.0  # never -0
    return found if sink_mass is None else found + torch.special.entr(sink_mass.clamp_min(0))


def received(weights: Tensor) -> Tensor:
    """The total weight of each key: the column sums, (…, S)."""
    return weights.sum(-2)


def top_keys(weights: Tensor, k: int, scores: Tensor | None = None) -> Top:
    """The k keys of largest weight of each query, in descending order, ties by position; k at most S.

    `scores`, -inf where masked, also order keys whose weights are too small to differ: masked keys come last.

    >>> top_keys(torch.tensor([0.0, 0.25, 0.5, 0.25]), 3)
    Top(indices=tensor([2, 1, 3]), weights=tensor([0.5000, 0.2500, 0.2500]))
    """
    indices = _top(weights if scores is None else scores, k)
    return Top(indices, weights.gather(-1, indices))


def _top(x: Tensor, k: int) -> Tensor:
    """The indices of the k largest numbers of each row, in descending order, ties by position."""
    S = x.shape[-1]
    if torch.compiler.is_compiling():  # a traced graph cannot test for ties
        return _top_with_ties(x, min(k, S))
    values, indices = x.topk(min(k + 1, S), dim=-1)
    # `topk` orders ties arbitrarily: rows with ties, usually none, are recomputed.
    ties = ~(values[..., :-1] > values[..., 1:]).all(-1)
    indices = indices[..., :k].contiguous()
    if ties.any():
        indices[ties] = _top_with_ties(x[ties], min(k, S))
    return indices


def _top_with_ties(x: Tensor, k: int) -> Tensor:
    """The same, also with ties."""
    S = x.shape[-1]
    if not k:
        return x.new_empty(x.shape, dtype=torch.int64)
    least = x.topk(k, dim=-1).values[..., -1:]
    above = x > least
    level = ~(above | (x < least))  # NaN too
    chosen = above | (level & (level.cumsum(-1) <= k - above.sum(-1, keepdim=True)))  # k of each row
    places = torch.where(chosen, torch.arange(S, device=x.device), S).topk(k, dim=-1, largest=False).values
    order = x.gather(-1, places).sort(dim=-1, descending=True, stable=True).indices
    return places.gather(-1, order)


def sink(weights: Tensor, first: Tensor | None = None, none_masked: bool = False) -> Tensor:
    """The mean weight of the first key, (…), over the queries that are not fully masked; 0 if all are.

    first         B, the index of the first key in each sample of B H T S; None for key 0
    none_masked   whether no query is fully masked, which need not be counted then
    """
    own = weights[..., :1]
    if first is not None and weights.shape[-1]:
        own = weights.gather(-1, first[:, None, None, None].expand(*weights.shape[:-1], 1))
    total = own.sum((-2, -1))
    if weights.shape[-2] == 1:
        return total
    return total / (weights.shape[-2] if none_masked else _unmasked_queries(weights))


def distance(weights: Tensor, offsets: Tensor | None = None) -> Tensor:
    """The share of the weight at distance 0, 1, 2–3, 4–7, …, (…, D).

    offsets   B, the key position of query 0 in each sample of B H T S; None for S − T
    """
    T, S = weights.shape[-2:]
    D = distance_count(T, S)
    if offsets is not None:
        return _distance_from(weights, offsets, D)
    here = torch.arange(S - T, S, device=weights.device)[:, None]
    far = (here - torch.arange(S, device=weights.device)).abs()  # T S
    edges = 2 ** torch.arange(D - 1, device=weights.device)  # the first distance of each next bin
    bins = torch.bucketize(far, edges, right=True).flatten()
    shares = weights.new_zeros((*weights.shape[:-2], D)).index_add_(-1, bins, weights.flatten(-2))
    shares = shares + 0 * weights.sum((-2, -1))[..., None]  # a NaN weight makes every bin NaN
    return shares / _unmasked_queries(weights)[..., None]


def _distance_from(weights: Tensor, offsets: Tensor, D: int) -> Tensor:
    """The same, with an offset per sample."""
    B, H, T, S = weights.shape
    places = torch.arange(T, device=weights.device) + offsets[:, None]  # B T
    far = (places[..., None] - torch.arange(S, device=weights.device)).abs()  # B T S
    bins = torch.bucketize(far, 2 ** torch.arange(D - 1, device=weights.device), right=True)
    shares = weights.new_zeros((B, H, D))
    shares.scatter_add_(-1, bins.flatten(1)[:, None].expand(B, H, T * S), weights.flatten(-2))
    shares = shares + 0 * weights.sum((-2, -1))[..., None]
    return shares / _unmasked_queries(weights)[..., None]


def _unmasked_queries(weights: Tensor) -> Tensor:
    """The number of queries that are not fully masked, at least 1; NaN counts as not masked."""
    return (weights.sum(-1) != 0).sum(-1).clamp(min=1)


def statistics_of(
    weights: Tensor,
    lse: Tensor,
    see: See,
    scores: Tensor | None = None,
    padding: Padding | None = None,
    sink_mass: Tensor | None = None,
    none_masked: bool = False,
) -> Statistics:
    """The statistics that `see` requests; `scores` as in `top_keys`. Without scores, `lse` must be that of the weights.

    Padding queries count as fully masked, and the first key is the first of the text. `sink_mass`, B H T, is the
    weight given to no key; `none_masked`: no query is fully masked.
    """
    first = offsets = None
    if padding is not None:
        weights, lse = without_rows(weights, padding.queries, 0, axes=1), without_rows(lse, padding.queries, -torch.inf)
        scores = None if scores is None else without_rows(scores, padding.queries, -torch.inf, axes=1)
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
        sink=sink(weights, first, none_masked and padding is None) if see.sink else None,
        distance=distance(weights, offsets) if see.distance else None,
        sink_mass=sink_mass,
    )


class SumsOfWeights(NamedTuple):
    """Sums of weights: over the bins of a map, B H R C; over all queries, B H S; of the first key, B H."""

    map: Tensor | None
    received: Tensor | None
    sink: Tensor


class _Shape(ctypes.Structure):
    """`Shape` of `statistics.cpp`."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        *((name, ctypes.c_int64) for name in ("B", "H", "G", "T", "S", "E")),
        *((name, ctypes.c_int64 * 3) for name in ("q_strides", "k_strides")),
        *((name, ctypes.c_int64) for name in ("bin_height", "bin_width", "R", "C")),
        *((name, ctypes.c_int64) for name in ("first", "last", "chunks", "threads")),
        ("scale", ctypes.c_double),
    ]


def sums_of_weights(
    q: Tensor, k: Tensor, lse: Tensor, scale: float, visible: tuple[int, int], bins: int | None, received: bool
) -> SumsOfWeights | None:
    """Sums of the weights exp(q kᵀ · scale − LSE), float32 on a CPU; None where there is no C++ compiler.

    q, k      B H T E and B G S E, lse B H T, finite
    visible   query i sees the keys from i + the first number to i + the second
    bins      the largest number of bins of the map along each axis; None for no map
    """
    function = _compiled_sums()
    if function is None:
        return None
    (B, H, T, E), (G, S) = q.shape, k.shape[1:3]
    q, k = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k))
    lse = lse.contiguous()
    height, width = (1, 1) if bins is None else (bin_width(T, bins), bin_width(S, bins))
    R, C = -(-T // height), -(-S // width)
    threads = torch.get_num_threads()
    chunks = 1 if 2 * threads <= B * H else -(-2 * threads // (B * H))
    zeros = q.new_zeros
    found = SumsOfWeights(
        map=None if bins is None else zeros(B, H, R, C),
        received=zeros(B, H, chunks, S) if received else None,
        sink=zeros(B, H, chunks),
    )
    strides = ctypes.c_int64 * 3
    sizes = (B, H, G, T, S, E, strides(*q.stride()[:3]), strides(*k.stride()[:3]), height, width, R, C)
    shape = _Shape(*sizes, *visible, chunks, threads, scale)
    outputs = (None if x is None else x.data_ptr() for x in found)
    function(ctypes.byref(shape), q.data_ptr(), k.data_ptr(), lse.data_ptr(), *outputs)
    return SumsOfWeights(found.map, None if found.received is None else found.received.sum(2), found.sink.sum(2))


@cache
def _compiled_sums() -> Any:
    """The function of `statistics.cpp`; None where there is no C++ compiler."""
    library = compiled_library(Path(__file__).with_suffix(".cpp"))
    if library is None:
        return None
    function = library.sums_of_weights
    function.argtypes = [ctypes.c_void_p] * 7
    function.restype = None
    return function
