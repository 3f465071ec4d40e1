"""What can be read off the weights, in PyTorch: the twin of `reference.statistics`."""

import torch
from torch import Tensor

from regard.axes import bin_count, bin_width
from regard.records import See, Statistics, Top


def pooled_map(weights: Tensor, bins: int) -> Tensor:
    """The weights (…, T, S) in at most `bins` × `bins` bins: summed over keys, averaged over queries that see any."""
    T, S = weights.shape[-2:]
    high, wide = bin_width(T, bins), bin_width(S, bins)
    R, C = bin_count(T, bins), bin_count(S, bins)
    ragged = (0, C * wide - S, 0, R * high - T)
    padded = torch.nn.functional.pad(weights, ragged) if any(ragged) else weights
    by_bin = padded.unflatten(-1, (C, wide)).sum(-1).unflatten(-2, (R, high))  # … R high C
    looking = (by_bin.sum(-1) != 0).sum(-1, keepdim=True)  # NaN counts as looking
    return by_bin.sum(-2) / looking.clamp(min=1)


def entropy(weights: Tensor) -> Tensor:
    """−Σ w ln w along the keys, in nats."""
    return (weights * -weights.where(weights > 0, 1).log()).sum(-1) + 0.0  # never -0


def received(weights: Tensor) -> Tensor:
    """How much attention each key received: the column sums, (…, S)."""
    return weights.sum(-2)


def strongest(weights: Tensor, k: int) -> Top:
    """The k largest weights of each query, largest first."""
    values, indices = weights.topk(min(k, weights.shape[-1]), dim=-1)
    return Top(indices, values)


def statistics_of(weights: Tensor, lse: Tensor, see: See) -> Statistics:
    """Everything that `see` asks for."""
    return Statistics(
        map=pooled_map(weights, see.map) if see.map else None,
        lse=lse if see.lse or see.qk else None,
        entropy=entropy(weights) if see.entropy else None,
        received=received(weights) if see.received else None,
        top=strongest(weights, see.top) if see.top else None,
    )
