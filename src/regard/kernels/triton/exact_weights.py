"""Exact weights of any rectangle, or of any rows in any order, from q, k and the LSE alone: 2^(score − LSE)."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.triton.launch import launch
from regard.kernels.triton.mask_bands import sight_of
from regard.kernels.triton.second_pass import Given, load_shift
from regard.kernels.triton.tile_sizes import Blocks, blocks_for, power_of_two
from regard.kernels.triton.tiles import Heads, Limits, base_of, load_tile, score_tile, seen_tile
from regard.masks import BoundMask


@triton.jit
def _write_weights(
    given,
    q,
    k,
    limits,
    chosen,
    height,
    first,
    width,
    out,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    """One tile of the rectangle: the rows `chosen`, so many, and `width` keys from `first` on."""
    T, S = given.T, given.S
    across = tl.cdiv(width, KEYS)
    tiles = tl.cdiv(height, ROWS) * across
    tile, head = tl.program_id(0) % tiles, tl.cast(tl.program_id(0) // tiles, tl.int64)
    sample, h = head // given.H, head % given.H
    down = tile // across * ROWS + tl.arange(0, ROWS)
    rows = tl.load(chosen + down, mask=down < height, other=0)  # 64 bits wide
    columns = tl.arange(0, BLOCK_E)[None, :]
    queries = tl.load(base_of(q, sample, h) + rows[:, None] * q.row + columns, mask=columns < E, other=0.0)
    start = first + tile % across * KEYS
    keys = start + tl.arange(0, KEYS)
    passing = load_tile(base_of(k, sample, h // given.served), start, S, k.row, KEYS, E, BLOCK_E, False)
    scores = score_tile(queries, tl.trans(passing), given.scale, given.cap, given.cap is not None)
    seen = seen_tile(limits, sample, rows[:, None], keys[None, :], T, S)
    shift = load_shift(given.lse + head * T, rows, T)
    weights = tl.exp2(tl.where(seen, scores, float("-inf")) - shift[:, None])
    there = (down < height)[:, None] & (keys < first + width)[None, :]
    tl.store(out + (head * height + down)[:, None] * width + (keys - first)[None, :], weights, mask=there)


@torch.no_grad()
def rectangle(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    rows: slice | Tensor,
    cols: slice,
    *,
    mask: BoundMask | None = None,
    scale: float,
    softcap: float | None = None,
    blocks: Blocks | None = None,
) -> Tensor:
    """The weights of rows × cols, B H rows cols. q B H T E, k B G S E, lse B H T in nats."""
    B, H, _, E = q.shape
    if isinstance(rows, slice):
        rows = torch.arange(rows.start, max(rows.start, rows.stop), device=q.device)
    height, width = len(rows), max(0, cols.stop - cols.start)
    weights = lse.new_zeros(B, H, height, width)
    if weights.numel():
        blocks = blocks or blocks_for(q.dtype, E, height, width)
        given, limits = Given.of(q, k, lse, scale, softcap), Limits.of(sight_of(mask), blocks.rows)
        programs = B * H * triton.cdiv(height, blocks.rows) * triton.cdiv(width, blocks.keys)
        sizes = {"E": E, "BLOCK_E": power_of_two(E), "ROWS": blocks.rows, "KEYS": blocks.keys}
        arguments = (given, Heads.of(q), Heads.of(k), limits, rows, height, cols.start, width, weights)
        launch(_write_weights, programs, blocks, q, *arguments, **sizes)
    return weights
