"""Attention weights of any layout as B H T S, by the module's number of heads and of samples."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture.captured import CapturedCall, CapturedWeights
from regard.capture.module_names import Place, running_arguments

HEAD_COUNT_NAMES = ("num_heads", "n_heads", "n_head", "nhead", "nheads", "heads", "num_attention_heads")


def heads_of(module: nn.Module) -> int | None:
    """The number of heads by an attribute of the module or its config; None if neither has one.

    >>> heads_of(nn.MultiheadAttention(8, 2))
    2
    """
    own = own_heads_of(module)
    return own_heads_of(getattr(module, "config", None)) if own is None else own


def own_heads_of(owner: Any) -> int | None:
    """The number of heads by an attribute of the module, or of a config, itself."""
    for name in HEAD_COUNT_NAMES:
        found: Any = getattr(owner, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return None


def by_heads(weights: Tensor, module: nn.Module) -> Tensor:
    """Weights (…, T, S) as B H T S: four axes unchanged, others by the module's number of heads.

    If that does not fit, the axis before T counts heads if there are more axes; a single one counts samples.

    >>> import torch
    >>> by_heads(torch.ones(6, 3, 3), nn.MultiheadAttention(8, 2)).shape
    torch.Size([3, 2, 3, 3])
    """
    lead = weights.shape[:-2]
    if len(lead) == 2:
        return weights
    heads, own = heads_of(module) or 0, lead[-1] if len(lead) > 1 else 1
    # (B · H), (B, groups, heads of a group), (B, windows, H), (B, H, windows): the one with the right number of heads.
    fits = heads and (lead[0] % heads == 0 if len(lead) == 1 else heads in (own, lead[-2:].numel()))
    if heads and not fits and len(lead) == 3 and heads == lead[1]:
        weights, own = weights.transpose(1, 2), heads
    return weights.reshape(-1, heads if fits else own, *weights.shape[-2:])


def sizes_of(captured: CapturedCall | CapturedWeights, module: nn.Module) -> tuple[int, int, int, int]:
    """B, H, T, S"""
    if isinstance(captured, CapturedWeights):
        B, H, T, S = by_heads(captured.weights, module).shape
        return B, H, T, S
    B, H, T, _ = captured.q.shape
    return B, H, T, captured.k.shape[2]


class Layouts:
    """Finds the layout of attention that a model computed itself."""

    def __init__(self) -> None:
        self._one_head: dict[str, bool] = {}
        self.unknown: dict[str, tuple[tuple[int, ...], int]] = {}
        """Modules whose axes are ambiguous: the shape of their weights, and the number of heads."""

    def ordered(self, captured: CapturedWeights, place: Place) -> CapturedWeights:
        """The same with axes in the order B H T S, also if each head is a module of its own."""
        shape, H = captured.weights.shape, heads_of(place.module)
        if H is None or len(shape) not in (3, 4):
            return captured
        if len(shape) == 3:
            if self._is_one_head(shape, place):
                lse = None if captured.lse is None else captured.lse[:, None]
                visible, sink = (None if x is None else x[:, None] for x in (captured.visible, captured.sink))
                return captured._replace(weights=captured.weights[:, None], lse=lse, visible=visible, sink=sink)
            return captured
        if shape[1] == H or H not in (shape[0], shape[2]):
            return captured
        return self._four_axes(captured, H, place)

    def _is_one_head(self, shape: torch.Size, place: Place) -> bool:
        """Decided once per module: the next batch may look different."""
        known = self._one_head.get(place.name)
        if known is None:
            known = self._one_head[place.name] = is_one_head(shape, place.module)
        return known

    def _four_axes(self, captured: CapturedWeights, H: int, place: Place) -> CapturedWeights:
        shape = captured.weights.shape
        if not captured.rows_known and shape[2] == H and shape[0] != H:
            return _swapped(captured, 1, 2)
        if captured.rows_known and shape[0] != H:  # more heads than the module states, and as many queries
            return captured
        counts = _sample_counts(shape, (tensor for _, tensor in running_arguments()))
        if captured.rows_known and shape[0] in counts:
            return captured
        if captured.rows_known and shape[1] in counts:
            return _swapped(captured, 0, 1)
        self.unknown.setdefault(place.name or "attention", (tuple(shape), H))
        return captured


def is_one_head(shape: tuple[int, ...], module: nn.Module) -> bool:
    """Whether the first axis of weights (N, T, S) counts only samples, though the config has H heads.

    Then the module is one head: it and its parents were called with N samples, and not with N / H. A module that has
    its own number of heads computes all of them.
    """
    H = heads_of(module)
    if len(shape) != 3 or H is None or H == 1 or own_heads_of(module) is not None:
        return False
    counts = _sample_counts(shape, (tensor for _, tensor in running_arguments()))
    return shape[0] in counts and shape[0] / H not in counts


def _sample_counts(shape: tuple[int, ...], tensors: Iterable[Tensor]) -> set[int]:
    """Possible numbers of samples: the first axis of tensors with as many positions as queries or keys."""
    return {len(x) for x in tensors if x.dim() > 1 and x.shape[1] in shape[-2:]}


def _swapped(captured: CapturedWeights, one: int, other: int) -> CapturedWeights:
    lse = None if captured.lse is None else captured.lse.transpose(one, other)
    visible = None if captured.visible is None or max(one, other) > 1 else captured.visible.transpose(one, other)
    sink = None if captured.sink is None else captured.sink.transpose(one, other)
    return captured._replace(weights=captured.weights.transpose(one, other), lse=lse, visible=visible, sink=sink)
