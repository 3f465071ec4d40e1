"""Attention in one pass with warp specialisation: a producer loads tiles, consumers compute with them.

Each consumer owns some queries and processes keys from the last to the first. While the tensor cores multiply weights
with values, it computes the softmax of the next tile, relative to the running maximum: `softmax_tile` computes what the
next product waits for, `accumulate` everything else. It adds a tile to its sums one tile later, since nothing else
waits for that. Consumers and producer wait for each other, but consumers never for one another, so that one multiplies
while the other computes a softmax.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from regard.kernels.triton.hopper.bins import (
    bin_indices,
    split_at_edges,
    store_bin,
    store_bins,
    store_finished_bins,
    sum_bin_rows,
)
from regard.kernels.triton.hopper.tiles import (
    as_column,
    barriers_for,
    copy_in,
    group_maxima,
    head_and_tile,
    key_tiles,
    load_stage,
    log2,
    nth_largest,
    sum_by_lane,
    sync,
    tile_at,
    wait_stage,
    wave_count,
)


@gluon.jit
def softmax_tile(
    args,
    buffers,
    s,
    m,
    group_max,
    edge,
    row,
    start,
    MASKED: gl.constexpr,
    CAUSAL: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
):
    """p = 2^(s − m), the new maximum, that of each group of keys, the edge below the tile, the terms for `accumulate`.

    row, start  the first query and the first key of the tile
    edge        see `split_at_edges`; only for bins that are not aligned to tiles
    """
    scores: gl.constexpr = s.type.layout
    if MASKED:
        columns = start + gl.arange(0, s.shape[1], gl.SliceLayout(0, scores))
        visible = (columns < args.S)[None, :]
        if CAUSAL:
            rows = row + gl.arange(0, s.shape[0], gl.SliceLayout(1, scores))
            visible = visible & (columns[None, :] <= rows[:, None] + args.edge)
        s = gl.where(visible, s, float("-inf"))
    maxima = group_maxima(s)  # not of all keys at once: each maximum waits for the one before
    if TOP > 0:
        group_max = gl.maximum(group_max, maxima)
    new_max = gl.maximum(m, gl.convert_layout(gl.max(maxima, 1), m.type.layout) * args.scale)
    shift = new_max
    if MASKED:
        shift = gl.where(new_max == float("-inf"), 0.0, new_max)  # -inf - -inf would be NaN
    x = s * args.scale - shift[:, None]
    p = gl.exp2(x)
    if BINS == "uneven":
        parts, below, edge = split_at_edges(p, edge, buffers.bin_width, start, BIN_UNIT)
    else:
        parts = sum_by_lane(p, s.shape[1] // BIN_UNIT if BINS == "narrow" else 1)
        below = parts
    score_sum = parts
    if ENTROPY:
        if MASKED:
            x = gl.where(x == float("-inf"), 0.0, x)
        score_sum = sum_by_lane(p * x, 1)
    max_change = m - shift
    return p, new_max, group_max, edge, (shift, max_change, gl.exp2(max_change), parts, below, score_sum)


@gluon.jit
def accumulate(
    buffers,
    totals,
    tile_terms,
    scratch,
    start,
    ENTROPY: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
    SCATTER: gl.constexpr,
):
    """Σ p, Σ p (s − m) and Σ p of the current bin, with a tile added; complete bins are stored.

    Keys come from the last to the first. BINS and BIN_UNIT are those of `pooling`.
    tile_terms  the shift of the tile's scores, its change, and the factor for earlier sums; Σ p of each part, for
                unaligned bins above and below the edge; Σ p (s − m)
    """
    shift, max_change, rescale, parts, below, tile_score_sum = tile_terms
    total, score_sum, bin_sum, bin = totals
    rescale = as_column(rescale, total)
    lane_sums = gl.convert_layout(gl.sum(parts, 1), total.type.layout)
    if BINS == "narrow":
        store_bins(buffers, scratch, parts, shift, start // BIN_UNIT, bin_indices(parts), True, SCATTER)
    if BINS == "uneven":
        lane_sums += gl.convert_layout(gl.sum(below, 1), total.type.layout)
        bin_sum, bin = store_finished_bins(
            buffers, scratch, parts, below, shift, bin_sum * rescale, bin, start, BIN_UNIT, True, SCATTER
        )
    if BINS == "wide":
        bin_sum = bin_sum * rescale + lane_sums
        if start == bin * buffers.bin_width:
            store_bin(scratch, gl.sum(bin_sum, 1), shift, bin, True)
            bin_sum = gl.zeros_like(bin_sum)
            bin -= 1
    if ENTROPY:
        finite_change = as_column(gl.where(max_change == float("-inf"), 0.0, max_change), total)
        score_sum = rescale * (score_sum + total * finite_change) + gl.convert_layout(
            gl.sum(tile_score_sum, 1), total.type.layout
        )
    return total * rescale + lane_sums, score_sum, bin_sum, bin


@gluon.jit
def forward_kernel(
    args,
    buffers,
    q,
    k,
    v,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
    ACCUMULATE: gl.constexpr,
    SOFTMAX_FIRST: gl.constexpr,
    SCATTER: gl.constexpr,
    CAUSAL: gl.constexpr,
    LSE: gl.constexpr,
    MAXIMUM: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
    PIECES: gl.constexpr,
    query_layout: gl.constexpr,
    key_layout: gl.constexpr,
):
    """q, k, v are descriptors of tiles. BINS, BIN_UNIT: see `pooling`; PIECES: see `sum_bin_rows`."""
    ROWS: gl.constexpr = q.block_shape[2]
    KEYS: gl.constexpr = k.block_shape[2]
    E: gl.constexpr = q.block_shape[3]
    queries = gl.allocate_shared_memory(q.dtype, [CONSUMERS, ROWS, E], query_layout)
    keys = gl.allocate_shared_memory(k.dtype, [STAGES, KEYS, E], key_layout)
    values = gl.allocate_shared_memory(v.dtype, [STAGES, KEYS, E], key_layout)
    q_full, q_empty = barriers_for(1, CONSUMERS)
    k_full, k_empty = barriers_for(STAGES, CONSUMERS)
    v_full, v_empty = barriers_for(STAGES, CONSUMERS)
    barriers = (q_full, q_empty, k_full, k_empty, v_full, v_empty)
    # fmt: off
    if CONSUMERS == 2:
        gl.warp_specialize([
            (_consume, (args, buffers, queries, keys, values, barriers, 0, 2, STAGES,
                        ACCUMULATE, SOFTMAX_FIRST, SCATTER, CAUSAL, LSE, MAXIMUM, ENTROPY, TOP, BINS, BIN_UNIT,
                        PIECES)),
            (_consume, (args, buffers, queries, keys, values, barriers, 1, 2, STAGES,
                        ACCUMULATE, SOFTMAX_FIRST, SCATTER, CAUSAL, LSE, MAXIMUM, ENTROPY, TOP, BINS, BIN_UNIT,
                        PIECES)),
            (_produce, (args, q, k, v, queries, keys, values, barriers, CAUSAL, CONSUMERS, STAGES)),
        ], [4, 1], [REGISTERS, 24])
    else:
        gl.warp_specialize([
            (_consume, (args, buffers, queries, keys, values, barriers, 0, 3, STAGES,
                        ACCUMULATE, SOFTMAX_FIRST, SCATTER, CAUSAL, LSE, MAXIMUM, ENTROPY, TOP, BINS, BIN_UNIT,
                        PIECES)),
            (_consume, (args, buffers, queries, keys, values, barriers, 1, 3, STAGES,
                        ACCUMULATE, SOFTMAX_FIRST, SCATTER, CAUSAL, LSE, MAXIMUM, ENTROPY, TOP, BINS, BIN_UNIT,
                        PIECES)),
            (_consume, (args, buffers, queries, keys, values, barriers, 2, 3, STAGES,
                        ACCUMULATE, SOFTMAX_FIRST, SCATTER, CAUSAL, LSE, MAXIMUM, ENTROPY, TOP, BINS, BIN_UNIT,
                        PIECES)),
            (_produce, (args, q, k, v, queries, keys, values, barriers, CAUSAL, CONSUMERS, STAGES)),
        ], [4, 4, 1], [REGISTERS, REGISTERS, 24])
    # fmt: on


@gluon.jit
def _produce(
    args,
    q,
    k,
    v,
    queries,
    keys,
    values,
    barriers,
    CAUSAL: gl.constexpr,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
):
    """Load the queries, then keys and values in the order in which consumers use them: values one tile later."""
    q_full, q_empty, k_full, k_empty, v_full, v_empty = barriers
    ROWS: gl.constexpr = q.block_shape[2]
    KEYS: gl.constexpr = k.block_shape[2]
    BYTES: gl.constexpr = CONSUMERS * q.block_type.nbytes
    n_loaded = 0
    waves, all_tiles = wave_count(args, args.T, CONSUMERS * ROWS)
    for wave in range(waves):
        at = tile_at(wave, CAUSAL)
        if at < all_tiles:
            head, tile = head_and_tile(args, at, args.T, CONSUMERS * ROWS, CAUSAL, False)
            tiles, _ = key_tiles(args, tile, CONSUMERS * ROWS, KEYS, CAUSAL)
            sample, h = head // args.H, head % args.H
            g = h // args.group_size
            mbarrier.wait(q_empty.index(0), (wave & 1) ^ 1)
            mbarrier.expect(q_full.index(0), BYTES)
            for i in gl.static_range(CONSUMERS):
                copy_in(q, [sample, h, (tile * CONSUMERS + i) * ROWS, 0], q_full.index(0), queries.index(i))
            load_stage(k, keys, k_full, k_empty, n_loaded, sample, g, (tiles - 1) * KEYS, STAGES)
            for t in range(1, tiles):
                load_stage(k, keys, k_full, k_empty, n_loaded + t, sample, g, (tiles - 1 - t) * KEYS, STAGES)
                load_stage(v, values, v_full, v_empty, n_loaded + t - 1, sample, g, (tiles - t) * KEYS, STAGES)
            load_stage(v, values, v_full, v_empty, n_loaded + tiles - 1, sample, g, 0, STAGES)
            n_loaded += tiles


@gluon.jit
def _consume(
    args,
    buffers,
    queries,
    keys,
    values,
    barriers,
    CONSUMER: gl.constexpr,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    ACCUMULATE: gl.constexpr,
    SOFTMAX_FIRST: gl.constexpr,
    SCATTER: gl.constexpr,
    CAUSAL: gl.constexpr,
    LSE: gl.constexpr,
    MAXIMUM: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
    PIECES: gl.constexpr,
):
    """Process the queries of one consumer, tile by tile: store the results, and the map's part of them in strips."""
    q_full, q_empty, _, _, _, _ = barriers
    ROWS: gl.constexpr = queries.shape[1]
    KEYS: gl.constexpr = keys.shape[1]
    E: gl.constexpr = keys.shape[2]
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, KEYS, 16])
    output: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, E, 16])
    scratch = buffers.scratch + (gl.program_id(0) * CONSUMERS + CONSUMER).to(gl.int64) * (buffers.bins * ROWS)
    zeros = gl.zeros((ROWS, KEYS), gl.float32, scores)
    no_max = gl.full((ROWS,), float("-inf"), gl.float32, gl.SliceLayout(1, scores))
    n_used = 0
    waves, all_tiles = wave_count(args, args.T, CONSUMERS * ROWS)
    for wave in range(waves):
        at = tile_at(wave, CAUSAL)
        if at < all_tiles:
            head, tile = head_and_tile(args, at, args.T, CONSUMERS * ROWS, CAUSAL, False)
            tiles, n_masked = key_tiles(args, tile, CONSUMERS * ROWS, KEYS, CAUSAL)
            row = (tile * CONSUMERS + CONSUMER) * ROWS
            lanes = gl.zeros_like(gl.sum(sum_by_lane(zeros, 1), 1))
            bin = (gl.minimum(tiles * KEYS, args.S) - 1) // buffers.bin_width  # the bin of the last key
            totals = (lanes, lanes, lanes, bin)
            group_max = group_maxima(zeros) + float("-inf")
            state = (gl.zeros((ROWS, E), gl.float32, output), no_max, group_max, bin * buffers.bin_width)
            mbarrier.wait(q_full.index(0), wave & 1)
            for part in gl.static_range(2):
                begin, end = n_masked, tiles
                if part == 0:
                    begin, end = 0, n_masked
                if begin < end:
                    state, totals = _process_tiles(
                        args, buffers, state, totals, scratch, queries.index(CONSUMER), keys, values, barriers, row,
                        begin, end, tiles, n_used, part == 0, STAGES, ACCUMULATE, SOFTMAX_FIRST, SCATTER, CAUSAL,
                        ENTROPY, TOP, BINS, BIN_UNIT,
                    )  # fmt: skip
            mbarrier.arrive(q_empty.index(0))
            n_used += tiles
            lse = _store_results(args, state, totals, head, row, LSE, MAXIMUM, ENTROPY, TOP)
            if BINS != "":
                sync()  # other threads load what this one stored
                sum_bin_rows(buffers, scratch, head - args.first, row, lse, tiles * KEYS, args.T, True, PIECES)
                sync()  # before the scratch is overwritten


