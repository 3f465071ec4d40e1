"""What can be told from q, k and the LSE alone, by a crew; whoever has computed the LSE, his output stays as it is.

WORK says what:
"map"         sums of weights over bins; consumers own queries
"received"    sums of weights over all queries; consumers own keys
"thresholds"  a score that the strongest keys of each query reach; consumers own queries
"survivors"   the keys of each query that reach its threshold; consumers own queries

There is no maximum, nothing to rescale, no values, so that a consumer has room for two tiles: while the tensor cores
multiply the one, it reads the other (`reading`). Where consumers own queries they walk from the last key to the first,
where they own keys from the first query that sees them to the last: tiles that not everybody sees come first.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from regard.kernels.triton.hopper.gluon_names import copy_in
from regard.kernels.triton.hopper.pipeline import barriers_for, bring, wait_for
from regard.kernels.triton.hopper.scheduler import keys_of, place_of, queries_of, tile_at, turns_of
from regard.kernels.triton.hopper.second_pass_tiles import begin_with, bound_of, conclude, read


@gluon.jit
def second_kernel(
    task,
    pool,
    own,
    passing,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
    PIECES: gl.constexpr,
    TOP: gl.constexpr,
    own_layout: gl.constexpr,
    passing_layout: gl.constexpr,
):
    """own, passing: descriptors of the tiles that stay and that pass by; else as `forward_kernel`."""
    ROWS: gl.constexpr = own.block_shape[2]
    PASSING: gl.constexpr = passing.block_shape[2]
    E: gl.constexpr = own.block_shape[3]
    stay = gl.allocate_shared_memory(own.dtype, [CONSUMERS, ROWS, E], own_layout)
    ring = gl.allocate_shared_memory(passing.dtype, [STAGES, PASSING, E], passing_layout)
    own_full, own_empty = barriers_for(1, CONSUMERS)
    full, empty = barriers_for(STAGES, CONSUMERS)
    barriers = (own_full, own_empty, full, empty)
    gl.static_assert(CONSUMERS == 3)
    gl.warp_specialize(
        [
            (_consume, (task, pool, stay, ring, barriers, 0, 3, STAGES, WORK, CAUSAL, BINS, SHARE, PIECES, TOP)),
            (_consume, (task, pool, stay, ring, barriers, 1, 3, STAGES, WORK, CAUSAL, BINS, SHARE, PIECES, TOP)),
            (_consume, (task, pool, stay, ring, barriers, 2, 3, STAGES, WORK, CAUSAL, BINS, SHARE, PIECES, TOP)),
            (_produce, (task, own, passing, stay, ring, barriers, CONSUMERS, STAGES, WORK, CAUSAL)),
        ],
        [4, 4, 1],
        [REGISTERS, REGISTERS, 24],
    )


@gluon.jit
def _walk_of(task, turn, ROWS: gl.constexpr, PASSING: gl.constexpr, WORK: gl.constexpr, CAUSAL: gl.constexpr):
    """Whether there is a tile at this turn, its head and its place; where the walk begins, how far a step goes, how
    many there are, and how many of them not everybody sees.
    """
    BY_KEYS: gl.constexpr = WORK == "received"
    length = task.S if BY_KEYS else task.T
    at = tile_at(turn, CAUSAL)
    head, tile = place_of(task, at, length, ROWS, CAUSAL, BY_KEYS)
    if BY_KEYS:
        first, tiles, partly = queries_of(task, tile, ROWS, PASSING, CAUSAL)
        step = PASSING
    else:
        tiles, partly = keys_of(task, tile, ROWS, PASSING, CAUSAL)
        first, step = (tiles - 1) * PASSING, -PASSING
    return at < task.heads * gl.cdiv(length, ROWS), head, tile, first, step, tiles, partly


@gluon.jit
def _produce(
    task,
    own,
    passing,
    stay,
    ring,
    barriers,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
):
    """Bring what stays, then what passes by."""
    own_full, own_empty, full, empty = barriers
    ROWS: gl.constexpr = own.block_shape[2]
    PASSING: gl.constexpr = passing.block_shape[2]
    BYTES: gl.constexpr = CONSUMERS * own.block_type.nbytes
    brought = 0
    turns, _ = turns_of(task, task.S if WORK == "received" else task.T, CONSUMERS * ROWS)
    for turn in range(turns):
        there, head, tile, first, step, tiles, _ = _walk_of(task, turn, CONSUMERS * ROWS, PASSING, WORK, CAUSAL)
        if there:
            sample, h = head // task.H, head % task.H
            g = h // task.served
            if WORK == "received":
                h, g = g, h
            mbarrier.wait(own_empty.index(0), (turn & 1) ^ 1)
            mbarrier.expect(own_full.index(0), BYTES)
            for i in gl.static_range(CONSUMERS):
                copy_in(own, [sample, h, (tile * CONSUMERS + i) * ROWS, 0], own_full.index(0), stay.index(i))
            for t in range(tiles):
                bring(passing, ring, full, empty, brought + t, sample, g, first + t * step, STAGES)
            brought += tiles


@gluon.jit
def _consume(
    task,
    pool,
    stay,
    ring,
    barriers,
    WHO: gl.constexpr,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
    PIECES: gl.constexpr,
    TOP: gl.constexpr,
):
    """What one consumer finds out about what it owns, tile by tile."""
    own_full, own_empty, full, empty = barriers
    ROWS: gl.constexpr = stay.shape[1]
    PASSING: gl.constexpr = ring.shape[1]
    scratch = pool.scratch + (gl.program_id(0) * CONSUMERS + WHO).to(gl.int64) * (pool.bins * ROWS)
    own = stay.index(WHO)
    used = 0
    turns, _ = turns_of(task, task.S if WORK == "received" else task.T, CONSUMERS * ROWS)
    for turn in range(turns):
        there, head, tile, first, step, tiles, partly = _walk_of(task, turn, CONSUMERS * ROWS, PASSING, WORK, CAUSAL)
        if there:
            place = (head, (tile * CONSUMERS + WHO) * ROWS)
            last = gl.minimum(first + PASSING, task.S) - 1
            found = begin_with(pool, last, ROWS, PASSING, WORK)
            mbarrier.wait(own_full.index(0), turn & 1)
            for t in range(partly):
                bound = bound_of(task, place, first + t * step, ROWS, PASSING, WORK)
                s, i = _multiply(own, ring, full, used + t, STAGES)
                s = warpgroup_mma_wait(0, deps=(s,))
                mbarrier.arrive(empty.index(i))
                found = read(
                    task, pool, found, s, bound, scratch, place, first + t * step, True, WORK, CAUSAL, BINS, SHARE
                )
            if partly < tiles:
                found = _read_the_rest(
                    task, pool, found, scratch, place, own, ring, full, empty, used, partly, tiles, first, step,
                    STAGES, WORK, CAUSAL, BINS, SHARE,
                )  # fmt: skip
            mbarrier.arrive(own_empty.index(0))
            used += tiles
            conclude(task, pool, found, scratch, place, tiles * PASSING, WORK, PIECES, TOP)


@gluon.jit
def _read_the_rest(
    task, pool, found, scratch, place, own, ring, full, empty, used, begin, end, first, step,
    STAGES: gl.constexpr, WORK: gl.constexpr, CAUSAL: gl.constexpr,
    BINS: gl.constexpr, SHARE: gl.constexpr,
):  # fmt: skip
    """Tiles that everybody sees, each multiplied while the one before is read: two at a time, that none be moved."""
    ROWS: gl.constexpr = own.shape[0]
    PASSING: gl.constexpr = ring.shape[1]
    bound = bound_of(task, place, first + begin * step, ROWS, PASSING, WORK)
    s, i = _multiply(own, ring, full, used + begin, STAGES)
    s = warpgroup_mma_wait(0, deps=(s,))
    mbarrier.arrive(empty.index(i))
    # fmt: off
    for pair in range((end - begin - 1) // 2):
        t = begin + 2 * pair
        found, other, bound = _read_and_multiply(
            task, pool, found, s, bound, scratch, place, own, ring, full, empty, used, t, first, step,
            STAGES, WORK, CAUSAL, BINS, SHARE)
        found, s, bound = _read_and_multiply(
            task, pool, found, other, bound, scratch, place, own, ring, full, empty, used, t + 1, first, step,
            STAGES, WORK, CAUSAL, BINS, SHARE)
    if (end - begin) % 2 == 0:
        found, s, bound = _read_and_multiply(
            task, pool, found, s, bound, scratch, place, own, ring, full, empty, used, end - 2, first, step,
            STAGES, WORK, CAUSAL, BINS, SHARE)
    # fmt: on
    start = first + (end - 1) * step
    return read(task, pool, found, s, bound, scratch, place, start, False, WORK, CAUSAL, BINS, SHARE)


@gluon.jit
def _read_and_multiply(
    task, pool, found, s, bound, scratch, place, own, ring, full, empty, used, t, first, step,
    STAGES: gl.constexpr, WORK: gl.constexpr, CAUSAL: gl.constexpr,
    BINS: gl.constexpr, SHARE: gl.constexpr,
):  # fmt: skip
    """Read the t-th tile; meanwhile the next one's scores are multiplied, and its bounds come."""
    ROWS: gl.constexpr = own.shape[0]
    PASSING: gl.constexpr = ring.shape[1]
    start = first + t * step
    following, i = _multiply(own, ring, full, used + t + 1, STAGES)
    found = read(task, pool, found, s, bound, scratch, place, start, False, WORK, CAUSAL, BINS, SHARE)
    if WORK == "received":
        bound = bound_of(task, place, start + step, ROWS, PASSING, WORK)
    following = warpgroup_mma_wait(0, deps=(following,))
    mbarrier.arrive(empty.index(i))
    return found, following, bound


@gluon.jit
def _multiply(own, ring, full, n, STAGES: gl.constexpr):
    """The scores of the n-th tile, under way, and its stage."""
    ROWS: gl.constexpr = own.shape[0]
    PASSING: gl.constexpr = ring.shape[1]
    nothing = gl.zeros((ROWS, PASSING), gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, PASSING, 16]))
    i = wait_for(full, n, STAGES)
    return warpgroup_mma(own, ring.index(i).permute((1, 0)), nothing, use_acc=False, is_async=True), i
