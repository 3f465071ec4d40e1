"""Attention in one pass over key tiles, with LSE, maximum, entropy and the map's row strips from the same pass.

A program owns a tile of queries and loops over the keys visible to it: first tiles at the left edge, where the mask is
evaluated, then fully visible tiles, then tiles at the right edge. Statistics that are not requested are compiled away.

Entropy is accumulated as Σ p (s − m), relative to the running maximum m as Σ p is: large scores cost no precision. For
the map see `pooling`. No number is written by two programs, so the result is bitwise reproducible.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from regard.kernels.triton.pooling import add_to_bins, store_last_bin, sum_bin_rows
from regard.kernels.triton.tiles import load_rows, loop_range, mask_tile, score_tile, visible_tiles


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
