"""Numbers so large that PyTorch's products of them are not finite, where hidden ones would leak after all.

Forward, a mask that is added makes inf + (-inf) of a hidden huge key; backward, a hidden huge value gives a weight of
0 an infinite gradient. So huge rows are kept from the kernel as bad ones are, and the queries that may look at them are
computed again, eagerly, a block of rows at a time.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from regard.dispatch.call import Call
from regard.dispatch.torch_backends import wants_gradient
from regard.functional.attention import scaled_dot_product_attention
from regard.functional.exponentials import computing_dtype
from regard.kernels.tiles import SCORES_AT_A_TIME
from regard.masks import Mask
from regard.masks.rules import Dense
from regard.records import Statistics

WORTH_WAITING = 2**26
"""Bytes of q, k and v from which on a GPU is waited for, to know whether they are tame: else they would be copied."""


def huge(dtype: torch.dtype) -> float:
    """From here on a product of two numbers may be too large for sums of it: below the root of the largest number."""
    return 1e150 if dtype == torch.float64 else 1e17


def surely_tame(tensors: tuple[Tensor, ...]) -> bool:
    """Whether all of them are finite and not huge, by one reading of each."""
    if tensors[0].device.type == "meta":
        return True
    with torch.no_grad():
        if may_branch(tensors[0]):
            return all(_tame(x) for x in tensors)
        return _may_wait(tensors) and asked_whether_tame(tensors)()


def whether_tame(call: Call) -> Callable[[], bool] | None:
    """The same, asked now and answered when it is called, so that a GPU can go on; None where it should not be asked.

    What draws random numbers is not begun before the answer: it would draw twice.
    """
    tensors = (call.q, call.k, call.v)
    return None if call.dropout or not _may_wait(tensors) else asked_whether_tame(tensors)


@torch.no_grad()
def asked_whether_tame(tensors: tuple[Tensor, ...]) -> Callable[[], bool]:
    """The same for tensors of one dtype, by one number of each, all of which are waited for together."""
    # A length is NaN, infinite or huge as soon as one element is; on a GPU it needs no copy, however memory lies.
    exact, limit = computing_dtype(tensors[0]), huge(tensors[0].dtype)
    longest = torch.stack([torch.linalg.vector_norm(x, dtype=exact) for x in tensors]).amax()
    if not longest.is_cuda:
        return lambda: longest.item() < limit
    answer = torch.empty((), dtype=exact, pin_memory=True)
    answer.copy_(longest, non_blocking=True)
    there = torch.cuda.Event()
    there.record(torch.cuda.current_stream(longest.device))

    def told() -> bool:
        there.synchronize()
        return answer.item() < limit

    return told


def bad_rows(x: Tensor) -> Tensor:
    """Rows that hold something not finite; where one may not branch on values, huge counts as bad too."""
    if may_branch(x):
        return ~x.isfinite().all(-1)
    return ~(x.abs() < huge(x.dtype)).all(-1)


def huge_rows(call: Call) -> tuple[Tensor, Tensor] | None:
    """Of a finite call the queries that are huge, B H T, and the keys that are or whose values are, B G S.

    None where there are none, where one may not look, and where it does not matter.
    """
    # Only eager gives gradients through statistics here, and that fills hidden numbers in, there and back.
    through = call.see is not None and call.see.differentiable and wants_gradient(call.q, call.k, call.v)
    if through or not may_branch(call.q):
        return None
    huge_q, huge_k, huge_v = ((x.abs() >= huge(x.dtype)).any(-1) for x in (call.q, call.k, call.v))
    huge_keys = huge_k | huge_v
    return (huge_q, huge_keys) if huge_q.any() or huge_keys.any() else None


def despite_huge(
    call: Call, run: Callable[[Call], tuple[Tensor, Statistics]], rows: tuple[Tensor, Tensor], looking: Tensor
) -> tuple[Tensor, Statistics]:
    """`run(call)` despite its `huge_rows`; what the queries `looking` at them, B H T, get is computed again."""
    huge_q, huge_keys = rows
    small = replace(
        call,
        q=call.q.masked_fill(huge_q[..., None], 0),
        k=call.k.masked_fill(huge_keys[..., None], 0),
        v=call.v.masked_fill(huge_keys[..., None], 0),
    )
    out, found = run(small)
    if call.see is not None:
        # Forward, the kernels that give statistics replace hidden scores instead of adding to them.
        with torch.no_grad():
            _, found = run(call)
    return torch.cat([_again(call, out, looking, block) for block in _row_blocks(call)], dim=2), found


def _again(call: Call, out: Tensor, looking: Tensor, rows: slice) -> Tensor:
    """A block of the output, eager where someone may look at something huge: masks are filled in there, not added."""
    if not looking[:, :, rows].any():
        return out[:, :, rows]
    S = call.sizes.S
    seen = True if call.bound is None else call.bound.block(rows, slice(0, S))
    allowed = torch.as_tensor(seen, device=out.device).expand(*looking.shape[:2], rows.stop - rows.start, S)
    bias = None if call.bias is None else call.bias.expand(*looking.shape, S)[:, :, rows]
    eager, _ = scaled_dot_product_attention(
        call.q[:, :, rows], call.k, call.v, Mask(Dense(allowed), "rows"), bias, call.scale, call.softcap
    )
    return torch.where(looking[:, :, rows, None], eager, out[:, :, rows])


def _row_blocks(call: Call) -> list[slice]:
    sizes = call.sizes
    step = max(1, SCORES_AT_A_TIME // max(1, sizes.B * sizes.H * sizes.S))
    return [slice(first, min(sizes.T, first + step)) for first in range(0, sizes.T, step)] or [slice(0, 0)]


def _tame(x: Tensor) -> bool:
    if not x.numel():
        return True
    if x.is_contiguous():
        low, high = x.aminmax()
        return low.item() > -huge(x.dtype) and high.item() < huge(x.dtype)
    # Of heads that lie transposed, as in most models, the length is quicker to have; it is NaN, infinite or huge as
    # soon as one element is.
    return torch.linalg.vector_norm(x, dtype=computing_dtype(x)).item() < huge(x.dtype)


def _may_wait(tensors: tuple[Tensor, ...]) -> bool:
    """Whether these are on a GPU and worth waiting for it; while a graph is captured, nobody may wait."""
    if not tensors[0].is_cuda or torch.compiler.is_compiling():
        return False
    return sum(x.nbytes for x in tensors) >= WORTH_WAITING and not torch.cuda.is_current_stream_capturing()


def may_branch(x: Tensor) -> bool:
    """A traced graph cannot branch on values, and a GPU should not be waited for, as a rule."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()
