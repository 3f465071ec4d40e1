"""Second passes over q, k and a known LSE: the arguments that they share, and exact weights of any rectangle.

A weight is 2^(score − LSE) in base 2, with the LSE of any kernel: no maximum is computed, and nothing is rescaled.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.triton.support import Blocks, bands_of, blocks_for, power_of_two
from regard.kernels.triton.tiles import (
    LOG2E,
    KernelArguments,
    Limits,
    StridedTensor,
    base_of,
    launch,
    load_tile,
    loop_parts,
    mask_tile,
    on_device,
    score_tile,
    tiled_tensors,
)


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


@triton.jit
def _write_weights(
    args,
    q,
    k,
    limits,
    row_list,
    height,
    first,
    width,
    out,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    """One tile of the rectangle: `height` rows from `row_list`, and `width` keys from `first` on."""
    T, S = args.T, args.S
    across = tl.cdiv(width, KEYS)
    tiles = tl.cdiv(height, ROWS) * across
    tile, head = tl.program_id(0) % tiles, tl.cast(tl.program_id(0) // tiles, tl.int64)
    sample, h = head // args.H, head % args.H
    row_index = tile // across * ROWS + tl.arange(0, ROWS)
    rows = tl.load(row_list + row_index, mask=row_index < height, other=0)  # int64
    columns = tl.arange(0, BLOCK_E)[None, :]
    queries = tl.load(base_of(q, sample, h) + rows[:, None] * q.row + columns, mask=columns < E, other=0.0)
    start = first + tile % across * KEYS
    keys = start + tl.arange(0, KEYS)
    key_tile = load_tile(base_of(k, sample, h // args.group_size), start, S, k.row, KEYS, E, BLOCK_E, False)
    scores = score_tile(queries, tl.trans(key_tile), args.scale, args.cap, args.cap is not None)
    visible = mask_tile(limits, sample, rows[:, None], keys[None, :], T, S)
    shift = load_shift(args.lse + head * T, rows, T)
    weights = tl.exp2(tl.where(visible, scores, float("-inf")) - shift[:, None])
    in_range = (row_index < height)[:, None] & (keys < first + width)[None, :]
    tl.store(out + (head * height + row_index)[:, None] * width + (keys - first)[None, :], weights, mask=in_range)


@torch.no_grad()
def rectangle(
    call: AttentionCall, lse: Tensor, rows: slice | Tensor, cols: slice, *, blocks: Blocks | None = None
) -> Tensor:
    """The weights of rows × cols, B H rows cols; lse is B H T in nats. The values are not used."""
    q, k = call.q, call.k
    B, H, _, E = q.shape
    if isinstance(rows, slice):
        rows = torch.arange(rows.start, max(rows.start, rows.stop), device=q.device)
    height, width = len(rows), max(0, cols.stop - cols.start)
    weights = lse.new_empty(B, H, height, width)
    if weights.numel():
        blocks = blocks or blocks_for(q.dtype, E, height, width)
        args, limits = SecondPassArguments.of(call, lse), Limits.of(bands_of(call.bound), blocks.rows)
        programs = B * H * triton.cdiv(height, blocks.rows) * triton.cdiv(width, blocks.keys)
        sizes = {"E": E, "BLOCK_E": power_of_two(E), "ROWS": blocks.rows, "KEYS": blocks.keys}
        arguments = (args, StridedTensor.of(q), StridedTensor.of(k), limits, rows, height, cols.start, width, weights)
        launch(_write_weights, programs, blocks, q, *arguments, **sizes)
    return weights
