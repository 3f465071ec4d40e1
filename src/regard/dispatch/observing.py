"""observed: the Record of an attention that somebody else has computed. No output; only what `see` asks for."""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from regard.axes import attention_sizes
from regard.dispatch.call import Call
from regard.dispatch.remember import record_of, require_room_for
from regard.functional.statistics import statistics_of
from regard.kernels.chunked.observe import observe, weights_at_once
from regard.kernels.chunked.workers import Alone
from regard.masks import Mask
from regard.records import Record, See

FEW = 2**18
"""Scores of a call, up to which its weights are made whole: for a token's one row, blocks would cost the most."""

TINY = 2**16
"""Scores up to which one thread is enough."""


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
    B, H, T, _ = q.shape
    S = k.shape[2]
    if see.nothing:
        return Record(shape=(B, H, T, S))
    bound = None if mask is None else mask.bind((B, H), T, S, q)
    few = 0 < B * H * T * S <= FEW
    if few:
        with (
            torch.no_grad() if torch.is_grad_enabled() else nullcontext(),
            Alone() if B * H * T * S <= TINY and q.is_cpu else nullcontext(),
        ):
            weights, sums = weights_at_once(q, k, lse, bound, bias, scale, softcap)
            found = statistics_of(weights, sums, see)
        if not (see.qk or see.values):  # as a token's one row: nothing that needs the call any more
            return Record(shape=(B, H, T, S), **found._asdict())
    sizes = attention_sizes(q.shape, k.shape, v.shape)
    call = Call(q=q, k=k, v=v, sizes=sizes, scale=scale, mask=mask, bound=bound, bias=bias, softcap=softcap, see=see)
    if not few:
        require_room_for(call)
        found = observe(q, k, lse, see=see, **call.options)
    return record_of(call, found)
