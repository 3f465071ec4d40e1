"""Attention in one pass over key tiles, with LSE, maximum, entropy and the map's row strips from the same pass.

A program owns a tile of queries and loops over the keys visible to it: first tiles at the left edge, where the mask is
evaluated, then fully visible tiles, then tiles at the right edge. Statistics that are not requested are compiled away.

Entropy is accumulated as Σ p (s − m), relative to the running maximum m as Σ p is: large scores cost no precision. For
the map see `pooling`; heads are launched in groups, so that its scratch and strips stay bounded. No number is written
by two programs, so the result is bitwise reproducible.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.division import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.pooling import (
    MapBuffers,
    add_to_bins,
    bin_layout,
    max_strips,
    store_last_bin,
    sum_bin_rows,
    sum_strips,
)
from regard.kernels.triton.support import (
    Blocks,
    ForwardRequest,
    ForwardResult,
    MaskBands,
    allocate_result,
    blocks_for,
    power_of_two,
    programs,
)
from regard.kernels.triton.tiles import (
    LOG2E,
    KernelArguments,
    Limits,
    launch,
    load_rows,
    loop_parts,
    loop_range,
    mask_tile,
    score_tile,
    tiled_tensors,
    visible_tiles,
)

BUFFER_LIMIT = 2**24
"""Numbers in all scratch, and in all strips: 64 MiB each, or, if larger, the size of the map or of one head."""


class ForwardArguments(NamedTuple):
    """Sizes and output tensors; fields that are None are compiled away.

    group_size   query heads per key head
    scale        not negative; it and `cap` include the factor log2 e
    out          B H T Ev; lse, maximum and entropy are B H T in float32
    """

    H: int
    group_size: int
    T: int
    S: int
    scale: float
    cap: float | None
    out: Any
    lse: Any = None
    maximum: Any = None
    entropy: Any = None


@triton.jit
def forward_kernel(
    args,
    q,
    k,
    v,
    limits,
    buffers,
    first,
    last,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    FIRST_PART: tl.constexpr,
    LAST_PART: tl.constexpr,
    TMA: tl.constexpr,
    BINS: tl.constexpr,
    BIN_UNIT: tl.constexpr,
    BIN_ROWS: tl.constexpr,
):
    """Compute the row tiles `first` … `last`, counted over all heads: one per program, or several with scratch.

    FIRST_PART, LAST_PART: parts of the loop. BINS, BIN_UNIT, BIN_ROWS: see `pooling`; without a map BINS is "".
    """
    tiles, program, programs = tl.cdiv(args.T, ROWS), tl.program_id(0), tl.num_programs(0)
    if BINS == "":
        at = first + program
        head, tile = at // tiles, at % tiles
        if limits.right is not None:
            tile = tiles - 1 - tile  # longest first
        _attend_tile(
            args, q, k, v, limits, buffers, head, tile,
            E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, FIRST_PART, LAST_PART, TMA, BINS, BIN_UNIT, BIN_ROWS,
        )  # fmt: skip
    else:
        heads = (last - first) // tiles
        for wave in range(tl.cdiv(last - first, programs)):
            # Alternating direction, from the longest tiles of all heads to the shortest: this balances the programs.
            at = wave * programs + tl.where(wave % 2 == 1, programs - 1 - program, program)
            if at < last - first:
                head, tile = first // tiles + at // tiles, at % tiles
                if limits.right is not None:
                    head, tile = first // tiles + at % heads, tiles - 1 - at // heads
                _attend_tile(
                    args, q, k, v, limits, buffers, head, tile,
                    E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, FIRST_PART, LAST_PART, TMA, BINS, BIN_UNIT, BIN_ROWS,
                )  # fmt: skip


@triton.jit
def _attend_tile(
    args,
    q,
    k,
    v,
    limits,
    buffers,
    head,
    tile,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    FIRST_PART: tl.constexpr,
    LAST_PART: tl.constexpr,
    TMA: tl.constexpr,
    BINS: tl.constexpr,
    BIN_UNIT: tl.constexpr,
    BIN_ROWS: tl.constexpr,
):
    """Compute one tile of queries of one head: output and all statistics."""
    T, S = args.T, args.S
    sample, h = head // args.H, head % args.H
    g = h // args.group_size
    rows = tile * ROWS + tl.arange(0, ROWS)
    queries = load_rows(q, sample, h, tile * ROWS, T, ROWS, E, BLOCK_E, False, TMA)

    edges = visible_tiles(limits, sample, tile, T, S, ROWS, KEYS)
    m = tl.full((ROWS,), float("-inf"), tl.float32)
    total, score_sum, bin_sum = (
        tl.zeros((ROWS,), tl.float32),
        tl.zeros((ROWS,), tl.float32),
        tl.zeros((ROWS,), tl.float32),
    )
    acc = tl.zeros((ROWS, BLOCK_EV), tl.float32)
    for part in tl.static_range(FIRST_PART, LAST_PART + 1):
        begin, end = loop_range(edges, part)
        for start in range(begin, end, KEYS):
            keys = load_rows(k, sample, g, start, S, KEYS, E, BLOCK_E, part == 1, TMA)
            x, new_max, shift = _shifted_scores(args, limits, queries, keys, m, sample, rows, start, part == 1)
            p = tl.exp2(x)
            rescale = tl.exp2(m - shift)
            row_sum = tl.sum(p, 1)
            if args.entropy is not None:
                max_change = tl.where(m == float("-inf"), 0.0, m - shift)
                if part != 1:
                    x = tl.where(x == float("-inf"), 0.0, x)
                score_sum = rescale * (score_sum + total * max_change) + tl.sum(p * x, 1)
            total = total * rescale + row_sum
            values = load_rows(v, sample, g, start, S, KEYS, EV, BLOCK_EV, part == 1, TMA)
            acc = tl.dot(p.to(values.dtype), values, acc * rescale[:, None], input_precision="ieee")
            if BINS != "":
                bin_sum = add_to_bins(buffers, start, p, row_sum, rescale, shift, bin_sum, ROWS, KEYS, BINS, BIN_UNIT)
            m = new_max

    lse = _store_results(args, head, rows, acc, m, total, score_sum, EV)
    if BINS != "":
        store_last_bin(buffers, edges[3], m, bin_sum, ROWS, BINS)
        sum_bin_rows(buffers, head, tile, lse, edges[0], edges[3], T, ROWS, BINS, BIN_ROWS)


@triton.jit
def _shifted_scores(args, limits, queries, keys, m, sample, rows, start, ALL_VISIBLE: tl.constexpr):
    """The scores of a tile minus their shift, the new running maximum, and the shift: the maximum, or 0 if it is -inf.

    start        the first key of the tile
    ALL_VISIBLE  every key of it is visible to every query
    """
    if not ALL_VISIBLE or args.cap is not None:
        s = score_tile(queries, tl.trans(keys), args.scale, args.cap, args.cap is not None)
        if not ALL_VISIBLE:
            columns = start + tl.arange(0, keys.shape[0])[None, :]
            s = tl.where(mask_tile(limits, sample, rows[:, None], columns, args.T, args.S), s, float("-inf"))
        new_max = tl.maximum(m, tl.max(s, 1))
        # A query without a visible key so far stays at -inf, and -inf - -inf would be NaN.
        shift = tl.where(new_max == float("-inf"), 0.0, new_max)
        x = s - shift[:, None]
    else:
        # Scaled after the maximum is found, so that scaling and shifting are one operation.
        s = tl.dot(queries, tl.trans(keys), input_precision="ieee")
        new_max = tl.maximum(m, tl.max(s, 1) * args.scale)
        shift = new_max
        x = s * args.scale - shift[:, None]
    return x, new_max, shift


@triton.jit
def _store_results(args, head, rows, acc, m, total, score_sum, EV: tl.constexpr):
    """Store the results of these queries; returns their LSE in base 2."""
    lse = m + tl.log2(total)
    divisor = tl.where(total == 0.0, 1.0, total)  # fully masked queries get zeros
    row_index, in_range = tl.cast(head, tl.int64) * args.T + rows, rows < args.T
    columns = tl.arange(0, acc.shape[1])[None, :]
    out = (acc / divisor[:, None]).to(args.out.dtype.element_ty)
    tl.store(args.out + row_index[:, None] * EV + columns, out, mask=in_range[:, None] & (columns < EV))
    if args.lse is not None:
        tl.store(args.lse + row_index, lse * 0.6931471805599453, mask=in_range)
    if args.maximum is not None:
        tl.store(args.maximum + row_index, m * 0.6931471805599453, mask=in_range)
    if args.entropy is not None:
        entropy = (tl.log2(divisor) - score_sum / divisor) * 0.6931471805599453
        tl.store(args.entropy + row_index, tl.where(entropy < 0.0, 0.0, entropy), mask=in_range)
    return lse


# --- launch -------------------------------------------------------------------------------------------------


@torch.no_grad()
def forward(
    call: AttentionCall, bands: MaskBands, request: ForwardRequest, *, blocks: Blocks | None = None
) -> ForwardResult:
    """The requested results of a call whose tensors have one dtype and device; `bands` is its mask."""
    q, k, v, scale = call.q, call.k, call.v, call.scale
    B, H, T, E = q.shape
    S, Ev = v.shape[-2:]
    is_empty = not (B * H and T and S)
    if blocks is None and not is_empty and hopper.is_available(q.device):
        hopper_result = _forward_on_hopper(call, bands, request)
        if hopper_result is not None:
            return hopper_result
    result = allocate_result(request, q, v)
    if is_empty:
        return result
    if scale < 0:
        q, scale = -q, -scale  # scores are scaled after the maximum is found and must keep their order
    blocks = blocks or blocks_for(q.dtype, max(E, Ev), T, S, request.bins.width if request.bins else None)
    args = ForwardArguments(
        H=H,
        group_size=H // k.shape[1],
        T=T,
        S=S,
        scale=scale * LOG2E,
        cap=None if call.softcap is None else call.softcap * LOG2E,
        out=result.out,
        lse=result.lse,
        maximum=result.maximum,
        entropy=result.entropy,
    )
    kernel_args = _kernel_arguments(args, q, k, v, Limits.of(bands, blocks.rows), blocks)
    if request.bins is None or result.sums is None:
        _launch(kernel_args, None, blocks, None, 0, B * H * -(-T // blocks.rows))
    else:
        _launch_with_map(kernel_args, blocks, request.bins, result.sums.flatten(0, 1))
    return result


def _forward_on_hopper(call: AttentionCall, bands: MaskBands, request: ForwardRequest) -> ForwardResult | None:
    """The result of the kernels for Hopper GPUs; None where they do not support the call."""
    from regard.kernels.triton.hopper import launch as hopper_launch

    if not hopper_launch.supports(call, bands, request.bins, with_values=True):
        return None
    return hopper_launch.forward(call, bands, request, allocate_result(request, call.q, call.v))


def _kernel_arguments(
    args: ForwardArguments, q: Tensor, k: Tensor, v: Tensor, limits: Limits, blocks: Blocks
) -> KernelArguments:
    E, Ev = k.shape[3], v.shape[3]
    constants = {"E": E, "EV": Ev, "BLOCK_E": power_of_two(E), "BLOCK_EV": power_of_two(Ev)}
    constants |= {"ROWS": blocks.rows, "KEYS": blocks.keys} | loop_parts(limits, args.S % blocks.keys == 0)
    tensors, uses_tma = tiled_tensors((q, blocks.rows), (k, blocks.keys), (v, blocks.keys))
    return KernelArguments((args, *tensors, limits), constants | {"TMA": uses_tma})


def _launch_with_map(kernel_args: KernelArguments, blocks: Blocks, bins: Bins, sums: Tensor) -> None:
    """Write the sums, (B·H, R, C), for heads in groups; scratch grows with the number of programs."""
    heads, tiles = len(sums), -(-kernel_args.arguments[0].T // blocks.rows)
    strips_per_head = max_strips(kernel_args.arguments[0].T, bins, blocks.rows)
    limit = max(BUFFER_LIMIT, sums.numel())
    group = min(heads, max(1, limit // (strips_per_head * bins.C)))
    n_programs = min(programs(sums.device), tiles * group, max(1, limit // (bins.C * blocks.rows)))
    scratch = sums.new_empty((n_programs, bins.C, blocks.rows))
    for first in range(0, heads, group):
        group_heads = min(group, heads - first)
        strips = sums.new_zeros((group_heads, strips_per_head, bins.C))
        buffers = MapBuffers(scratch, strips, first, strips_per_head, bins.width, bins.height, bins.C)
        _launch(kernel_args, buffers, blocks, bins, first * tiles, (first + group_heads) * tiles)
        sum_strips(strips, bins, blocks.rows, sums[first : first + group_heads])


def _launch(
    kernel_args: KernelArguments, buffers: MapBuffers | None, blocks: Blocks, bins: Bins | None, first: int, last: int
) -> None:
    """Launch the row tiles first … last."""
    layout = {"BINS": "", "BIN_UNIT": 0, "BIN_ROWS": 0} if bins is None else bin_layout(bins, blocks.rows, blocks.keys)
    count = last - first if buffers is None else min(last - first, len(buffers.scratch))
    out = kernel_args.arguments[0].out
    launch(
        forward_kernel,
        count,
        blocks,
        out,
        *kernel_args.arguments,
        buffers,
        first,
        last,
        **kernel_args.constants,
        **layout,
    )
