"""Sums of the weights over bins, columns and distances, from q, k and the LSE; and the means of a map.

The output of the kernel that computed the log-sum-exp (LSE) stays unchanged. A program owns a tile of keys of one query
head and loops over the queries that attend to it. The sums over a bin's queries are stored when the bin ends, one for
each bin of keys that the tile touches, and a second, small kernel adds them up. No number is written by two programs,
so the result is bitwise reproducible.

For the means a program owns a bin of queries of one head. It divides the row of the map by the number of its queries
that attend to a key, and sums the weights of the first key. For short texts a launch costs more than its work.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.axes import bin_count, bin_width, distance_count
from regard.kernels.division import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.second_pass import SecondPassArguments, kernel_arguments, load_shift
from regard.kernels.triton.support import Blocks, MaskBands, bins_per_tile, blocks_for, power_of_two
from regard.kernels.triton.tiles import (
    FP_FUSION,
    Limits,
    StridedTensor,
    base_of,
    capped,
    launch,
    load_rows,
    loop_range,
    mask_tile,
    on_device,
    score_tile,
    visible_tiles,
)

ROWS_PER_PROGRAM = tl.constexpr(8)
"""Rows of a map that one program adds up."""


class KeySums(NamedTuple):
    """Sums of weights, B H first: over the bins of a map (R C), over all queries (S), by distance (D)."""

    map: Tensor | None
    received: Tensor | None
    distance: Tensor | None


class MapPieces(NamedTuple):
    """Partial sums of the map: B H R, tiles of keys, and the bins of keys that each tile touches."""

    base: Any
    R: int
    bin_height: int
    bin_width: int


@triton.jit
def _key_sums_kernel(
    args,
    q,
    k,
    limits,
    received,
    pieces,
    distance_parts,
    offsets,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    KEYS: tl.constexpr,
    QUERIES: tl.constexpr,
    BINS: tl.constexpr,
    SMALL_BINS: tl.constexpr,
    DISTANCES: tl.constexpr,
    FIRST_PART: tl.constexpr,
    LAST_PART: tl.constexpr,
    TMA: tl.constexpr,
):
    """BINS: bins of keys that a tile may touch; SMALL_BINS: a tile of queries may touch several bins.

    offsets   the key position of query 0 in each sample; None for S − T
    """
    T, S = args.T, args.S
    tiles = tl.cdiv(S, KEYS)
    tile, head = tl.program_id(0) % tiles, tl.cast(tl.program_id(0) // tiles, tl.int64)
    sample, h = head // args.H, head % args.H
    keys = tile * KEYS + tl.arange(0, KEYS)
    own = load_rows(k, sample, h // args.group_size, tile * KEYS, S, KEYS, E, BLOCK_E, False, TMA)
    lse = args.lse + head * T
    if pieces is not None:
        piece_base = pieces.base + (head * pieces.R * tiles + tile) * BINS
        bins = tl.where(keys < S, keys // pieces.bin_width - tile * KEYS // pieces.bin_width, -1)
    edges = visible_tiles(limits, sample, tile, S, T, KEYS, QUERIES)
    bin_sum, total = tl.zeros((KEYS,), tl.float32), tl.zeros((KEYS,), tl.float32)
    distance_sums = tl.zeros((DISTANCES,), tl.float32)
    offset = S - T
    if offsets is not None:
        offset = tl.load(offsets + sample).to(tl.int32)
    for part in tl.static_range(FIRST_PART, LAST_PART + 1):
        begin, end = loop_range(edges, part)
        for start in range(begin, end, QUERIES):
            rows = start + tl.arange(0, QUERIES)
            queries = load_rows(q, sample, h, start, T, QUERIES, E, BLOCK_E, part == 1, TMA)
            # Keys × queries: a sum over queries stays in one row.
            scores = score_tile(own, tl.trans(queries), args.scale, args.cap, args.cap is not None)
            if part != 1:
                visible = mask_tile(limits, sample, keys[:, None], rows[None, :], S, T)
                scores = tl.where(visible, scores, float("-inf"))
            weights = tl.exp2(scores - load_shift(lse, rows, T)[None, :])
            if distance_parts is not None:
                distance_sums = _add_distances(distance_sums, weights, rows + offset, keys, S, DISTANCES)
            if pieces is None:
                total += tl.sum(weights, 1)
            else:
                bin_sum, total = _add_to_bins(
                    pieces, piece_base, bin_sum, total, weights, rows, start, bins, tiles, QUERIES, BINS, SMALL_BINS
                )
    if pieces is not None:
        _store_bin(piece_base, bin_sum, bins, edges[3] // pieces.bin_height, pieces.R, tiles, BINS)
        total += bin_sum
    tl.store(received + head * S + keys, total, mask=keys < S)
    if distance_parts is not None:
        tl.store(distance_parts + (head * tiles + tile) * DISTANCES + tl.arange(0, DISTANCES), distance_sums)


@triton.jit
def _add_to_bins(
    pieces,
    piece_base,
    bin_sum,
    total,
    weights,
    rows,
    start,
    bins,
    tiles,
    QUERIES: tl.constexpr,
    BINS: tl.constexpr,
    SMALL_BINS: tl.constexpr,
):
    """Add a tile of weights; returns the sums of the current bin of queries and of all queries so far."""
    if SMALL_BINS:
        row_base = rows // pieces.bin_height
        for r in range(start // pieces.bin_height, (start + QUERIES) // pieces.bin_height):
            bin_sum += tl.sum(tl.where((row_base == r)[None, :], weights, 0.0), 1)
            _store_bin(piece_base, bin_sum, bins, r, pieces.R, tiles, BINS)
            total += bin_sum
            bin_sum = tl.zeros_like(bin_sum)
        bin_sum += tl.sum(tl.where((row_base == (start + QUERIES) // pieces.bin_height)[None, :], weights, 0.0), 1)
    else:
        bin_end = (start // pieces.bin_height + 1) * pieces.bin_height
        if bin_end > start + QUERIES:
            bin_sum += tl.sum(weights, 1)
        else:
            bin_sum += tl.sum(tl.where((rows < bin_end)[None, :], weights, 0.0), 1)
            _store_bin(piece_base, bin_sum, bins, start // pieces.bin_height, pieces.R, tiles, BINS)
            total += bin_sum
            bin_sum = tl.sum(tl.where((rows >= bin_end)[None, :], weights, 0.0), 1)
    return bin_sum, total


@triton.jit
def _store_bin(piece_base, bin_sum, bins, r, R, tiles, BINS: tl.constexpr):
    """Store the sums over the queries of bin `r`, by bins of keys, if there is such a bin."""
    if r < R:
        each = tl.arange(0, BINS)
        sums = tl.sum(tl.where(bins[:, None] == each[None, :], bin_sum[:, None], 0.0), 0)
        tl.store(piece_base + tl.cast(r, tl.int64) * tiles * BINS + each, sums)


@triton.jit
def _add_distances(distance_sums, weights, query_positions, keys, S, DISTANCES: tl.constexpr):
    """Add a tile of weights, keys × queries, to the sums at the distances 0, 1, 2–3, 4–7, …."""
    far = tl.abs(query_positions[None, :] - keys[:, None])
    weights = tl.where((keys < S)[:, None], weights, 0.0)
    nearest, furthest = tl.min(tl.min(far, 1), 0), tl.max(tl.max(far, 1), 0)
    for d in range(DISTANCES):
        near, far_end = (1 << d) >> 1, 1 << d
        if (nearest < far_end) & (furthest >= near):
            added = tl.sum(tl.sum(tl.where((far >= near) & (far < far_end), weights, 0.0), 1), 0)
            distance_sums += tl.where(tl.arange(0, DISTANCES) == d, added, 0.0)
    return distance_sums


@triton.jit
def _sum_pieces_kernel(
    pieces, pooled, rows, S, C, bin_width, max_tiles, KEYS: tl.constexpr, BINS: tl.constexpr, BLOCK_C: tl.constexpr
):
    """Rows of the map: for each bin of keys the sum of its pieces, from the first tile that touches it to the last."""
    row = tl.program_id(0) * ROWS_PER_PROGRAM + tl.arange(0, ROWS_PER_PROGRAM)[:, None]
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    row_base = pieces + tl.cast(row, tl.int64) * tl.cdiv(S, KEYS) * BINS
    last = (tl.minimum((c + 1) * bin_width, S) - 1) // KEYS
    total = tl.zeros((ROWS_PER_PROGRAM, BLOCK_C), tl.float32)
    for i in range(max_tiles):
        tile = c * bin_width // KEYS + i
        at = tile * BINS + c - tile * KEYS // bin_width
        total += tl.load(row_base + at, mask=(row < rows) & (c < C) & (tile <= last), other=0.0)
    tl.store(pooled + tl.cast(row, tl.int64) * C + c, total, mask=(row < rows) & (c < C))


@torch.no_grad()
def sum_over_queries(
    call: AttentionCall,
    lse: Tensor,
    bands: MaskBands,
    *,
    bins: Bins | None = None,
    received: bool = True,
    distance: bool = False,
    offsets: Tensor | None = None,
    blocks: Blocks | None = None,
) -> KeySums:
    """The requested sums over map bins, columns and distances; lse is B H T in nats, `bands` is the call's mask.

    The values are not used.

    offsets   B, the key position of query 0 in each sample, for distances; None for S − T
    """
    q, k = call.q, call.k
    (B, H, T, E), S = q.shape, k.shape[2]
    if blocks is None and not distance and q.numel() and k.numel() and hopper.is_available(q.device):
        from regard.kernels.triton.hopper import launch as hopper_launch

        if hopper_launch.supports(call, bands, bins):
            pooled = hopper_launch.map_of(call, bands, lse, bins) if bins else None
            return KeySums(pooled, hopper_launch.received_of(call, bands, lse) if received else None, None)
    blocks = blocks or blocks_for(q.dtype, E, S, T)  # here a program owns keys and streams queries
    keys, queries, tiles = blocks.rows, blocks.keys, triton.cdiv(S, blocks.rows)
    D = distance_count(T, S)
    distances = power_of_two(D, 2)
    columns = lse.new_zeros(B, H, S)
    distance_parts = lse.new_zeros(B, H, tiles, distances) if distance else None
    pieces, pooled, touched, small_bins = None, None, 1, False
    if bins is not None:
        queries = min(queries, max(16, 1 << (bins.height.bit_length() - 1)))  # then at most one bin ends in a tile
        touched, small_bins = bins_per_tile(keys, bins.width), bins.height < queries
        pieces = MapPieces(lse.new_zeros(B, H, bins.R, tiles, touched), bins.R, bins.height, bins.width)
        pooled = lse.new_zeros(B, H, bins.R, bins.C)
    if q.numel() and k.numel():
        args, limits = SecondPassArguments.of(call, lse), Limits.of(bands.swapped(), keys)
        inputs = kernel_arguments(args, q, k, limits, queries=queries, keys=keys, streamed=queries, length=T)
        constants = {"BINS": touched, "SMALL_BINS": small_bins, "DISTANCES": distances}
        arguments = (*inputs.arguments, columns, pieces, distance_parts, offsets if distance else None)
        launch(_key_sums_kernel, B * H * tiles, blocks, q, *arguments, **inputs.constants, **constants)
        if bins is not None and pieces is not None:
            max_tiles, block_c = (bins.width - 1) // keys + 2, min(128, power_of_two(bins.C))
            rows = B * H * bins.R
            with on_device(q):
                _sum_pieces_kernel[(triton.cdiv(rows, ROWS_PER_PROGRAM), triton.cdiv(bins.C, block_c))](
                    pieces.base,
                    pooled,
                    rows,
                    S,
                    bins.C,
                    bins.width,
                    max_tiles,
                    KEYS=keys,
                    BINS=touched,
                    BLOCK_C=block_c,
                    **FP_FUSION,
                )
    return KeySums(pooled, columns, None if distance_parts is None else distance_parts.sum(2)[..., :D])


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
            args,
            StridedTensor.of(q),
            StridedTensor.of(k),
            Limits.of(bands, rows),
            sums,
            parts,
            R,
            height,
            C,
            **constants,
            **FP_FUSION,
        )
    if parts is None:
        return None
    first, count = parts.sum(-1)
    return first.div_(count.clamp_(min=1))
