"""How many heads a module has, and weights laid out by it: B H T S. Most models lay them out so themselves."""

from typing import Any

from torch import Tensor, nn

from regard.capture.caught import Caught, CaughtWeights

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
