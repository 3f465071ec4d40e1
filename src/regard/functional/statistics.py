"""What can be read off the weights, in PyTorch: the twin of `reference.statistics`."""

import torch
from torch import Tensor

from regard.axes import bin_count, bin_width, distance_count
from regard.padding import Padding, without_rows
from regard.records import See, Statistics, Top


def pooled_map(weights: Tensor, bins: int) -> Tensor:
    """The weights (…, T, S) in at most `bins` × `bins` bins: summed over keys, averaged over queries that see any."""
    T, S = weights.shape[-2:]
    high, wide = bin_width(T, bins), bin_width(S, bins)
    R, C = bin_count(T, bins), bin_count(S, bins)
    ragged = (0, C * wide - S, 0, R * high - T)
    padded = torch.nn.functional.pad(weights, ragged) if any(ragged) else weights
    by_bin = padded if wide == 1 else padded.unflatten(-1, (C, wide)).sum(-1)
    if high == 1:  # nothing to average
        return by_bin
    by_bin = by_bin.unflatten(-2, (R, high))  # … R high C
    looking = (by_bin.sum(-1) != 0).sum(-1, keepdim=True)  # NaN counts as looking
    return by_bin.sum(-2) / looking.clamp(min=1)


def entropy(weights: Tensor, sink_mass: Tensor | None = None) -> Tensor:
    """−Σ w ln w along the keys, in nats; what went to no key, (…, T), counts as one key more."""
    found = torch.special.entr(weights.clamp_min(0)).sum(-1) + 0.0  # never -0
    return found if sink_mass is None else found + torch.special.entr(sink_mass.clamp_min(0))


def received(weights: Tensor) -> Tensor:
    """How much attention each key received: the column sums, (…, S)."""
    return weights.sum(-2)


def strongest(weights: Tensor, k: int, scores: Tensor | None = None) -> Top:
    """The k strongest keys of each query, the stronger first, of equal ones the earlier; k at most S.

    `scores`, -inf where hidden, also tell keys apart whose weights are too small to differ: hidden ones come last.

    >>> strongest(torch.tensor([0.0, 0.25, 0.5, 0.25]), 3)
    Top(indices=tensor([2, 1, 3]), weights=tensor([0.5000, 0.2500, 0.2500]))
    """
    indices = _highest(weights if scores is None else scores, k)
    return Top(indices, weights.gather(-1, indices))


def _highest(x: Tensor, k: int) -> Tensor:
    """Where the k highest numbers of each row stand, the higher first, of equal ones the earlier."""
    S = x.shape[-1]
    if torch.compiler.is_compiling():  # a traced graph cannot ask for equal ones
        return _first_highest(x, min(k, S))
    values, indices = x.topk(min(k + 1, S), dim=-1)
    # `topk` takes equal ones as they come: these rows, mostly none, are done again.
    equal = ~(values[..., :-1] > values[..., 1:]).all(-1)
    indices = indices[..., :k].contiguous()
    if equal.any():
        indices[equal] = _first_highest(x[equal], min(k, S))
    return indices


def _first_highest(x: Tensor, k: int) -> Tensor:
    """The same, whatever is equal."""
    S = x.shape[-1]
    if not k:
        return x.new_empty(x.shape, dtype=torch.int64)
    least = x.topk(k, dim=-1).values[..., -1:]
    above = x > least
    level = ~(above | (x < least))  # NaN too
    taken = above | (level & (level.cumsum(-1) <= k - above.sum(-1, keepdim=True)))  # k of each row
    places = torch.where(taken, torch.arange(S, device=x.device), S).topk(k, dim=-1, largest=False).values
    order = x.gather(-1, places).sort(dim=-1, descending=True, stable=True).indices
    return places.gather(-1, order)


def sink(weights: Tensor, first: Tensor | None = None) -> Tensor:
    """The mean weight of the first key, (…), over the queries that see any; 0 where none does.

    first   B, which key that is in each sample of B H T S; None for key 0
    """
    own = weights[..., :1]
    if first is not None and weights.shape[-1]:
        own = weights.gather(-1, first[:, None, None, None].expand(*weights.shape[:-1], 1))
    total = own.sum((-2, -1))
    return total if weights.shape[-2] == 1 else total / _looking(weights)


def distance(weights: Tensor, offsets: Tensor | None = None) -> Tensor:
    """The share of the weight at distance 0, 1, 2–3, 4–7, … of query and key, (…, D).

    offsets   B, the key at which query 0 of each sample of B H T S stands; None for S − T
    """
    T, S = weights.shape[-2:]
    D = distance_count(T, S)
    if offsets is not None:
        return _distance_from(weights, offsets, D)
    here = torch.arange(S - T, S, device=weights.device)[:, None]
    far = (here - torch.arange(S, device=weights.device)).abs()  # T S
    edges = 2 ** torch.arange(D - 1, device=weights.device)  # distances from which on the next bin begins
    bins = torch.bucketize(far, edges, right=True).flatten()
    shares = weights.new_zeros((*weights.shape[:-2], D)).index_add_(-1, bins, weights.flatten(-2))
    shares = shares + 0 * weights.sum((-2, -1))[..., None]  # who met NaN has no distance, not even a far one
    return shares / _looking(weights)[..., None]


def _distance_from(weights: Tensor, offsets: Tensor, D: int) -> Tensor:
    """The same where each sample has its own offset."""
    B, H, T, S = weights.shape
    places = torch.arange(T, device=weights.device) + offsets[:, None]  # B T
    far = (places[..., None] - torch.arange(S, device=weights.device)).abs()  # B T S
    bins = torch.bucketize(far, 2 ** torch.arange(D - 1, device=weights.device), right=True)
    shares = weights.new_zeros((B, H, D))
    shares.scatter_add_(-1, bins.flatten(1)[:, None].expand(B, H, T * S), weights.flatten(-2))
    shares = shares + 0 * weights.sum((-2, -1))[..., None]
    return shares / _looking(weights)[..., None]


def _looking(weights: Tensor) -> Tensor:
    """How many queries see any key, 1 at least; NaN counts as looking."""
    return (weights.sum(-1) != 0).sum(-1).clamp(min=1)


def statistics_of(
    weights: Tensor,
    lse: Tensor,
    see: See,
    scores: Tensor | None = None,
    padding: Padding | None = None,
    sink_mass: Tensor | None = None,
) -> Statistics:
    """Everything that `see` asks for; `scores` as for `strongest`.

    Queries that are padding count as queries that see nothing, and the first key is the first of the text.
    `sink_mass`, B H T, is what went to no key.
    """
    first = offsets = None
    if padding is not None:
        weights, lse = without_rows(weights, padding.queries, 0, axes=1), without_rows(lse, padding.queries, -torch.inf)
        scores = None if scores is None else without_rows(scores, padding.queries, -torch.inf, axes=1)
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