@gluon.jit
def _process_tiles(
    args, buffers, state, totals, scratch, own, keys, values, barriers, row, begin, end, tiles, n_used,
    MASKED: gl.constexpr, STAGES: gl.constexpr, ACCUMULATE: gl.constexpr, SOFTMAX_FIRST: gl.constexpr,
    SCATTER: gl.constexpr, CAUSAL: gl.constexpr,
    ENTROPY: gl.constexpr, TOP: gl.constexpr, BINS: gl.constexpr, BIN_UNIT: gl.constexpr,
):  # fmt: skip
    """Process the tiles from `begin` to `end`, counted from the last, at least one; returns new state and sums."""
    _, _, k_full, k_empty, v_full, v_empty = barriers
    KEYS: gl.constexpr = keys.shape[1]
    acc, m, group_max, edge = state
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, KEYS, 16])
    output: gl.constexpr = acc.type.layout
    left_layout: gl.constexpr = gl.DotOperandLayout(0, output, 2)
    ROWS: gl.constexpr = own.shape[0]
    zeros = gl.zeros((ROWS, KEYS), gl.float32, scores)
    start = (tiles - 1 - begin) * KEYS
    i = wait_stage(k_full, n_used + begin, STAGES)
    s = warpgroup_mma(own, keys.index(i).permute((1, 0)), zeros, use_acc=False, is_async=True)
    s = warpgroup_mma_wait(0, deps=(s,))
    mbarrier.arrive(k_empty.index(i))
    p, m, group_max, edge, tile_terms = softmax_tile(
        args, buffers, s, m, group_max, edge, row, start, MASKED, CAUSAL, ENTROPY, TOP, BINS, BIN_UNIT
    )
    left = gl.convert_layout(p.to(values.dtype), left_layout)
    acc = acc * gl.convert_layout(tile_terms[2], gl.SliceLayout(1, output))[:, None]
    for t in range(begin + 1, end):
        start = (tiles - 1 - t) * KEYS
        i = wait_stage(k_full, n_used + t, STAGES)
        s = warpgroup_mma(own, keys.index(i).permute((1, 0)), zeros, use_acc=False, is_async=True)
        j = wait_stage(v_full, n_used + t - 1, STAGES)
        product = warpgroup_mma(left, values.index(j), acc, is_async=True)
        if ACCUMULATE == "waiting":
            totals = accumulate(buffers, totals, tile_terms, scratch, start + KEYS, ENTROPY, BINS, BIN_UNIT, SCATTER)
        s = warpgroup_mma_wait(1, deps=(s,))
        mbarrier.arrive(k_empty.index(i))
        if ACCUMULATE == "before":
            totals = accumulate(buffers, totals, tile_terms, scratch, start + KEYS, ENTROPY, BINS, BIN_UNIT, SCATTER)
        p, m, group_max, edge, tile_terms = softmax_tile(
            args, buffers, s, m, group_max, edge, row, start, MASKED, CAUSAL, ENTROPY, TOP, BINS, BIN_UNIT
        )
        if SOFTMAX_FIRST:
            wait_stage(v_full, n_used + t - 1, STAGES)  # already complete: instructions before a branch stay before it
        acc = warpgroup_mma_wait(0, deps=(product,))
        mbarrier.arrive(v_empty.index(j))
        left = gl.convert_layout(p.to(values.dtype), left_layout)
        acc = acc * gl.convert_layout(tile_terms[2], gl.SliceLayout(1, output))[:, None]
    j = wait_stage(v_full, n_used + end - 1, STAGES)
    product = warpgroup_mma(left, values.index(j), acc, is_async=True)
    totals = accumulate(buffers, totals, tile_terms, scratch, (tiles - end) * KEYS, ENTROPY, BINS, BIN_UNIT, SCATTER)
    acc = warpgroup_mma_wait(0, deps=(product,))
    mbarrier.arrive(v_empty.index(j))
    return (acc, m, group_max, edge), totals


