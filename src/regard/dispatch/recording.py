"""`make_record`: the Record of a call, from the statistics that a backend returned."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from regard.arrays import Array, is_tracing
from regard.axes import bin_count
from regard.dispatch.call import AttentionCall
from regard.memory import free_gpu_bytes, require_bytes
from regard.records import CHECK_MEMORY_FROM, Record, Statistics


def require_memory_for(call: AttentionCall, scratch: int = 0) -> None:
    """Raise TooLargeError where the Record and `scratch` bytes of temporary memory would not fit."""
    see, sizes = call.see, call.sizes
    if see is None or is_tracing():
        return
    numbers = 0
    if see.map:
        numbers += bin_count(sizes.T, see.map) * bin_count(sizes.S, see.map)
    if see.top:
        numbers += 3 * sizes.T * min(see.top, sizes.S)
    need = 4 * sizes.B * sizes.H * numbers + scratch
    if need > 4 * CHECK_MEMORY_FROM:
        require_bytes(need, key="record-too-large", free=free_gpu_bytes(call.q))


def make_record(call: AttentionCall, found: Statistics) -> Record:
    """The Record of the call; with `See(qk=True)` it keeps copies of q, k, mask and bias, safe from later changes."""
    assert call.see is not None
    sizes = call.sizes
    record = Record(
        shape=(sizes.B, sizes.H, sizes.T, sizes.S),
        map=found.map,
        lse=found.lse if call.see.lse else None,
        entropy=found.entropy,
        received=found.received,
        top=found.top,
        sink=found.sink,
        distance=found.distance,
        value_norms=_value_norms(call) if call.see.values else None,
        padding=call.padding,
    )
    if not call.see.qk:
        return record
    mask = deepcopy(call.mask)
    kept = replace(
        call,
        q=_copy(call.q),
        k=_copy(call.k),
        v=call.v[..., :0],
        mask=mask,
        bound=None if mask is None else mask.bind(sizes.lead, sizes.T, sizes.S, call.q),
        bias=None if call.bias is None else _copy(call.bias),
    )
    lse: Array = found.lse
    lse = lse.detach() if call.is_torch else lse

    def rectangle(rows: slice, cols: slice) -> Array:
        return _rectangle(kept, lse, rows, cols)

    parts: dict[str, Any] = {
        "q": kept.q,
        "k": kept.k,
        "lse": lse,
        "mask": mask,
        "lead": sizes.lead,
        "bias": kept.bias,
        "scale": call.scale,
        "softcap": call.softcap,
    }
    return replace(record, rectangle=rectangle, kept=parts)


def _rectangle(call: AttentionCall, lse: Array, rows: slice, cols: slice) -> Array:
    if call.is_torch:
        from regard.dispatch.torch_backends import rectangle

        return rectangle(call, lse, rows, cols)
    from regard.dispatch.numpy_backends import rectangle as numpy_rectangle

    return numpy_rectangle(call, lse, rows, cols)


def _value_norms(call: AttentionCall) -> Array:
    """The norm of each value vector, for every query head, B H S."""
    v, heads = call.v, call.sizes.H // max(1, call.sizes.G)  # B G S Ev, and heads to a group
    if call.is_torch:
        v = v.detach()
        return (v.float() if v.element_size() < 4 else v).norm(dim=-1).repeat_interleave(heads, 1)
    v = v.astype(np.float32) if v.dtype.itemsize < 4 else v  # squares of half precision overflow
    return np.repeat(np.linalg.norm(v, axis=-1), heads, axis=1)


def _copy(x: Array) -> Array:
    return x.copy() if isinstance(x, np.ndarray) else x.detach().clone()
