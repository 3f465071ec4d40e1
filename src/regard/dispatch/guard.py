"""Nothing hidden leaks, whatever it holds: kept here, once, for every backend.

A fast kernel multiplies a weight of 0 with a hidden value, and 0 · NaN is NaN. So the arrays are read once, under 1 %
of a call of 1,024 tokens, and only if something is not finite: the bad rows are set to zero, the kernel runs on what
is left, and the queries that may look at something bad, or are bad themselves, get NaN. Nobody else can tell.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from regard.arrays import Array
from regard.axes import bin_count, bin_width
from regard.dispatch.call import Call
from regard.dispatch.numpy_backends import Backend
from regard.records import Statistics, Top


def guarded(call: Call, backend: Backend) -> tuple[Array, Statistics]:
    """The backend's answer to the call, with rule 3 of the design kept."""
    run, told = backend.run, _whether_tame(call)
    if told is not None:
        answer = run(call)  # meanwhile
        if told():
            return answer
        del answer  # its memory is wanted
    elif _surely_tame(call.q, call.k, call.v):
        return run(call)
    bad_q, bad_k, bad_v = (_bad_rows(x) for x in (call.q, call.k, call.v))
    clean = replace(
        call,
        q=_fill(call.q, bad_q[..., None], 0),
        k=_fill(call.k, bad_k[..., None], 0),
        v=_fill(call.v, bad_v[..., None], 0),
    )
    huge = _huge_rows(clean)
    flags = [bad_k, bad_k | ~bad_k, bad_v] if huge is None else [bad_k, bad_k | ~bad_k, bad_v, huge[1]]
    # All asked at once: a mask may have to look through T × S for an answer.
    sees_bad_key, sees_any, sees_bad_value, *sees_huge = call.may_see(_for_queries(flags, call))  # B H T each
    if huge is None:
        out, found = run(clean)
    else:
        from regard.dispatch.overflow import despite_huge

        out, found = despite_huge(clean, run, huge, looking=sees_huge[0] | (huge[0] & sees_any))
    no_weights = sees_bad_key | (bad_q & sees_any)
    no_output = no_weights | sees_bad_value
    return _fill(out, no_output[..., None], np.nan), _without(found, no_weights, call)


def _whether_tame(call: Call) -> Callable[[], bool] | None:
    if not call.is_torch:
        return None
    from regard.dispatch.overflow import whether_tame

    return whether_tame(call)


def _surely_tame(*arrays: Array) -> bool:
    """Whether nothing in them can go wrong: everything finite and, for torch, not huge."""
    if isinstance(arrays[0], np.ndarray):
        return all(bool(np.isfinite(x).all()) for x in arrays)
    from regard.dispatch.overflow import surely_tame

    return surely_tame(arrays)


def _bad_rows(x: Array) -> Array:
    if isinstance(x, np.ndarray):
        return ~np.isfinite(x).all(-1)
    from regard.dispatch.overflow import bad_rows

    return bad_rows(x)


def _huge_rows(call: Call) -> tuple[Array, Array] | None:
    if not call.is_torch:
        return None
    from regard.dispatch.overflow import huge_rows

    return huge_rows(call)


def _for_queries(flags: list[Array], call: Call) -> Array:
    """Flags of keys, B G S each, in one array and for the heads of queries: n B H S."""
    served = call.sizes.H // max(1, call.sizes.G)
    if not call.is_torch:
        return np.stack(flags).repeat(served, axis=-2)
    import torch

    return torch.stack(flags).repeat_interleave(served, dim=-2)


def _fill(x: Array, where: Array, value: float) -> Array:
    if isinstance(x, np.ndarray):
        return np.where(where, np.asarray(value, x.dtype), x)
    return x.masked_fill(where, value)


def _without(found: Statistics, rows: Array, call: Call) -> Statistics:
    """Statistics with the rows (B H T) that have no weights as NaN; so is whatever sums over them. Padding is not."""
    if call.padding is not None and call.padding.queries is not None:
        rows = rows & call.padding.queries[:, None]

    def lost(x: Array | None, where: Array) -> Array | None:
        return None if x is None else _fill(x, where, np.nan)

    top = found.top
    return Statistics(
        map=None if found.map is None else lost(found.map, _any_in_bins(rows, call)[..., None]),
        lse=lost(found.lse, rows),
        entropy=lost(found.entropy, rows),
        received=lost(found.received, rows.any(-1)[..., None]),
        top=None if top is None else Top(top.indices, lost(top.weights, rows[..., None])),
        sink=lost(found.sink, rows.any(-1)),
        distance=lost(found.distance, rows.any(-1)[..., None]),
    )


def _any_in_bins(rows: Array, call: Call) -> Array:
    """B H R: the bins of the map that hold one of the rows."""
    assert call.see is not None
    assert call.see.map is not None
    T = call.sizes.T
    high, R = bin_width(T, call.see.map), bin_count(T, call.see.map)
    if isinstance(rows, np.ndarray):
        return np.logical_or.reduceat(rows, np.arange(R) * high, axis=-1) if R else rows
    import torch

    return torch.nn.functional.pad(rows, (0, R * high - T)).unflatten(-1, (R, high)).any(-1)