@gluon.jit
def _store_results(
    args,
    state,
    totals,
    head,
    row,
    LSE: gl.constexpr,
    MAXIMUM: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
):
    """Store the results of these queries; returns their LSE in base 2."""
    acc, m, group_max, _ = state
    total, score_sum, _, _ = totals
    total = gl.convert_layout(gl.sum(total, 1), m.type.layout)
    score_sum = gl.convert_layout(gl.sum(score_sum, 1), m.type.layout)
    output: gl.constexpr = acc.type.layout
    rows_layout: gl.constexpr = total.type.layout
    divisor = gl.where(total == 0.0, 1.0, total)  # fully masked queries get zeros
    lse = m + log2(total)
    rows = row + gl.arange(0, acc.shape[0], gl.SliceLayout(1, output))
    columns = gl.arange(0, acc.shape[1], gl.SliceLayout(0, output))
    here = head.to(gl.int64) * args.T
    out = acc / gl.convert_layout(divisor, gl.SliceLayout(1, output))[:, None]
    gl.store(
        args.out + (here + rows)[:, None] * acc.shape[1] + columns[None, :],
        out.to(args.out.dtype.element_ty),
        mask=(rows < args.T)[:, None],
    )
    rows = row + gl.arange(0, acc.shape[0], rows_layout)
    if LSE:
        gl.store(args.lse + here + rows, lse * 0.6931471805599453, mask=rows < args.T)
    if MAXIMUM:
        gl.store(args.maximum + here + rows, m * 0.6931471805599453, mask=rows < args.T)
    if TOP > 0:
        gl.store(
            args.threshold + here + rows,
            gl.convert_layout(nth_largest(group_max, TOP), rows_layout),
            mask=rows < args.T,
        )
    if ENTROPY:
        entropy = (log2(divisor) - score_sum / divisor) * 0.6931471805599453
        gl.store(args.entropy + here + rows, gl.where(entropy < 0.0, 0.0, entropy), mask=rows < args.T)
    return lse
