"""observed: the Record of an attention that somebody else has computed. No output; only what `see` asks for.

answered: the same of one that nobody has computed yet, with its output: a pass of our own that looks on the way.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.axes import attention_sizes
from regard.dispatch.call import Call
from regard.dispatch.recording import record_of, require_room_for
from regard.functional.statistics import statistics_of
from regard.kernels.chunked.observe import observe, weights_at_once
from regard.kernels.chunked.workers import Alone
from regard.kernels.triton.support import refusal, scratch_for
from regard.masks import BoundMask, Mask
from regard.padding import Padding
from regard.records import Record, See, Statistics

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
    padding: Padding | None = None,
) -> Record:
    """q B H T E, k and v B G S ·; lse B H T where it is known. The tensors are read, and copied where they are kept."""
    B, H, T, _ = q.shape
    S = k.shape[2]
    if see.nothing:
        return Record(shape=(B, H, T, S), padding=padding)
    bound = None if mask is None else mask.bind((B, H), T, S, q)
    few = is_little(q, k)
    if few:
        with (
            torch.no_grad() if torch.is_grad_enabled() else nullcontext(),
            Alone() if B * H * T * S <= TINY and q.is_cpu else nullcontext(),
        ):
            weights, sums = weights_at_once(q, k, lse, bound, bias, scale, softcap)
            found = statistics_of(weights, sums, see, padding=padding)
        if not (see.qk or see.values):  # as a token's one row: nothing that needs the call any more
            return Record(shape=(B, H, T, S), padding=padding, **found._asdict())
    call = replace(_call(q, k, v, mask, bound, bias, scale, softcap, see), padding=padding)
    if not few:
        found = _observe(call, lse)
    return record_of(call, found)


class Answered(NamedTuple):
    """The output B H T Ev of one attention, its LSE B H T, and its Record."""

    out: Tensor
    lse: Tensor
    record: Record


@torch.no_grad()
def answered(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask | None = None,
    bias: Any = None,
    scale: float,
    softcap: float | None = None,
    see: See,
    padding: Padding | None = None,
) -> Answered | None:
    """Arguments as for `observed`. None where no kernel of ours both answers and looks, or nothing is to be seen."""
    bound = None if mask is None else mask.bind(tuple(q.shape[:2]), q.shape[2], k.shape[2], q)
    asked = replace(see, lse=True)
    if (
        replace(see, values=False).nothing
        or refusal(q, k, v, mask=bound, bias=bias, see=see, padding=padding) is not None
    ):
        return None
    from regard.kernels.triton.attention import attention

    call = replace(_call(q, k, v, mask, bound, None, scale, softcap, see), padding=padding)
    require_room_for(call, scratch_for(q, k, see))
    out, found = attention(q, k, v, **{**call.seeing, "see": asked})
    assert found.lse is not None
    # The model may write over what it is given, and the Record must not notice.
    return Answered(out, found.lse.clone(), record_of(call, found).changed(fused=True))


def is_little(q: Tensor, k: Tensor) -> bool:
    """Whether a call has so few scores that all its weights may be made at once."""
    return 0 < q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] <= FEW


def _call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask | None,
    bound: BoundMask | None,
    bias: Any,
    scale: float,
    softcap: float | None,
    see: See,
) -> Call:
    sizes = attention_sizes(q.shape, k.shape, v.shape)
    return Call(q=q, k=k, v=v, sizes=sizes, scale=scale, mask=mask, bound=bound, bias=bias, softcap=softcap, see=see)


def _observe(call: Call, lse: Tensor | None) -> Statistics:
    """By the kernels for a GPU where they can, else by torch operations."""
    assert call.see is not None
    if refusal(call.q, call.k, call.v, mask=call.bound, bias=call.bias, see=call.see) is not None:
        require_room_for(call)
        return observe(call.q, call.k, lse, **call.seeing)
    require_room_for(call, scratch_for(call.q, call.k, call.see, later=lse is not None))
    from regard.kernels.triton.observe import observe as observe_on_gpu

    options: dict[str, Any] = {name: value for name, value in call.seeing.items() if name != "bias"}
    return observe_on_gpu(call.q, call.k, lse, **options)
