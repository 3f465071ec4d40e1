"""observed: the Record of an attention that somebody else has computed. No output; only what `see` asks for."""

from typing import Any

import torch
from torch import Tensor

from regard.axes import attention_sizes
from regard.dispatch.call import Call
from regard.dispatch.remember import record_of, require_room_for
from regard.functional.statistics import statistics_of
from regard.kernels.chunked.observe import observe, weights_at_once
from regard.masks import Mask
from regard.records import Record, See

FEW = 2**18
"""Scores of a call, up to which its weights are made whole: for a token's one row, blocks would cost the most."""


def observed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    lse: Tensor | None = None,
    mask: Mask | None = None,
    bias: Any = None,
    scale: float,
    softcap: float | None = None,
    see: See,
) -> Record:
    """q B H T E, k and v B G S ·; lse B H T where it is known. The tensors are read, and copied where they are kept."""
    sizes = attention_sizes(q.shape, k.shape, v.shape)
    if see.nothing:
        return Record(shape=(sizes.B, sizes.H, sizes.T, sizes.S))
    bound = None if mask is None else mask.bind(sizes.lead, sizes.T, sizes.S, q)
    call = Call(q=q, k=k, v=v, sizes=sizes, scale=scale, mask=mask, bound=bound, bias=bias, softcap=softcap, see=see)
    if 0 < sizes.B * sizes.H * sizes.T * sizes.S <= FEW:
        with torch.no_grad():
            weights, sums = weights_at_once(q, k, lse, **call.options)
            return record_of(call, statistics_of(weights, sums, see))
    require_room_for(call)
    return record_of(call, observe(q, k, lse, see=see, **call.options))
