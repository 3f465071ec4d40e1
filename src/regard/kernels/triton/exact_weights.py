"""Exact weights of any rectangle, or of any rows in any order, from q, k and the LSE: 2^(score − LSE)."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.triton.launch import launch
from regard.kernels.triton.mask_bands import bands_of
from regard.kernels.triton.second_pass import SecondPassArguments, load_shift
from regard.kernels.triton.tile_sizes import Blocks, blocks_for, power_of_two
from regard.kernels.triton.tiles import Heads, Limits, base_of, load_tile, mask_tile, score_tile


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
        arguments = (args, Heads.of(q), Heads.of(k), limits, rows, height, cols.start, width, weights)
        launch(_write_weights, programs, blocks, q, *arguments, **sizes)
    return weights
