"""Hopper kernel for the map, received attention or top keys, from q, k and the LSE of an output already computed.

WORK selects the statistic:
"map"         sums of weights over bins; consumers own queries
"received"    sums of weights over all queries; consumers own keys
"thresholds"  a score that the top keys of each query reach; consumers own queries
"candidates"  the keys of each query that reach its threshold; consumers own queries

There is no maximum, no rescaling, and there are no values, so that a consumer can hold two tiles: while the tensor
cores multiply one, it reduces the other. Consumers that own queries process keys from the last to the first; consumers
that own keys process queries from the first that attends to them to the last: partly masked tiles come first.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from regard.kernels.triton.hopper.second_pass_tiles import bounds_for, initial_state, reduce_tile, store_results
from regard.kernels.triton.hopper.tiles import (
    barriers_for,
    copy_in,
    head_and_tile,
    key_tiles,
    load_stage,
    query_tiles,
    tile_at,
    wait_stage,
    wave_count,
)


@gluon.jit
def second_pass_kernel(
    args,
    buffers,
    own,
    streamed,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
    PIECES: gl.constexpr,
    TOP: gl.constexpr,
    own_layout: gl.constexpr,
    streamed_layout: gl.constexpr,
):
    """own, streamed: descriptors of the tiles that stay in shared memory and of those that are streamed; others as in
    `forward_kernel`.
    """
    ROWS: gl.constexpr = own.block_shape[2]
    STREAMED: gl.constexpr = streamed.block_shape[2]
    E: gl.constexpr = own.block_shape[3]
    own_tiles = gl.allocate_shared_memory(own.dtype, [CONSUMERS, ROWS, E], own_layout)
    stages = gl.allocate_shared_memory(streamed.dtype, [STAGES, STREAMED, E], streamed_layout)
    own_full, own_empty = barriers_for(1, CONSUMERS)
    full, empty = barriers_for(STAGES, CONSUMERS)
    barriers = (own_full, own_empty, full, empty)
    gl.static_assert(CONSUMERS == 3)
    gl.warp_specialize(
        [
            (
                _consume,
                (args, buffers, own_tiles, stages, barriers, 0, 3, STAGES, WORK, CAUSAL, BINS, BIN_UNIT, PIECES, TOP),
            ),
            (
                _consume,
                (args, buffers, own_tiles, stages, barriers, 1, 3, STAGES, WORK, CAUSAL, BINS, BIN_UNIT, PIECES, TOP),
            ),
            (
                _consume,
                (args, buffers, own_tiles, stages, barriers, 2, 3, STAGES, WORK, CAUSAL, BINS, BIN_UNIT, PIECES, TOP),
            ),
            (_produce, (args, own, streamed, own_tiles, stages, barriers, CONSUMERS, STAGES, WORK, CAUSAL)),
        ],
        [4, 4, 1],
        [REGISTERS, REGISTERS, 24],
    )


@gluon.jit
def _tile_loop(args, wave, ROWS: gl.constexpr, STREAMED: gl.constexpr, WORK: gl.constexpr, CAUSAL: gl.constexpr):
    """Whether there is a tile in this wave, its head and index; where the loop begins, its step, the number of tiles,
    and how many of them are partly masked.
    """
    BY_KEYS: gl.constexpr = WORK == "received"
    length = args.S if BY_KEYS else args.T
    at = tile_at(wave, CAUSAL)
    head, tile = head_and_tile(args, at, length, ROWS, CAUSAL, BY_KEYS)
    if BY_KEYS:
        first, tiles, n_masked = query_tiles(args, tile, ROWS, STREAMED, CAUSAL)
        step = STREAMED
    else:
        tiles, n_masked = key_tiles(args, tile, ROWS, STREAMED, CAUSAL)
        first, step = (tiles - 1) * STREAMED, -STREAMED
    return at < args.heads * gl.cdiv(length, ROWS), head, tile, first, step, tiles, n_masked


@gluon.jit
def _produce(
    args,
    own,
    streamed,
    own_tiles,
    stages,
    barriers,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
):
    """Load the own tiles, then the streamed ones."""
    own_full, own_empty, full, empty = barriers
    ROWS: gl.constexpr = own.block_shape[2]
    STREAMED: gl.constexpr = streamed.block_shape[2]
    BYTES: gl.constexpr = CONSUMERS * own.block_type.nbytes
    n_loaded = 0
    waves, _ = wave_count(args, args.S if WORK == "received" else args.T, CONSUMERS * ROWS)
    for wave in range(waves):
        has_tile, head, tile, first, step, tiles, _ = _tile_loop(args, wave, CONSUMERS * ROWS, STREAMED, WORK, CAUSAL)
        if has_tile:
            sample, h = head // args.H, head % args.H
            g = h // args.group_size
            if WORK == "received":
                h, g = g, h
            mbarrier.wait(own_empty.index(0), (wave & 1) ^ 1)
            mbarrier.expect(own_full.index(0), BYTES)
            for i in gl.static_range(CONSUMERS):
                copy_in(own, [sample, h, (tile * CONSUMERS + i) * ROWS, 0], own_full.index(0), own_tiles.index(i))
            for t in range(tiles):
                load_stage(streamed, stages, full, empty, n_loaded + t, sample, g, first + t * step, STAGES)
            n_loaded += tiles


@gluon.jit
def _consume(
    args,
    buffers,
    own_tiles,
    stages,
    barriers,
    CONSUMER: gl.constexpr,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
    PIECES: gl.constexpr,
    TOP: gl.constexpr,
):
    """Compute the statistic for the tiles of one consumer, one after another."""
    own_full, own_empty, full, empty = barriers
    ROWS: gl.constexpr = own_tiles.shape[1]
    STREAMED: gl.constexpr = stages.shape[1]
    scratch = buffers.scratch + (gl.program_id(0) * CONSUMERS + CONSUMER).to(gl.int64) * (buffers.bins * ROWS)
    own = own_tiles.index(CONSUMER)
    n_used = 0
    waves, _ = wave_count(args, args.S if WORK == "received" else args.T, CONSUMERS * ROWS)
    for wave in range(waves):
        has_tile, head, tile, first, step, tiles, n_masked = _tile_loop(
            args, wave, CONSUMERS * ROWS, STREAMED, WORK, CAUSAL
        )
        if has_tile:
            place = (head, (tile * CONSUMERS + CONSUMER) * ROWS)
            last = gl.minimum(first + STREAMED, args.S) - 1
            state = initial_state(buffers, last, ROWS, STREAMED, WORK)
            mbarrier.wait(own_full.index(0), wave & 1)
            for t in range(n_masked):
                bound = bounds_for(args, place, first + t * step, ROWS, STREAMED, WORK)
                s, i = _multiply(own, stages, full, n_used + t, STAGES)
                s = warpgroup_mma_wait(0, deps=(s,))
                mbarrier.arrive(empty.index(i))
                state = reduce_tile(
                    args, buffers, state, s, bound, scratch, place, first + t * step, True, WORK, CAUSAL, BINS, BIN_UNIT
                )
            if n_masked < tiles:
                state = _reduce_visible_tiles(
                    args, buffers, state, scratch, place, own, stages, full, empty, n_used, n_masked, tiles, first,
                    step, STAGES, WORK, CAUSAL, BINS, BIN_UNIT,
                )  # fmt: skip
            mbarrier.arrive(own_empty.index(0))
            n_used += tiles
            store_results(args, buffers, state, scratch, place, tiles * STREAMED, WORK, PIECES, TOP)


@gluon.jit
def _reduce_visible_tiles(
    args, buffers, state, scratch, place, own, stages, full, empty, n_used, begin, end, first, step,
    STAGES: gl.constexpr, WORK: gl.constexpr, CAUSAL: gl.constexpr,
    BINS: gl.constexpr, BIN_UNIT: gl.constexpr,
):  # fmt: skip
    """Fully visible tiles: each is multiplied while the one before is reduced; two per iteration, to avoid copies."""
    ROWS: gl.constexpr = own.shape[0]
    STREAMED: gl.constexpr = stages.shape[1]
    bound = bounds_for(args, place, first + begin * step, ROWS, STREAMED, WORK)
    s, i = _multiply(own, stages, full, n_used + begin, STAGES)
    s = warpgroup_mma_wait(0, deps=(s,))
    mbarrier.arrive(empty.index(i))
    # fmt: off
    for pair in range((end - begin - 1) // 2):
        t = begin + 2 * pair
        state, other_scores, bound = _reduce_and_multiply(
            args, buffers, state, s, bound, scratch, place, own, stages, full, empty, n_used, t, first, step,
            STAGES, WORK, CAUSAL, BINS, BIN_UNIT)
        state, s, bound = _reduce_and_multiply(
            args, buffers, state, other_scores, bound, scratch, place, own, stages, full, empty, n_used, t + 1,
            first, step, STAGES, WORK, CAUSAL, BINS, BIN_UNIT)
    if (end - begin) % 2 == 0:
        state, s, bound = _reduce_and_multiply(
            args, buffers, state, s, bound, scratch, place, own, stages, full, empty, n_used, end - 2, first, step,
            STAGES, WORK, CAUSAL, BINS, BIN_UNIT)
    # fmt: on
    start = first + (end - 1) * step
    return reduce_tile(args, buffers, state, s, bound, scratch, place, start, False, WORK, CAUSAL, BINS, BIN_UNIT)


@gluon.jit
def _reduce_and_multiply(
    args, buffers, state, s, bound, scratch, place, own, stages, full, empty, n_used, t, first, step,
    STAGES: gl.constexpr, WORK: gl.constexpr, CAUSAL: gl.constexpr,
    BINS: gl.constexpr, BIN_UNIT: gl.constexpr,
):  # fmt: skip
    """Reduce the t-th tile, while the next one's scores are multiplied and its bounds are loaded."""
    ROWS: gl.constexpr = own.shape[0]
    STREAMED: gl.constexpr = stages.shape[1]
    start = first + t * step
    next_scores, i = _multiply(own, stages, full, n_used + t + 1, STAGES)
    state = reduce_tile(args, buffers, state, s, bound, scratch, place, start, False, WORK, CAUSAL, BINS, BIN_UNIT)
    if WORK == "received":
        bound = bounds_for(args, place, start + step, ROWS, STREAMED, WORK)
    next_scores = warpgroup_mma_wait(0, deps=(next_scores,))
    mbarrier.arrive(empty.index(i))
    return state, next_scores, bound


@gluon.jit
def _multiply(own, stages, full, n, STAGES: gl.constexpr):
    """Start the product for the scores of the n-th tile; returns it and its stage."""
    ROWS: gl.constexpr = own.shape[0]
    STREAMED: gl.constexpr = stages.shape[1]
    zeros = gl.zeros((ROWS, STREAMED), gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STREAMED, 16]))
    i = wait_stage(full, n, STAGES)
    return warpgroup_mma(own, stages.index(i).permute((1, 0)), zeros, use_acc=False, is_async=True), i
