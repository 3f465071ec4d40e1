"""Attention weights of any layout as B H T S, from the module's number of heads and samples."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.captured import Caught, CaughtWeights
from regard.capture.module_names import Place, given

NAMES = ("num_heads", "n_heads", "n_head", "nhead", "nheads", "heads", "num_attention_heads")


def heads_of(module: nn.Module) -> int | None:
    """What the module, or its configuration, calls its number of heads; None where neither says.

    >>> heads_of(nn.MultiheadAttention(8, 2))
    2
    """
    own = own_heads_of(module)
    return own_heads_of(getattr(module, "config", None)) if own is None else own


def own_heads_of(owner: Any) -> int | None:
    """What a module itself, or a configuration, calls its number of heads."""
    for name in NAMES:
        found: Any = getattr(owner, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return None


def by_heads(weights: Tensor, module: nn.Module) -> Tensor:
    """Weights (…, T, S) as B H T S: four axes as they are, others by the module's number of heads.

    Where that is no help, the axis before T counts heads if there is one more; a single one counts samples.

    >>> import torch
    >>> by_heads(torch.ones(6, 3, 3), nn.MultiheadAttention(8, 2)).shape
    torch.Size([3, 2, 3, 3])
    """
    lead = weights.shape[:-2]
    if len(lead) == 2:
        return weights
    heads, own = heads_of(module) or 0, lead[-1] if len(lead) > 1 else 1
    # (B · H), (B, groups, heads of a group), (B, windows, H), (B, H, windows): what gives the right number is right.
    told = heads and (lead[0] % heads == 0 if len(lead) == 1 else heads in (own, lead[-2:].numel()))
    if heads and not told and len(lead) == 3 and heads == lead[1]:
        weights, own = weights.transpose(1, 2), heads
    return weights.reshape(-1, heads if told else own, *weights.shape[-2:])


def sizes_of(caught: Caught | CaughtWeights, module: nn.Module) -> tuple[int, int, int, int]:
    """B, H, T, S"""
    if isinstance(caught, CaughtWeights):
        B, H, T, S = by_heads(caught.weights, module).shape
        return B, H, T, S
    B, H, T, _ = caught.q.shape
    return B, H, T, caught.k.shape[2]


class Layouts:
    """Is asked for every attention that a model made by hand."""

    def __init__(self) -> None:
        self._one_head: dict[str, bool] = {}
        self.odd: dict[str, tuple[tuple[int, ...], int]] = {}
        """Modules whose axes nobody can tell apart: the shape of their weights, and how many heads they have."""

    def ordered(self, caught: CaughtWeights, place: Place) -> CaughtWeights:
        """The same, with axes in the order B H T S where they were not, or where a head has a module of its own."""
        shape, H = caught.weights.shape, heads_of(place.module)
        if H is None or len(shape) not in (3, 4):
            return caught
        if len(shape) == 3:
            if self._is_one_head(shape, place):
                lse = None if caught.lse is None else caught.lse[:, None]
                seen, sink = (None if x is None else x[:, None] for x in (caught.seen, caught.sink))
                return caught._replace(weights=caught.weights[:, None], lse=lse, seen=seen, sink=sink)
            return caught
        if shape[1] == H or H not in (shape[0], shape[2]):
            return caught
        return self._four(caught, H, place)

    def _is_one_head(self, shape: torch.Size, place: Place) -> bool:
        """What a module once was it stays, whatever the next batch may look like."""
        known = self._one_head.get(place.name)
        if known is None:
            known = self._one_head[place.name] = is_one_head(shape, place.module)
        return known

    def _four(self, caught: CaughtWeights, H: int, place: Place) -> CaughtWeights:
        shape = caught.weights.shape
        if not caught.rows_told and shape[2] == H and shape[0] != H:
            return _swapped(caught, 1, 2)
        if caught.rows_told and shape[0] != H:  # more heads than the module says, and as many queries
            return caught
        counts = _sample_counts(shape, (tensor for _, tensor in given()))
        if caught.rows_told and shape[0] in counts:
            return caught
        if caught.rows_told and shape[1] in counts:
            return _swapped(caught, 0, 1)
        self.odd.setdefault(place.name or "attention", (tuple(shape), H))
        return caught


def is_one_head(shape: tuple[int, ...], module: nn.Module) -> bool:
    """Whether the first axis of weights (N, T, S) counts samples alone, though the configuration knows of H heads.

    Then the module is one of them: it and those around it were called with N samples, and not with N / H. A module that
    counts heads itself has them all.
    """
    H = heads_of(module)
    if len(shape) != 3 or H is None or H == 1 or own_heads_of(module) is not None:
        return False
    counts = _sample_counts(shape, (tensor for _, tensor in given()))
    return shape[0] in counts and shape[0] / H not in counts


def _sample_counts(shape: tuple[int, ...], tensors: Iterable[Tensor]) -> set[int]:
    """How many samples there may be: the first axis of what has as many positions as queries or keys."""
    return {len(x) for x in tensors if x.dim() > 1 and x.shape[1] in shape[-2:]}


def _swapped(caught: CaughtWeights, one: int, other: int) -> CaughtWeights:
    lse = None if caught.lse is None else caught.lse.transpose(one, other)
    seen = None if caught.seen is None or max(one, other) > 1 else caught.seen.transpose(one, other)
    sink = None if caught.sink is None else caught.sink.transpose(one, other)
    return caught._replace(weights=caught.weights.transpose(one, other), lse=lse, seen=seen, sink=sink)
