"""Attention in one pass, by a crew: a producer brings tiles of keys and values, consumers multiply and weigh them.

Each consumer owns some queries and walks from the last key to the first. While the tensor cores multiply weights with
values, it weighs the next tile's scores. What it has weighed it counts a tile later: nothing else
waits for that. Consumers wait for the producer and it for them, never for each other, so that one multiplies while the
other weighs.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from regard.kernels.triton.hopper.bins import pool_rows
from regard.kernels.triton.hopper.gluon_names import copy_in, sync
from regard.kernels.triton.hopper.lanes import by_lanes, group_maxima, least_of, log2
from regard.kernels.triton.hopper.pipeline import barriers_for, bring, wait_for
from regard.kernels.triton.hopper.scheduler import keys_of, place_of, tile_at, turns_of
from regard.kernels.triton.hopper.softmax import count, weigh


@gluon.jit
def forward_kernel(
    task,
    pool,
    q,
    k,
    v,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
    COUNTING: gl.constexpr,
    HOLDING: gl.constexpr,
    SCATTER: gl.constexpr,
    CAUSAL: gl.constexpr,
    LSE: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
    PIECES: gl.constexpr,
    query_layout: gl.constexpr,
    key_layout: gl.constexpr,
):
    """q, k, v are descriptors of tiles. BINS, SHARE: see `pooling`; PIECES: see `pool_rows`."""
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
            (_consume, (task, pool, queries, keys, values, barriers, 0, 2, STAGES,
                        COUNTING, HOLDING, SCATTER, CAUSAL, LSE, ENTROPY, TOP, BINS, SHARE, PIECES)),
            (_consume, (task, pool, queries, keys, values, barriers, 1, 2, STAGES,
                        COUNTING, HOLDING, SCATTER, CAUSAL, LSE, ENTROPY, TOP, BINS, SHARE, PIECES)),
            (_produce, (task, q, k, v, queries, keys, values, barriers, CAUSAL, CONSUMERS, STAGES)),
        ], [4, 1], [REGISTERS, 24])
    else:
        gl.warp_specialize([
            (_consume, (task, pool, queries, keys, values, barriers, 0, 3, STAGES,
                        COUNTING, HOLDING, SCATTER, CAUSAL, LSE, ENTROPY, TOP, BINS, SHARE, PIECES)),
            (_consume, (task, pool, queries, keys, values, barriers, 1, 3, STAGES,
                        COUNTING, HOLDING, SCATTER, CAUSAL, LSE, ENTROPY, TOP, BINS, SHARE, PIECES)),
            (_consume, (task, pool, queries, keys, values, barriers, 2, 3, STAGES,
                        COUNTING, HOLDING, SCATTER, CAUSAL, LSE, ENTROPY, TOP, BINS, SHARE, PIECES)),
            (_produce, (task, q, k, v, queries, keys, values, barriers, CAUSAL, CONSUMERS, STAGES)),
        ], [4, 4, 1], [REGISTERS, REGISTERS, 24])
    # fmt: on


@gluon.jit
def _produce(
    task,
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
    """Bring the queries, then keys and values in the order in which consumers want them: values one tile behind."""
    q_full, q_empty, k_full, k_empty, v_full, v_empty = barriers
    ROWS: gl.constexpr = q.block_shape[2]
    KEYS: gl.constexpr = k.block_shape[2]
    BYTES: gl.constexpr = CONSUMERS * q.block_type.nbytes
    brought = 0
    turns, all_tiles = turns_of(task, task.T, CONSUMERS * ROWS)
    for turn in range(turns):
        at = tile_at(turn, CAUSAL)
        if at < all_tiles:
            head, tile = place_of(task, at, task.T, CONSUMERS * ROWS, CAUSAL, False)
            tiles, _ = keys_of(task, tile, CONSUMERS * ROWS, KEYS, CAUSAL)
            sample, h = head // task.H, head % task.H
            g = h // task.served
            mbarrier.wait(q_empty.index(0), (turn & 1) ^ 1)
            mbarrier.expect(q_full.index(0), BYTES)
            for i in gl.static_range(CONSUMERS):
                copy_in(q, [sample, h, (tile * CONSUMERS + i) * ROWS, 0], q_full.index(0), queries.index(i))
            bring(k, keys, k_full, k_empty, brought, sample, g, (tiles - 1) * KEYS, STAGES)
            for t in range(1, tiles):
                bring(k, keys, k_full, k_empty, brought + t, sample, g, (tiles - 1 - t) * KEYS, STAGES)
                bring(v, values, v_full, v_empty, brought + t - 1, sample, g, (tiles - t) * KEYS, STAGES)
            bring(v, values, v_full, v_empty, brought + tiles - 1, sample, g, 0, STAGES)
            brought += tiles


@gluon.jit
def _consume(
    task,
    pool,
    queries,
    keys,
    values,
    barriers,
    WHO: gl.constexpr,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    COUNTING: gl.constexpr,
    HOLDING: gl.constexpr,
    SCATTER: gl.constexpr,
    CAUSAL: gl.constexpr,
    LSE: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
    PIECES: gl.constexpr,
):
    """The queries of one consumer, tile by tile: what is found is stored, and the map's share of it in strips."""
    q_full, q_empty, _, _, _, _ = barriers
    ROWS: gl.constexpr = queries.shape[1]
    KEYS: gl.constexpr = keys.shape[1]
    E: gl.constexpr = keys.shape[2]
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, KEYS, 16])
    output: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, E, 16])
    scratch = pool.scratch + (gl.program_id(0) * CONSUMERS + WHO).to(gl.int64) * (pool.bins * ROWS)
    nothing = gl.zeros((ROWS, KEYS), gl.float32, scores)
    unseen = gl.full((ROWS,), float("-inf"), gl.float32, gl.SliceLayout(1, scores))
    used = 0
    turns, all_tiles = turns_of(task, task.T, CONSUMERS * ROWS)
    for turn in range(turns):
        at = tile_at(turn, CAUSAL)
        if at < all_tiles:
            head, tile = place_of(task, at, task.T, CONSUMERS * ROWS, CAUSAL, False)
            tiles, partly = keys_of(task, tile, CONSUMERS * ROWS, KEYS, CAUSAL)
            row = (tile * CONSUMERS + WHO) * ROWS
            lanes = gl.zeros_like(gl.sum(by_lanes(nothing, 1), 1))
            bin = (gl.minimum(tiles * KEYS, task.S) - 1) // pool.wide  # of the last key
            so_far = (lanes, lanes, lanes, bin)
            best = group_maxima(nothing) + float("-inf")
            found = (gl.zeros((ROWS, E), gl.float32, output), unseen, best, bin * pool.wide)
            mbarrier.wait(q_full.index(0), turn & 1)
            for part in gl.static_range(2):
                begin, end = partly, tiles
                if part == 0:
                    begin, end = 0, partly
                if begin < end:
                    found, so_far = _walk(
                        task, pool, found, so_far, scratch, queries.index(WHO), keys, values, barriers, row, begin, end,
                        tiles, used, part == 0, STAGES, COUNTING, HOLDING, SCATTER, CAUSAL, ENTROPY, TOP, BINS, SHARE,
                    )  # fmt: skip
            mbarrier.arrive(q_empty.index(0))
            used += tiles
            lse = _tell(task, found, so_far, head, row, LSE, ENTROPY, TOP)
            if BINS != "":
                sync()  # what one thread has stored another will load
                pool_rows(pool, scratch, head - task.first, row, lse, tiles * KEYS, task.T, True, PIECES)
                sync()  # before the scratch is written again


