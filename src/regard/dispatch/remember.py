"""From what a backend found to the Record that the caller gets."""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.dispatch.call import Call
from regard.kinds import Array
from regard.records import Record, Statistics


def record_of(call: Call, found: Statistics) -> Record:
    """A Record of the call. With `See(qk=True)` it keeps copies of q and k, which later changes cannot reach."""
    assert call.see is not None
    sizes = call.sizes
    record = Record(
        shape=(sizes.B, sizes.H, sizes.T, sizes.S),
        map=found.map,
        lse=found.lse,
        entropy=found.entropy,
        received=found.received,
        top=found.top,
    )
    if not call.see.qk:
        return record
    kept = replace(call, q=_copy(call.q), k=_copy(call.k), v=call.v[..., :0])
    lse = found.lse

    def rectangle(rows: slice, cols: slice) -> Array:
        return _rectangle(kept, lse, rows, cols)

    parts: dict[str, Any] = {
        "q": kept.q,
        "k": kept.k,
        "lse": lse,
        "mask": call.mask,
        "lead": sizes.lead,
        "bias": call.bias,
        "scale": call.scale,
        "softcap": call.softcap,
    }
    return replace(record, rectangle=rectangle, kept=parts)


def _rectangle(call: Call, lse: Array, rows: slice, cols: slice) -> Array:
    if call.is_torch:
        from regard.dispatch.torch_backends import rectangle

        return rectangle(call, lse, rows, cols)
    from regard.dispatch.numpy_backends import rectangle as numpy_rectangle

    return numpy_rectangle(call, lse, rows, cols)


def _copy(x: Array) -> Array:
    return x.copy() if isinstance(x, np.ndarray) else x.detach().clone()
