"""After the sums of a map: its means over the attending queries, and the mean weight of the first key, in one launch.

A program owns a bin of queries of one head. It divides the row of the map by the number of its queries that attend to a
key, and sums the weights of the first key, from q, k and the LSE. For short texts a launch costs more than its work.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.axes import bin_count, bin_width
from regard.kernels.tiles import Bins
from regard.kernels.triton.launch import FP_FUSION, on_device
from regard.kernels.triton.mask_bands import MaskBands
from regard.kernels.triton.second_pass import SecondPassArguments, load_shift
from regard.kernels.triton.tile_sizes import power_of_two
from regard.kernels.triton.tiles import Heads, Limits, base_of, capped, mask_tile

MAX_PARTS = 256
"""Programs of one head without a map."""


@triton.jit
def _means_kernel(
    args,
    q,
    k,
    limits,
    sums,
    parts,
    R,
    height,
    C,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """One bin of queries. parts: 2 heads R, the sum of the weights of key 0 and the number of attending queries."""
    r, head = tl.program_id(0) % R, tl.cast(tl.program_id(0) // R, tl.int64)
    sample, h = head // args.H, head % args.H
    end = tl.minimum(r * height + height, args.T)
    columns = tl.arange(0, BLOCK_E)
    if parts is not None:
        key = tl.load(base_of(k, sample, h // args.group_size) + columns, mask=columns < E, other=0.0).to(tl.float32)
    count, total = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for start in range(r * height, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        shift = load_shift(args.lse + head * args.T, rows, end)  # infinity: fully masked, or beyond the bin
        count += tl.where(shift == float("inf"), 0.0, 1.0)
        if parts is not None:
            at = base_of(q, sample, h) + tl.cast(rows, tl.int64)[:, None] * q.row + columns[None, :]
            queries = tl.load(at, mask=(rows < end)[:, None] & (columns < E)[None, :], other=0.0).to(tl.float32)
            scores = tl.sum(queries * key[None, :], 1)[:, None] * args.scale
            scores = capped(scores, args.cap, args.cap is not None)
            visible = mask_tile(limits, sample, rows[:, None], tl.zeros((1, 1), tl.int32), args.T, args.S)
            total += tl.sum(tl.exp2(tl.where(visible, scores, float("-inf")) - shift[:, None]), 1)
    attending = tl.sum(count, 0)
    if parts is not None:
        tl.store(parts + head * R + r, tl.sum(total, 0))
        tl.store(parts + (tl.num_programs(0) + head * R + r), attending)
    if sums is not None:
        for first in range(0, C, BLOCK_C):
            bins = first + tl.arange(0, BLOCK_C)
            row = sums + (head * R + r) * C + bins
            mean = tl.load(row, mask=bins < C, other=0.0) / tl.maximum(attending, 1.0)
            tl.store(row, mean, mask=bins < C)


def map_means(
    call: AttentionCall, lse: Tensor, bands: MaskBands, bins: Bins | None, sums: Tensor | None, *, sink: bool
) -> Tensor | None:
    """Divide the sums, B H R C, in place; return the mean weight of the first key, B H, if `sink`.

    lse    B H T in nats, -inf for fully masked queries
    bands  the mask of the call, without padding

    To be called without gradients.
    """
    q, k = call.q, call.k
    B, H, T, E = q.shape
    height, R = (bin_width(T, MAX_PARTS), bin_count(T, MAX_PARTS)) if bins is None else (bins.height, bins.R)
    if not (q.numel() and k.numel()):
        return lse.new_zeros(B, H) if sink else None
    rows = min(64, power_of_two(height))
    parts = lse.new_empty(2, B, H, R) if sink else None
    args = SecondPassArguments.of(call, lse)
    C = 1 if bins is None else bins.C
    constants: dict[str, Any] = {"E": E, "BLOCK_E": power_of_two(E), "ROWS": rows}
    constants["BLOCK_C"] = min(1024, power_of_two(C))
    with on_device(q):
        _means_kernel[(B * H * R,)](
            args, Heads.of(q), Heads.of(k), Limits.of(bands, rows), sums, parts, R, height, C, **constants, **FP_FUSION
        )
    if parts is None:
        return None
    first, count = parts.sum(-1)
    return first.div_(count.clamp_(min=1))
