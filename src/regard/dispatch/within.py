"""attention as a model calls it, many times a token: nobody looks, and the name is for those who do."""

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
    if is_tensor(q) and mask is None and bias is None and softcap is None and not dropout:
        # Nothing but softmax(q kᵀ) v, thousands of times a text: the first backend's yes need not be asked for.
        from regard.functional.fused import sdpa

        return sdpa(q, k, v, scale=1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    call = receive(q, k, v, mask=mask, bias=bias, scale=scale, softcap=softcap, dropout=dropout)
    return computed(call, choose(call, "auto"), trusted=True)[0]
