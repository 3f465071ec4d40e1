"""`make_record`: the Record of a call, from the statistics that a backend returned."""

from copy import deepcopy

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing
from regard.attention_call import AttentionCall, RectangleFunction, WeightsFromQK
from regard.kernels import blocked
from regard.masks.padding import Padding, without_rows
from regard.memory import free_gpu_bytes, is_surely_free, require_bytes
from regard.records import CHECK_MEMORY_FROM, Record, Statistics
from regard.statistics_table import bytes_of


def require_memory_for(call: AttentionCall, scratch: int = 0) -> None:
    """Raise TooLargeError where the Record and `scratch` bytes of temporary memory would not fit."""
    see, sizes = call.see, call.sizes
    if see is None or is_tracing():
        return
    need = bytes_of(see, (sizes.B, sizes.H, sizes.T, sizes.S), sizes.Ev) + scratch
    if need > 4 * CHECK_MEMORY_FROM and not is_surely_free(call.q, need):
        require_bytes(need, key="record-too-large", free=free_gpu_bytes(call.q))


def make_record(call: AttentionCall, found: Statistics, out: Array | None = None) -> Record:
    """The Record of the call; with `See(qk=True)` it keeps copies of q, k, mask and bias, safe from later changes.

    out   B H T Ev, of which it keeps a copy with `See(outputs=True)`
    """
    assert call.see is not None
    sizes = call.sizes
    record = Record(
        shape=(sizes.B, sizes.H, sizes.T, sizes.S),
        **(found if call.see.lse else found._replace(lse=None))._asdict(),
        value_norms=_value_norms(call) if call.see.values else None,
        outputs=None if out is None or not call.see.outputs else copied_outputs(out, call.padding),
        padding=call.padding,
    )
    if not call.see.qk:
        return record
    lse: Array = found.lse
    return record.changed(exact=_exact_weights(call, lse.detach() if call.is_torch else lse))


def _exact_weights(call: AttentionCall, lse: Array) -> WeightsFromQK:
    sizes, mask = call.sizes, deepcopy(call.mask)
    return WeightsFromQK(
        q=_copy(call.q),
        k=_copy(call.k),
        lse=lse,
        scale=call.scale,
        lead=sizes.lead,
        compute=_rectangle_function(call),
        mask=mask,
        bound=None if mask is None else mask.bind(sizes.lead, sizes.T, sizes.S, call.q),
        bias=None if call.bias is None else _copy(call.bias),
        softcap=call.softcap,
        v=_copy(call.v) if call.see is not None and call.see.v else None,
    )


def _rectangle_function(call: AttentionCall) -> RectangleFunction:
    if call.is_torch:
        from regard.dispatch.torch_backends import rectangle

        return rectangle
    return blocked.rectangle


def _value_norms(call: AttentionCall) -> Array:
    """The norm of each value vector, for every query head, B H S."""
    v, heads = call.v, call.sizes.H // max(1, call.sizes.G)  # B G S Ev, and heads to a group
    if call.is_torch:
        v = v.detach()
        return (v.float() if v.element_size() < 4 else v).norm(dim=-1).repeat_interleave(heads, 1)
    v = v.astype(np.float32) if v.dtype.itemsize < 4 else v  # squares of half precision overflow
    return np.repeat(np.linalg.norm(v, axis=-1), heads, axis=1)


def copied_outputs(out: Array, padding: Padding | None) -> Array:
    """A copy of outputs B H T Ev, with 0 for padding."""
    text = None if padding is None else padding.queries
    return _copy(out) if text is None else without_rows(out.detach() if is_tensor(out) else out, text, 0, axes=1)


def _copy(x: Array) -> Array:
    return x.copy() if isinstance(x, np.ndarray) else x.detach().clone()
