"""Keys that a module adds to those of its text: a key of zeros, which is softmax plus one, or one that it has learned.

They are no tokens, so they have no column in a Record; what they take of each query's attention is `Record.sink_mass`.
"""

from typing import NamedTuple

import torch
from torch import nn

from regard.capture.caught import Caught, CaughtWeights
from regard.kernels.chunked.observe import weights_at_once
from regard.masks.padding import padding_of


class AddedKeys(NamedTuple):
    """How many keys stand before those of the text, and how many behind."""

    before: int = 0
    behind: int = 0


def added_keys(module: nn.Module) -> AddedKeys:
    """What a module says of itself: `nn.MultiheadAttention`, and x-transformers' `add_zero_kv`.

    >>> added_keys(nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True))
    AddedKeys(before=0, behind=2)
    """
    if isinstance(module, nn.MultiheadAttention):
        return AddedKeys(behind=int(module.bias_k is not None) + int(module.add_zero_attn))
    return AddedKeys(before=int(getattr(module, "add_zero_kv", False) is True))


def without_added_keys(caught: Caught | CaughtWeights, added: AddedKeys) -> Caught | CaughtWeights:
    """The same without the keys that the module added, and with what these took."""
    if not any(added):
        return caught
    whole = _weights(caught) if isinstance(caught, Caught) else caught
    S = whole.weights.shape[-1]
    if sum(added) >= S:
        return caught
    keys = slice(added.before, S - added.behind)
    sink = whole.weights[..., : keys.start].sum(-1) + whole.weights[..., keys.stop :].sum(-1)
    weights = whole.weights[..., keys]
    return whole._replace(
        weights=weights,
        taken=weights if whole.taken is whole.weights else None if whole.taken is None else whole.taken[..., keys],
        v=None if whole.v is None or whole.v.shape[-2] != S else whole.v[..., keys, :],
        seen=None if whole.seen is None else whole.seen[..., keys],
        sink=sink,
    )


@torch.no_grad()
def _weights(caught: Caught) -> CaughtWeights:
    """The weights of all keys, made again from q and k."""
    (B, H, T, _), S = caught.q.shape, caught.k.shape[2]
    bound = None if caught.mask is None else caught.mask.bind((B, H), T, S, caught.q)
    options = (caught.lse, bound, caught.bias, caught.scale, caught.softcap)
    weights, lse = weights_at_once(caught.q, caught.k, *options)
    padding = padding_of(bound, caught.bias, (B, H, T, S), across=True)
    seen = None if padding is None or padding.keys is None else padding.keys[:, None].expand(B, H, S)
    v = caught.v.repeat_interleave(H // max(1, caught.v.shape[1]), 1)
    return CaughtWeights(weights, lse, caught.part, v=v, taken=weights, seen=seen)