@gluon.jit
def _walk(
    task, pool, found, so_far, scratch, own, keys, values, barriers, row, begin, end, tiles, used,
    MASKED: gl.constexpr, STAGES: gl.constexpr, COUNTING: gl.constexpr, HOLDING: gl.constexpr, SCATTER: gl.constexpr,
    CAUSAL: gl.constexpr,
    ENTROPY: gl.constexpr, TOP: gl.constexpr, BINS: gl.constexpr, SHARE: gl.constexpr,
):  # fmt: skip
    """What was found, with the tiles from `begin` to `end` added, counted from the last: one of them at least."""
    _, _, k_full, k_empty, v_full, v_empty = barriers
    KEYS: gl.constexpr = keys.shape[1]
    acc, m, best, edge = found
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, KEYS, 16])
    output: gl.constexpr = acc.type.layout
    as_left: gl.constexpr = gl.DotOperandLayout(0, output, 2)
    ROWS: gl.constexpr = own.shape[0]
    nothing = gl.zeros((ROWS, KEYS), gl.float32, scores)
    start = (tiles - 1 - begin) * KEYS
    i = wait_for(k_full, used + begin, STAGES)
    s = warpgroup_mma(own, keys.index(i).permute((1, 0)), nothing, use_acc=False, is_async=True)
    s = warpgroup_mma_wait(0, deps=(s,))
    mbarrier.arrive(k_empty.index(i))
    p, m, best, edge, weighed = weigh(
        task, pool, s, m, best, edge, row, start, MASKED, CAUSAL, ENTROPY, TOP, BINS, SHARE
    )
    left = gl.convert_layout(p.to(values.dtype), as_left)
    acc = acc * gl.convert_layout(weighed[2], gl.SliceLayout(1, output))[:, None]
    for t in range(begin + 1, end):
        start = (tiles - 1 - t) * KEYS
        i = wait_for(k_full, used + t, STAGES)
        s = warpgroup_mma(own, keys.index(i).permute((1, 0)), nothing, use_acc=False, is_async=True)
        j = wait_for(v_full, used + t - 1, STAGES)
        product = warpgroup_mma(left, values.index(j), acc, is_async=True)
        if COUNTING == "waiting":
            so_far = count(pool, so_far, weighed, scratch, start + KEYS, ENTROPY, BINS, SHARE, SCATTER)
        s = warpgroup_mma_wait(1, deps=(s,))
        mbarrier.arrive(k_empty.index(i))
        if COUNTING == "before":
            so_far = count(pool, so_far, weighed, scratch, start + KEYS, ENTROPY, BINS, SHARE, SCATTER)
        p, m, best, edge, weighed = weigh(
            task, pool, s, m, best, edge, row, start, MASKED, CAUSAL, ENTROPY, TOP, BINS, SHARE
        )
        if HOLDING:
            wait_for(v_full, used + t - 1, STAGES)  # known to be there: what stands before a branch stays before it
        acc = warpgroup_mma_wait(0, deps=(product,))
        mbarrier.arrive(v_empty.index(j))
        left = gl.convert_layout(p.to(values.dtype), as_left)
        acc = acc * gl.convert_layout(weighed[2], gl.SliceLayout(1, output))[:, None]
    j = wait_for(v_full, used + end - 1, STAGES)
    product = warpgroup_mma(left, values.index(j), acc, is_async=True)
    so_far = count(pool, so_far, weighed, scratch, (tiles - end) * KEYS, ENTROPY, BINS, SHARE, SCATTER)
    acc = warpgroup_mma_wait(0, deps=(product,))
    mbarrier.arrive(v_empty.index(j))
    return (acc, m, best, edge), so_far


