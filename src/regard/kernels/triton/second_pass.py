"""Arguments and helpers shared by the passes that follow an output: q, k, the LSE, and the shift of a row.

A weight is 2^(score − LSE) in base 2, with the LSE of any kernel: no maximum is computed, and nothing is rescaled.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.triton.launch import KernelArguments, on_device
from regard.kernels.triton.tile_sizes import power_of_two
from regard.kernels.triton.tiles import LOG2E, Limits, loop_parts, tiled_tensors


class SecondPassArguments(NamedTuple):
    """The arguments of a second pass; fields that are None are compiled away.

    lse          B H T in float32, nats
    group_size   query heads per key head
    scale        includes the factor log2 e, and so does `cap`
    """

    lse: Any
    H: int
    group_size: int
    T: int
    S: int
    scale: float
    cap: float | None

    @classmethod
    def of(cls, call: AttentionCall, lse: Tensor) -> "SecondPassArguments":
        (H, T), (G, S) = call.q.shape[1:3], call.k.shape[1:3]
        cap = None if call.softcap is None else call.softcap * LOG2E
        return cls(lse.contiguous(), H, H // G, T, S, call.scale * LOG2E, cap)


def kernel_arguments(
    args: SecondPassArguments,
    q: Tensor,
    k: Tensor,
    limits: Limits,
    *,
    queries: int,
    keys: int,
    streamed: int,
    length: int,
) -> KernelArguments:
    """Kernel arguments for tiles of `queries` and `keys`; the streamed side has tiles of `streamed` and a `length`."""
    constants = {"E": q.shape[3], "BLOCK_E": power_of_two(q.shape[3]), "QUERIES": queries, "KEYS": keys}
    constants |= loop_parts(limits, length % streamed == 0)
    tensors, uses_tma = tiled_tensors((q, queries), (k, keys))
    return KernelArguments((args, *tensors, limits), constants | {"TMA": uses_tma})


@triton.jit
def load_shift(lse, rows, T):
    """The number subtracted from the scores of these queries, in base 2: infinity if fully masked or beyond the end."""
    row_lse = tl.load(lse + rows, mask=rows < T, other=float("inf"))
    return tl.where(row_lse == float("-inf"), float("inf"), row_lse) * 1.4426950408889634


@triton.jit
def _padded_shifts_kernel(lse, shifts, T, padded_length, ROWS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * ROWS
    head, rows = at // padded_length, at % padded_length + tl.arange(0, ROWS)
    tl.store(shifts + head * padded_length + rows, load_shift(lse + head * T, rows, T))


def padded_shifts(lse: Tensor, rows: int) -> Tensor:
    """The number subtracted from the scores of each query, in base 2, B H first, padded to whole tiles of `rows`;
    infinity where a query is fully masked, or beyond the end.
    """
    *heads, T = lse.shape
    padded_length = triton.cdiv(T, rows) * rows
    shifts = lse.new_empty(*heads, padded_length)
    with on_device(lse):
        _padded_shifts_kernel[(shifts.numel() // rows,)](lse.contiguous(), shifts, T, padded_length, ROWS=rows)
    return shifts
