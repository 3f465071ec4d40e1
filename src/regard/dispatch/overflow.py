"""Finite torch inputs whose products may overflow: find them, and recompute the affected queries eagerly.

In the forward pass an additive mask makes inf + (-inf) of a masked huge key. In the backward pass a masked huge value
gives a weight of 0 an infinite gradient. So huge rows are set to zero before the kernel, as bad rows are, and the
queries to which they are visible are recomputed eagerly, a block of rows at a time.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.dispatch.backend import Run
from regard.dispatch.torch_backends import wants_gradient
from regard.functional.attention import computing_dtype, scaled_dot_product_attention
from regard.kernels.division import SCORES_AT_A_TIME
from regard.masks import Mask
from regard.masks.rules import Dense
from regard.records import Statistics

SYNC_FROM = 2**26
"""Bytes of q, k and v from which waiting for the GPU's check costs less than copying them.

Calls with statistics wait at any size: without waiting, some forty small operators would repair arrays that are nearly
always finite, and for 4,096 tokens their launch took longer than the kernels.
"""


def huge(dtype: torch.dtype) -> float:
    """The magnitude from which sums of products may overflow: below the square root of the largest number."""
    return 1e150 if dtype == torch.float64 else 1e17


def surely_finite(tensors: tuple[Tensor, ...]) -> bool:
    """Whether all of them are finite and not huge; reads each tensor once."""
    if tensors[0].device.type == "meta":
        return True
    with torch.no_grad():
        if may_branch(tensors[0]):
            return all(_is_finite(x) for x in tensors)
        return _may_wait(tensors) and start_norm_check(tensors)()


def start_finite_check(call: AttentionCall) -> Callable[[], bool] | None:
    """Start the check of `surely_finite`; the returned function waits for its result. None where it should not run.

    With dropout the kernel must not start before the result: it would draw random numbers twice.
    """
    tensors = (call.q, call.k, call.v)
    may_wait = _may_wait(tensors) or (call.see is not None and _is_free_gpu(tensors[0]))
    return start_norm_check(tensors) if may_wait and not call.dropout else None


@torch.no_grad()
def start_norm_check(tensors: tuple[Tensor, ...]) -> Callable[[], bool]:
    """The same check for tensors of one dtype, by the norm of each, with one wait for all."""
    # A norm is NaN, infinite or huge as soon as one element is; on a GPU it needs no copy for any strides.
    exact, limit = computing_dtype(tensors[0]), huge(tensors[0].dtype)
    if tensors[0].is_cuda and all(x.numel() for x in tensors):  # one call: launches cost more than they compute
        norms = torch.stack(torch._foreach_norm(tensors, 2, dtype=exact))
    else:
        norms = torch.stack([torch.linalg.vector_norm(x, dtype=exact) for x in tensors])
    if not norms.is_cuda:
        return lambda: all(norm < limit for norm in norms.tolist())
    on_host = torch.empty(len(tensors), dtype=exact, device="cpu", pin_memory=True)
    on_host.copy_(norms, non_blocking=True)
    copied = torch.cuda.Event()
    copied.record(torch.cuda.current_stream(norms.device))

    def is_finite() -> bool:
        copied.synchronize()
        return all(norm < limit for norm in on_host.tolist())

    return is_finite


def bad_rows(x: Tensor) -> Tensor:
    """Rows with a non-finite element; where the code cannot branch on values, huge rows count as bad too."""
    if may_branch(x):
        return ~x.isfinite().all(-1)
    return ~(x.abs() < huge(x.dtype)).all(-1)


class HugeRows(NamedTuple):
    """The huge queries of a call, B H T, and the keys that are huge or have huge values, B G S."""

    queries: Tensor
    keys: Tensor


def huge_rows(call: AttentionCall) -> HugeRows | None:
    """The huge rows of a finite call.

    None where there are none, where the code cannot branch on values, and where it does not matter.
    """
    # Only eager differentiates statistics here. It fills masked scores in, forward and backward, so nothing leaks.
    is_eager = call.see is not None and call.see.differentiable and wants_gradient(call.q, call.k, call.v)
    if is_eager or not may_branch(call.q):
        return None
    huge_q, huge_k, huge_v = ((x.abs() >= huge(x.dtype)).any(-1) for x in (call.q, call.k, call.v))
    found = HugeRows(huge_q, huge_k | huge_v)
    return found if found.queries.any() or found.keys.any() else None


def run_despite_huge(call: AttentionCall, run: Run, rows: HugeRows, affected: Tensor) -> tuple[Tensor, Statistics]:
    """`run(call)` without its `huge_rows`; the output of the `affected` queries, B H T, is recomputed eagerly."""
    small = replace(
        call,
        q=call.q.masked_fill(rows.queries[..., None], 0),
        k=call.k.masked_fill(rows.keys[..., None], 0),
        v=call.v.masked_fill(rows.keys[..., None], 0),
    )
    out, found = run(small)
    if call.see is not None:
        # In the forward pass, the kernels with statistics replace masked scores instead of adding to them.
        with torch.no_grad():
            _, found = run(call)
    return torch.cat([_recomputed(call, out, affected, block) for block in _row_blocks(call)], dim=2), found


def _recomputed(call: AttentionCall, out: Tensor, affected: Tensor, rows: slice) -> Tensor:
    """A block of the output, eager for the affected queries: eager fills masked scores in instead of adding a mask."""
    if not affected[:, :, rows].any():
        return out[:, :, rows]
    S = call.sizes.S
    visible = True if call.bound is None else call.bound.block(rows, slice(0, S))
    allowed = torch.as_tensor(visible, device=out.device).expand(*affected.shape[:2], rows.stop - rows.start, S)
    bias = None if call.bias is None else call.bias.expand(*affected.shape, S)[:, :, rows]
    eager, _ = scaled_dot_product_attention(
        call.q[:, :, rows], call.k, call.v, Mask(Dense(allowed), "rows"), bias, call.scale, call.softcap
    )
    return torch.where(affected[:, :, rows, None], eager, out[:, :, rows])


def _row_blocks(call: AttentionCall) -> list[slice]:
    sizes = call.sizes
    step = max(1, SCORES_AT_A_TIME // max(1, sizes.B * sizes.H * sizes.S))
    return [slice(first, min(sizes.T, first + step)) for first in range(0, sizes.T, step)] or [slice(0, 0)]


def _is_finite(x: Tensor) -> bool:
    if not x.numel():
        return True
    if x.is_contiguous():
        low, high = x.aminmax()
        return low.item() > -huge(x.dtype) and high.item() < huge(x.dtype)
    # For transposed heads, as in most models, the norm is faster; it is NaN, infinite or huge if one element is.
    return torch.linalg.vector_norm(x, dtype=computing_dtype(x)).item() < huge(x.dtype)


def _may_wait(tensors: tuple[Tensor, ...]) -> bool:
    """Whether these are on a GPU and so large that waiting for it costs less than copies."""
    return _is_free_gpu(tensors[0]) and sum(x.nbytes for x in tensors) >= SYNC_FROM


def _is_free_gpu(x: Tensor) -> bool:
    """Whether a tensor is on a GPU whose results may be read: not in a traced graph or a CUDA graph."""
    return not torch.compiler.is_compiling() and x.is_cuda and not torch.cuda.is_current_stream_capturing()


def may_branch(x: Tensor) -> bool:
    """Whether the code may branch on values: not in a traced graph, and not on a GPU, where it would have to wait."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()