@gluon.jit
def _tell(task, found, so_far, head, row, LSE: gl.constexpr, ENTROPY: gl.constexpr, TOP: gl.constexpr):
    """Store what was found of these queries; returns their LSE in base 2."""
    acc, m, best, _ = found
    total, mean, _, _ = so_far
    total = gl.convert_layout(gl.sum(total, 1), m.type.layout)
    mean = gl.convert_layout(gl.sum(mean, 1), m.type.layout)
    output: gl.constexpr = acc.type.layout
    rows_layout: gl.constexpr = total.type.layout
    divisor = gl.where(total == 0.0, 1.0, total)  # who saw nothing gets zeros
    lse = m + log2(total)
    rows = row + gl.arange(0, acc.shape[0], gl.SliceLayout(1, output))
    columns = gl.arange(0, acc.shape[1], gl.SliceLayout(0, output))
    here = head.to(gl.int64) * task.T
    out = acc / gl.convert_layout(divisor, gl.SliceLayout(1, output))[:, None]
    gl.store(
        task.out + (here + rows)[:, None] * acc.shape[1] + columns[None, :],
        out.to(task.out.dtype.element_ty),
        mask=(rows < task.T)[:, None],
    )
    rows = row + gl.arange(0, acc.shape[0], rows_layout)
    if LSE:
        gl.store(task.lse + here + rows, lse * 0.6931471805599453, mask=rows < task.T)
    if TOP > 0:
        gl.store(task.threshold + here + rows, gl.convert_layout(least_of(best, TOP), rows_layout), mask=rows < task.T)
    if ENTROPY:
        entropy = (log2(divisor) - mean / divisor) * 0.6931471805599453
        gl.store(task.entropy + here + rows, gl.where(entropy < 0.0, 0.0, entropy), mask=rows < task.T)
    return lse
