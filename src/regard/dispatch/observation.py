"""The Record of one attention call of a watched model: for an output already computed, or along with the output.

`observe_attention` computes only what `see` requests; the model has computed the output. `attend_and_observe` also
computes the output, in one pass of our own kernel.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.axes import attention_sizes
from regard.dispatch.recording import make_record, require_memory_for
from regard.functional.statistics import statistics_of
from regard.kernels.chunked.forward import all_weights, observe
from regard.kernels.chunked.workers import SingleThread
from regard.kernels.triton.support import refusal, scratch_for
from regard.masks import Mask
from regard.masks.padding import Padding
from regard.records import Record, See, Statistics

SMALL = 2**18
"""Largest number of scores whose weights are computed at once: for the one row of a token, blocks would cost more."""

TINY = 2**16
"""Largest number of scores that one thread computes."""


def observe_attention(
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
    """The Record of an attention call that the model has computed. Tensors that the Record keeps are copied.

    q B H T E, k and v B G S ·; lse B H T where it is known.
    """
    B, H, T, _ = q.shape
    S = k.shape[2]
    if see.is_empty:
        return Record(shape=(B, H, T, S), padding=padding)
    bound = None if mask is None else mask.bind((B, H), T, S, q)
    call = AttentionCall(q, k, v, scale, mask=mask, bound=bound, bias=bias, softcap=softcap, see=see, padding=padding)
    small = is_small(q, k)
    if small:
        with (
            torch.no_grad() if torch.is_grad_enabled() else nullcontext(),
            SingleThread() if B * H * T * S <= TINY and q.is_cpu else nullcontext(),
        ):
            weights, sums, scores = all_weights(call, lse)
            found = statistics_of(weights, sums, see, scores if see.max_score or see.top else None, padding)
        if not (see.qk or see.values):  # for the one row of a token: nothing else needs the call
            return Record(shape=(B, H, T, S), padding=padding, **found._asdict())
    attention_sizes(q.shape, k.shape, v.shape)  # raises ShapeError
    if not small:
        found = _observe(call, lse)
    return make_record(call, found)


class ObservedOutput(NamedTuple):
    """The output B H T Ev of one attention call, its LSE B H T, and its Record."""

    out: Tensor
    lse: Tensor
    record: Record


@torch.no_grad()
def attend_and_observe(
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
) -> ObservedOutput | None:
    """Compute a call and its Record in one pass; arguments as for `observe_attention`.

    None where none of our kernels can do both, or where `see` requests nothing.
    """
    bound = None if mask is None else mask.bind(tuple(q.shape[:2]), q.shape[2], k.shape[2], q)
    call = AttentionCall(q, k, v, scale, mask=mask, bound=bound, bias=bias, softcap=softcap, see=see, padding=padding)
    if replace(see, values=False).is_empty or refusal(call) is not None:
        return None
    from regard.kernels.triton.attention import attention

    attention_sizes(q.shape, k.shape, v.shape)  # raises ShapeError
    require_memory_for(call, scratch_for(call))
    out, found = attention(replace(call, see=replace(see, lse=True)))
    assert found.lse is not None
    # A copy: the model may overwrite the LSE that it gets, and the Record must not change.
    return ObservedOutput(out, found.lse.clone(), make_record(call, found).changed(fused=True))


def is_small(q: Tensor, k: Tensor) -> bool:
    """Whether a call has few enough scores to compute all its weights at once."""
    return 0 < q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] <= SMALL


def _observe(call: AttentionCall, lse: Tensor | None) -> Statistics:
    """The statistics of the call, by the GPU kernels where they can, else by torch operations."""
    assert call.see is not None
    if refusal(call) is not None:
        require_memory_for(call)
        return observe(call, lse)
    require_memory_for(call, scratch_for(call, later=lse is not None))
    from regard.kernels.triton.attention import observe as observe_on_gpu

    return observe_on_gpu(call, lse)
