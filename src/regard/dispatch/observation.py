"""The Record of one attention call of a watched model: for an output already computed, or along with the output.

`observe_attention` computes only what `see` requests; the model has computed the output. `attend_and_observe` also
computes the output, in one pass of our own kernel.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.axes import attention_sizes
from regard.dispatch.backend_choice import make_record, require_memory_for
from regard.functional.statistics import statistics_of, sums_of_weights
from regard.kernels.chunked.blocks import average
from regard.kernels.chunked.forward import SingleThread, all_weights, is_known, is_reliable, observe, sees_some_key
from regard.kernels.division import Bins
from regard.kernels.triton.support import refusal, scratch_for
from regard.masks.rules import Band
from regard.records import Record, See, Statistics

SMALL = 2**18
"""Largest number of scores whose weights are computed at once: for the one row of a token, blocks would cost more."""

TINY = 2**16
"""Largest number of scores that one thread of PyTorch's operators computes."""


def observe_attention(call: AttentionCall, lse: Tensor | None = None) -> Record:
    """The Record of an attention call that the model has computed. Tensors that the Record keeps are copied.

    call   with `see`, and with an unbound mask
    lse    B H T where it is known
    """
    q, k, see, padding = call.q, call.k, call.see, call.padding
    assert see is not None
    B, H, T, _ = q.shape
    S = k.shape[2]
    if see.is_empty:
        return Record(shape=(B, H, T, S), padding=padding)
    call = _bound(call)
    small = is_small(q, k) and not (q.is_cpu and is_known(call, lse))
    if small and not (see.qk or see.values):  # the one row of a token: nothing else needs the call
        return Record(shape=(B, H, T, S), padding=padding, **_observe_small(call, lse)._asdict())
    attention_sizes(q.shape, k.shape, call.v.shape)  # raises ShapeError
    return make_record(call, _observe_small(call, lse) if small else _observe(call, lse))


class ObservedOutput(NamedTuple):
    """The output B H T Ev of one attention call, its LSE B H T, and its Record."""

    out: Tensor
    lse: Tensor
    record: Record


@torch.no_grad()
def attend_and_observe(call: AttentionCall) -> ObservedOutput | None:
    """Compute a call, with `see` and an unbound mask, and its Record in one pass.

    None where none of our kernels can do both, or where `see` requests nothing.
    """
    call, see = _bound(call), call.see
    assert see is not None
    if replace(see, values=False).is_empty or refusal(call) is not None:
        return None
    from regard.kernels.triton.attention import attention

    attention_sizes(call.q.shape, call.k.shape, call.v.shape)  # raises ShapeError
    require_memory_for(call, scratch_for(call))
    out, found = attention(replace(call, see=replace(see, lse=True)))
    assert found.lse is not None
    # A copy: the model may overwrite the LSE that it gets, and the Record must not change.
    return ObservedOutput(out, found.lse.clone(), make_record(call, found).changed(fused=True))


def _bound(call: AttentionCall) -> AttentionCall:
    """The call with its mask bound."""
    if call.mask is None:
        return call
    B, H, T, _ = call.q.shape
    return replace(call, bound=call.mask.bind((B, H), T, call.k.shape[2], call.q))


def is_small(q: Tensor, k: Tensor) -> bool:
    """Whether a call has few enough scores to compute all its weights at once."""
    return 0 < q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] <= SMALL


def _observe_small(call: AttentionCall, lse: Tensor | None) -> Statistics:
    """The statistics of a small call, compiled where that is faster."""
    is_tiny = call.q.shape[:3].numel() * call.k.shape[2] <= TINY
    found = None if is_tiny or lse is None else _observe_compiled(call, lse)
    return _observe_at_once(call, lse) if found is None else found


def _observe_at_once(call: AttentionCall, lse: Tensor | None) -> Statistics:
    """The statistics of a small call, from all of its weights."""
    see = call.see
    assert see is not None
    is_tiny = call.q.shape[:3].numel() * call.k.shape[2] <= TINY and call.q.is_cpu
    with (
        torch.no_grad() if torch.is_grad_enabled() else nullcontext(),
        SingleThread() if is_tiny else nullcontext(),
    ):
        weights, sums, scores = all_weights(call, lse)
        needed = scores if see.max_score or see.top else None
        masked = call.bound is not None and not sees_some_key(call.bound)
        return statistics_of(weights, sums, see, needed, call.padding, none_masked=not masked and call.bias is None)


def _observe(call: AttentionCall, lse: Tensor | None) -> Statistics:
    """The statistics of the call, by compiled kernels where they can, else by torch operations."""
    assert call.see is not None
    if refusal(call) is not None:
        require_memory_for(call)
        found = None if lse is None else _observe_compiled(call, lse)
        return observe(call, lse) if found is None else found
    require_memory_for(call, scratch_for(call, later=lse is not None))
    from regard.kernels.triton.attention import observe as observe_on_gpu

    return observe_on_gpu(call, lse)


LARGEST_LSE = 16.0
"""A weight exp(score − LSE) was at most 7e-6 from float64 up to here, 1.3e-5 up to 24. Beyond, they are normalised."""

MOST_KEYS = 2**16
"""Of a call that the compiled function computes: each of its threads holds the keys of a head and 128 rows of sums."""


@torch.no_grad()
def _observe_compiled(call: AttentionCall, lse: Tensor) -> Statistics | None:
    """The statistics by one function in C++: a map, a sink, received. None where it cannot, or without a compiler."""
    see, band = call.see, None if call.bound is None else call.bound.rule
    assert see is not None
    q, k = call.q, call.k
    fields = See(
        map=see.map, lse=see.lse, sink=see.sink, received=see.received, outputs=see.outputs, qk=see.qk, v=see.v
    )
    if (
        see != replace(fields, values=see.values, fused=see.fused)
        or call.padding is not None
        or call.softcap is not None
    ):
        return None
    if not all(type(x) is Tensor and x.is_cpu and x.dtype == torch.float32 and x.numel() for x in (q, k, lse)):
        return None  # a subclass, such as a DTensor, has no memory of its own
    if k.shape[2] > MOST_KEYS:
        return None
    if not (band is None or isinstance(band, Band)) or is_known(call, lse) or not is_reliable(lse, call):
        return None
    if not lse.abs().amax() <= LARGEST_LSE:  # NaN, too
        return None
    (T, S), visible = (q.shape[2], k.shape[2]), (-q.shape[2], k.shape[2] + q.shape[2])
    if isinstance(band, Band):
        assert call.bound is not None
        offset = band.offset(call.bound.frame)
        first, last = (None if x is None else offset + side * x for side, x in ((-1, band.left), (1, band.right)))
        visible = visible[0] if first is None else first, visible[1] if last is None else last
    found = sums_of_weights(q, k, lse, call.scale, visible, see.map, see.received)
    if found is None:
        return None
    bins = Bins.of(T, S, see)
    if found.map is not None and bins is not None:
        average(found.map, lse, bins)
    return Statistics(
        map=found.map,
        lse=lse.clone() if see.lse or see.qk else None,
        received=found.received,
        sink=found.sink / T if see.sink else None,
    )
