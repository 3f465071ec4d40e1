"""What can be told from q, k and the LSE alone, by a crew: the map, its consumers owning queries; or what each key
received, its consumers owning keys. Whoever has computed the LSE, his output stays as it is.

A weight is 2^(score − LSE): no maximum, nothing to rescale, no values. Where consumers own queries they walk from the
last key to the first, where they own keys from the first query that sees them to the last: tiles that not everybody
sees come first.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from regard.kernels.triton.hopper.names import copy_in, sync
from regard.kernels.triton.hopper.stages import barriers_for, bring, wait_for
from regard.kernels.triton.hopper.turns import keys_of, place_of, queries_of, tile_at, turns_of
from regard.kernels.triton.hopper.weighing import add_to_bins, pool_rows


@gluon.jit
def second_kernel(
    task,
    pool,
    own,
    passing,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
    BY_KEYS: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
    PIECES: gl.constexpr,
    own_layout: gl.constexpr,
    passing_layout: gl.constexpr,
):
    """own, passing: descriptors of the tiles that stay and that pass by; else as `forward_kernel`, three consumers."""
    ROWS: gl.constexpr = own.block_shape[2]
    PASSING: gl.constexpr = passing.block_shape[2]
    E: gl.constexpr = own.block_shape[3]
    stay = gl.allocate_shared_memory(own.dtype, [3, ROWS, E], own_layout)
    ring = gl.allocate_shared_memory(passing.dtype, [STAGES, PASSING, E], passing_layout)
    own_full, own_empty = barriers_for(1, 3)
    full, empty = barriers_for(STAGES, 3)
    barriers = (own_full, own_empty, full, empty)
    gl.warp_specialize(
        [
            (_consume, (task, pool, stay, ring, barriers, 0, STAGES, BY_KEYS, CAUSAL, BINS, SHARE, PIECES)),
            (_consume, (task, pool, stay, ring, barriers, 1, STAGES, BY_KEYS, CAUSAL, BINS, SHARE, PIECES)),
            (_consume, (task, pool, stay, ring, barriers, 2, STAGES, BY_KEYS, CAUSAL, BINS, SHARE, PIECES)),
            (_produce, (task, own, passing, stay, ring, barriers, STAGES, BY_KEYS, CAUSAL)),
        ],
        [4, 4, 1],
        [REGISTERS, REGISTERS, 24],
    )


@gluon.jit
def _walk_of(task, tile, ROWS: gl.constexpr, PASSING: gl.constexpr, BY_KEYS: gl.constexpr, CAUSAL: gl.constexpr):
    """Where the walk begins, how far a step goes, how many there are, and how many of them not everybody sees."""
    if BY_KEYS:
        first, tiles, partly = queries_of(task, tile, ROWS, PASSING, CAUSAL)
        step = PASSING
    else:
        tiles, partly = keys_of(task, tile, ROWS, PASSING, CAUSAL)
        first, step = (tiles - 1) * PASSING, -PASSING
    return first, step, tiles, partly


@gluon.jit
def _produce(
    task, own, passing, stay, ring, barriers, STAGES: gl.constexpr, BY_KEYS: gl.constexpr, CAUSAL: gl.constexpr
):
    """Bring what stays, then what passes by."""
    own_full, own_empty, full, empty = barriers
    ROWS: gl.constexpr = own.block_shape[2]
    PASSING: gl.constexpr = passing.block_shape[2]
    BYTES: gl.constexpr = 3 * own.block_type.nbytes
    brought = 0
    turns, all_tiles = turns_of(task, task.S if BY_KEYS else task.T, 3 * ROWS)
    for turn in range(turns):
        at = tile_at(turn, CAUSAL)
        if at < all_tiles:
            head, tile = place_of(task, at, task.S if BY_KEYS else task.T, 3 * ROWS, CAUSAL, BY_KEYS)
            first, step, tiles, _ = _walk_of(task, tile, 3 * ROWS, PASSING, BY_KEYS, CAUSAL)
            sample, h = head // task.H, head % task.H
            g = h // task.served
            if BY_KEYS:
                h, g = g, h
            mbarrier.wait(own_empty.index(0), (turn & 1) ^ 1)
            mbarrier.expect(own_full.index(0), BYTES)
            for i in gl.static_range(3):
                copy_in(own, [sample, h, (tile * 3 + i) * ROWS, 0], own_full.index(0), stay.index(i))
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
    STAGES: gl.constexpr,
    BY_KEYS: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
    PIECES: gl.constexpr,
):
    """Sums over what passes by: over all of it, for the received; over each bin of keys, for the map."""
    own_full, own_empty, full, empty = barriers
    ROWS: gl.constexpr = stay.shape[1]
    PASSING: gl.constexpr = ring.shape[1]
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, PASSING, 16])
    scratch = pool.scratch + (gl.program_id(0) * 3 + WHO).to(gl.int64) * (pool.bins * ROWS)
    nothing = gl.zeros((ROWS, PASSING), gl.float32, scores)
    queries = gl.arange(0, PASSING, gl.SliceLayout(0, scores))
    used = 0
    turns, all_tiles = turns_of(task, task.S if BY_KEYS else task.T, 3 * ROWS)
    for turn in range(turns):
        at = tile_at(turn, CAUSAL)
        if at < all_tiles:
            head, tile = place_of(task, at, task.S if BY_KEYS else task.T, 3 * ROWS, CAUSAL, BY_KEYS)
            first, step, tiles, partly = _walk_of(task, tile, 3 * ROWS, PASSING, BY_KEYS, CAUSAL)
            row = (tile * 3 + WHO) * ROWS
            rows = row + gl.arange(0, ROWS, gl.SliceLayout(1, scores))
            lse = task.lse + head.to(gl.int64) * task.T
            total = gl.zeros((ROWS,), gl.float32, gl.SliceLayout(1, scores))
            mass = total
            if not BY_KEYS:
                shift = gl.load(lse + rows, mask=rows < task.T, other=float("inf"))
            mbarrier.wait(own_full.index(0), turn & 1)
            for part in gl.static_range(2):
                begin, end = gl.minimum(partly, tiles), tiles
                if part == 0:
                    begin, end = 0, gl.minimum(partly, tiles)
                for t in range(begin, end):
                    start = first + t * step
                    i = wait_for(full, used + t, STAGES)
                    s = warpgroup_mma(
                        stay.index(WHO), ring.index(i).permute((1, 0)), nothing, use_acc=False, is_async=True
                    )
                    if BY_KEYS:
                        at_query = gl.load(lse + start + queries, mask=start + queries < task.T, other=float("inf"))
                    s = warpgroup_mma_wait(0, deps=(s,))
                    mbarrier.arrive(empty.index(i))
                    if BY_KEYS:
                        x = s * task.scale - at_query[None, :]
                    else:
                        x = s * task.scale - shift[:, None]
                    if part == 0:
                        columns = start + queries
                        if BY_KEYS:
                            seen = rows[:, None] <= columns[None, :] + task.edge
                        else:
                            seen = (columns < task.S)[None, :]
                            if CAUSAL:
                                seen = seen & (columns[None, :] <= rows[:, None] + task.edge)
                        x = gl.where(seen, x, float("-inf"))
                    p = gl.exp2(x)
                    if BY_KEYS:
                        total += gl.sum(p, 1)
                    else:
                        _, mass = add_to_bins(pool, scratch, p, mass, total, total, start, False, BINS, SHARE)
            mbarrier.arrive(own_empty.index(0))
            used += tiles
            if BY_KEYS:
                gl.store(task.out + head.to(gl.int64) * task.S + rows, total, mask=rows < task.S)
            else:
                sync()  # what one thread has stored another will load
                strip = (head - task.first).to(gl.int64) * pool.of_head + tile * 3 + WHO
                seen_bins = gl.minimum(pool.bins, gl.cdiv(tiles * PASSING, pool.wide))
                strip = pool.strips + strip * (PIECES * pool.bins)
                pool_rows(pool, scratch, strip, total, row, seen_bins, task.T, False, PIECES)
                sync()  # before the scratch is written again
