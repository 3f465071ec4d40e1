"""What a backend is, the backends for NumPy arrays, and the guard under which every backend runs.

NumPy has `blocked` (fast), then `reference` (the definition). The guard keeps masked NaN and Inf out of the output. A
fast kernel multiplies a weight of 0 with a masked value, and 0 · NaN is NaN. So the arrays are checked once, under 1 %
of a call of 1,024 tokens. If something is not finite, the bad rows are set to zero and the kernel runs on the rest.
Queries that are bad themselves, or to which a bad key or value is visible, get NaN. No other query changes.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.arrays import Array
from regard.attention_call import AttentionCall
from regard.axes import bin_count, bin_width
from regard.kernels import blocked
from regard.memory import require_bytes
from regard.messages import say
from regard.records import Statistics
from regard.reference import log_sum_exp, statistics_of
from regard.reference.attention import attention_scores, computing_dtype, softmax, weighted_sum
from regard.statistics_table import STATISTICS

if TYPE_CHECKING:
    from regard.dispatch.overflow import HugeRows


class Listening(local):
    """The listeners of this thread, outermost first: they receive the attention operators that its models run."""

    active: tuple[Any, ...] = ()


LISTENING = Listening()


class Support(NamedTuple):
    """Yes, perhaps with a remark; or no, with the reason. `key` names the message of the remark or reason.

    values   those of the message, or a function that finds them: `attend` asks often and rarely prints the answer
    """

    yes: bool
    key: str | None = None
    values: dict[str, Any] | Callable[[], dict[str, Any]] = {}  # noqa: RUF012 - a NamedTuple's default, never written

    def __str__(self) -> str:
        values = self.values() if callable(self.values) else self.values
        text = say(self.key, **values) if self.key else ""
        if not self.yes:
            return text
        return say("backend-yes-but", remark=text) if text else say("backend-yes")


YES = Support(True)


Run = Callable[[AttentionCall], tuple[Array, Statistics]]


class Backend(NamedTuple):
    """One implementation of attention. `scratch` is the temporary memory of a call in bytes; 0 where it is small."""

    name: str
    answer: Callable[[AttentionCall], Support]
    run: Run
    scratch: Callable[[AttentionCall], int] = lambda _: 0


class Answers(dict[str, str]):
    """The answer of every backend to a call, first choice first: name -> yes or the reason. Prints as a table."""

    chosen: str | None = None

    def __str__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{'→' if n == self.chosen else ' '} {n:<{width}}  {text}" for n, text in self.items())


def _blocked_answer(call: AttentionCall) -> Support:
    return Support(False, "no-dropout", {"backend": "reference"}) if call.dropout else YES


def _blocked(call: AttentionCall) -> tuple[Array, Statistics]:
    return blocked.attention(call)


def _reference(call: AttentionCall) -> tuple[Array, Statistics]:
    sizes = call.sizes
    shape = (sizes.B, sizes.H, sizes.T, sizes.S)
    # Scores, weights and the dense mask are in memory at the same time.
    require_bytes(3 * prod(shape) * computing_dtype(call.q).itemsize, key="weights-too-large", shape=shape)
    mask = None
    if call.bound is not None and sizes.T and sizes.S:
        visible = call.bound.block(slice(0, sizes.T), slice(0, sizes.S))
        mask = np.broadcast_to(visible, shape)
    scores = attention_scores(call.q, call.k, mask, call.bias, call.scale, call.softcap)
    weights = softmax(scores)
    found = Statistics()
    if call.see is not None:
        found = statistics_of(weights, log_sum_exp(scores), call.see, scores, call.padding)
    if call.dropout:
        # NumPy's global generator, as torch uses its own: np.random.seed makes it reproducible.
        kept = np.random.random(weights.shape) >= call.dropout
        weights = np.where(kept, weights / (1 - call.dropout), 0).astype(weights.dtype)
    return weighted_sum(weights, call.q, call.v, mask), found


BACKENDS = (
    Backend("blocked", _blocked_answer, _blocked),
    Backend("reference", lambda _: Support(True, "whole-matrix"), _reference),
)


def run_guarded(call: AttentionCall, backend: Backend) -> tuple[Array, Statistics]:
    """Run the backend so that masked values never change the output (rule 3 of the design)."""
    check = _start_finite_check(call)
    if check is not None:
        result = backend.run(call)  # while the GPU checks
        if check():
            return result
        del result  # frees its memory
    elif _surely_finite(call.q, call.k, call.v):
        return backend.run(call)
    return _run_without_bad_rows(call, backend.run)


def _run_without_bad_rows(call: AttentionCall, run: Run) -> tuple[Array, Statistics]:
    """Run on zeros in place of bad and huge rows, then correct the queries to which these are visible."""
    bad_q, bad_k, bad_v = (_bad_rows(x) for x in (call.q, call.k, call.v))
    clean = replace(
        call,
        q=_fill(call.q, bad_q[..., None], 0),
        k=_fill(call.k, bad_k[..., None], 0),
        v=_fill(call.v, bad_v[..., None], 0),
    )
    huge = _huge_rows(clean)
    every_key = bad_k | True
    flags = [every_key, bad_k, bad_v] if huge is None else [every_key, bad_k, bad_v, huge.keys]
    visible = call.any_visible(_per_query_head(flags, call))  # once for all: a mask may have to evaluate T × S for it
    any_key_visible, bad_key_visible, bad_value_visible = visible[:3]  # B H T each
    if huge is None:
        out, found = run(clean)
    else:
        from regard.dispatch.overflow import run_despite_huge

        affected = visible[3] | (huge.queries & any_key_visible)
        out, found = run_despite_huge(clean, run, huge, affected)
    no_weights = bad_key_visible | (bad_q & any_key_visible)
    no_output = no_weights | bad_value_visible
    return _fill(out, no_output[..., None], np.nan), _without(found, no_weights, call)


def _start_finite_check(call: AttentionCall) -> Callable[[], bool] | None:
    if not call.is_torch:
        return None
    from regard.dispatch.overflow import start_finite_check

    return start_finite_check(call)


def _surely_finite(*arrays: Array) -> bool:
    """Whether everything in them is finite and, for torch, not huge."""
    if isinstance(arrays[0], np.ndarray):
        return all(bool(np.isfinite(x).all()) for x in arrays)
    from regard.dispatch.overflow import surely_finite

    return surely_finite(arrays)


def _bad_rows(x: Array) -> Array:
    if isinstance(x, np.ndarray):
        return ~np.isfinite(x).all(-1)
    from regard.dispatch.overflow import bad_rows

    return bad_rows(x)


def _huge_rows(call: AttentionCall) -> "HugeRows | None":
    if not call.is_torch:
        return None
    from regard.dispatch.overflow import huge_rows

    return huge_rows(call)


def _per_query_head(flags: list[Array], call: AttentionCall) -> Array:
    """Flags of keys, B G S each, stacked and repeated for the query heads: n B H S."""
    group_size = call.sizes.H // max(1, call.sizes.G)
    if not call.is_torch:
        return np.stack(flags).repeat(group_size, axis=-2)
    import torch

    return torch.stack(flags).repeat_interleave(group_size, dim=-2)


def _fill(x: Array, where: Array, value: float) -> Array:
    if isinstance(x, np.ndarray):
        return np.where(where, np.asarray(value, x.dtype), x)
    return x.masked_fill(where, value)


def _without(found: Statistics, rows: Array, call: AttentionCall) -> Statistics:
    """Statistics with NaN for the rows (B H T) without weights and for every sum over them; padding is left out."""
    if call.padding is not None and call.padding.queries is not None:
        rows = rows & call.padding.queries[:, None]

    every = rows.any(-1)
    changed = {}
    for one in STATISTICS:
        value = getattr(found, one.name) if one.computed else None
        if value is None:
            continue
        axis = one.axes[0] if one.axes else ""
        where = rows if axis == "T" else _any_in_bins(rows, call) if axis == "R" else every
        others = (None,) * (2 + len(one.axes) - where.ndim)
        nans = [_fill(x, where[(..., *others)], np.nan) if _is_float(x) else x for x in one.arrays(value).values()]
        changed[one.name] = type(value)(*nans) if one.parts else nans[0]
    return found._replace(**changed)


def _is_float(x: Array) -> bool:
    return x.dtype.kind == "f" if isinstance(x, np.ndarray) else x.is_floating_point()


def _any_in_bins(rows: Array, call: AttentionCall) -> Array:
    """B H R: the row bins of the map that contain one of the rows."""
    assert call.see is not None
    assert call.see.map is not None
    T = call.sizes.T
    high, R = bin_width(T, call.see.map), bin_count(T, call.see.map)
    if isinstance(rows, np.ndarray):
        return np.logical_or.reduceat(rows, np.arange(R) * high, axis=-1) if R else rows
    import torch

    return torch.nn.functional.pad(rows, (0, R * high - T)).unflatten(-1, (R, high)).any(-1)
