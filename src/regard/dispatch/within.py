"""How a model calls attention, many times a token: nobody looks, and the name is for those who do."""

import math
from typing import Any

from regard.dispatch.call import receive
from regard.dispatch.choice import choose, computed
from regard.kinds import Array, is_tensor
from regard.records import Kind


def attend_within(
    q: Array,
    k: Array,
    v: Array,
    *,
    name: str = "attention",
    kind: Kind = "self",
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
) -> Array:
    """`attend` for a model's own activations: four axes in, B H T Ev out, and no Record.

    The guard against hidden garbage is left out where nothing is hidden, and where it may not look at values (on a
    GPU, and in a traced graph) and would have to work on every call. What a model hides from its queries it has
    computed itself, from the same weights as everything else.
    """
    if mask is None and bias is None and softcap is None and not dropout and _fit_at_a_glance(q, k, v):
        # Nothing but softmax(q kᵀ) v, thousands of times a text: the first backend's yes need not be asked for.
        from regard.functional.fused import sdpa

        return sdpa(q, k, v, scale=1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    call = receive(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout)
    return computed(call, choose(call, "auto"), trusted=True)[0]


def _fit_at_a_glance(q: Array, k: Array, v: Array) -> bool:
    """Whether these are tensors that surely go together; what may be wrong is left to those who can say so."""
    if not (is_tensor(q) and is_tensor(k) and is_tensor(v) and q.ndim == k.ndim == v.ndim == 4):
        return False
    (B, H, _, E), (samples, G, _, width) = q.shape, k.shape
    same = samples == B and width == E and k.shape[:3] == v.shape[:3] and q.dtype == k.dtype == v.dtype
    return same and E > 0 and G > 0 and H % G == 0 and q.is_floating_point() and q.device == k.device == v.device
