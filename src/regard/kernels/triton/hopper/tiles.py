"""Tiles of the Hopper kernels: schedule, stages in shared memory, layout and reductions over lanes, kernel arguments.

Programs are persistent: each processes one tile per wave. Where tiles differ in length the longest come first, and
waves alternate in direction, so that no program gets the longest tile of every wave.

Shared memory holds a ring of stages, each with a "full" and an "empty" barrier. A barrier alternates between two
phases: a wait selects one by the parity of the number of uses of the stage. `sync` and `copy_in` are Gluon functions
whose names changed between Triton 3.6 and 3.9.

A row of scores is in four lanes, each with two of every eight columns.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


class HopperArguments(NamedTuple):
    """Sizes, inputs and output tensors; absent ones are `out` again.

    first            the first head of this launch, and `heads` their number, counted over the samples
    heads_together   heads processed together with a causal mask
    group_size       query heads per key head
    edge             with a causal mask, query i attends to the keys up to i + edge
    scale            positive; includes the factor log2 e
    lse              output of a forward, input of a second pass, as is `threshold`; `counts` of candidates are output
    """

    first: int
    heads: int
    heads_together: int
    H: int
    group_size: int
    T: int
    S: int
    edge: int
    scale: float
    out: Any
    lse: Any
    maximum: Any
    entropy: Any
    threshold: Any
    counts: Any


@gluon.jit
def wave_count(args, length, ROWS: gl.constexpr):
    """The number of waves, and of tiles, for sequences of this length."""
    tiles = args.heads * gl.cdiv(length, ROWS)
    return gl.cdiv(tiles, gl.num_programs(0)), tiles


@gluon.jit
def tile_at(wave, CAUSAL: gl.constexpr):
    """The tile of this program in a wave; in the last wave there may be no such tile."""
    program = gl.program_id(0)
    if CAUSAL:
        program = gl.where(wave % 2 == 1, gl.num_programs(0) - 1 - program, program)
    return wave * gl.num_programs(0) + program


@gluon.jit
def head_and_tile(args, at, length, ROWS: gl.constexpr, CAUSAL: gl.constexpr, BY_KEYS: gl.constexpr):
    """Head and tile: whole heads one by one; or, with a causal mask, the longest tiles of some heads first (the last
    queries, or the first keys).
    """
    tiles = gl.cdiv(length, ROWS)
    head, tile = at // tiles, at % tiles
    if CAUSAL:
        first = at // (tiles * args.heads_together) * args.heads_together
        heads_together = gl.maximum(gl.minimum(args.heads_together, args.heads - first), 1)  # 0 beyond the last tile
        in_group = at - first * tiles
        head, tile = first + in_group % heads_together, in_group // heads_together
        if not BY_KEYS:
            tile = tiles - 1 - tile
    return args.first + head, tile


@gluon.jit
def key_tiles(args, tile, ROWS: gl.constexpr, KEYS: gl.constexpr, CAUSAL: gl.constexpr):
    """The number of key tiles visible to a tile of queries, and how many of them, the last ones, are partly masked."""
    visible, full = args.S, args.S
    if CAUSAL:
        visible = gl.minimum(args.S, (tile + 1) * ROWS + args.edge)
        full = gl.minimum(args.S, gl.maximum(tile * ROWS + args.edge + 1, 0))
    tiles = gl.maximum(gl.cdiv(visible, KEYS), 1)
    return tiles, tiles - full // KEYS


@gluon.jit
def query_tiles(args, tile, ROWS: gl.constexpr, QUERIES: gl.constexpr, CAUSAL: gl.constexpr):
    """The first tile of queries that attends to a tile of keys, the number of tiles, and how many are partly masked."""
    first, n_masked, tiles = 0, 0, gl.cdiv(args.T, QUERIES)
    if CAUSAL:
        # Key j is visible from query j − edge on.
        n_skipped = gl.minimum(gl.maximum(tile * ROWS - args.edge, 0) // QUERIES, tiles)
        n_until_full = gl.minimum(gl.cdiv(gl.maximum((tile + 1) * ROWS - 1 - args.edge, 0), QUERIES), tiles)
        first, n_masked, tiles = n_skipped * QUERIES, n_until_full - n_skipped, tiles - n_skipped
    return first, tiles, n_masked


sync = getattr(gl, "barrier", None) or gl.thread_barrier
"""Barrier among the warps of one role."""

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
"""TMA load of a tile into shared memory, which signals a barrier."""


@gluon.jit
def barriers_for(STAGES: gl.constexpr, CONSUMERS: gl.constexpr):
    """Barriers for each stage: full, and emptied by all consumers."""
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    return full, empty


@gluon.jit
def load_stage(x, stages, full, empty, n, sample, h, row, STAGES: gl.constexpr):
    """Load the n-th tile once its stage is empty: rows from `row` on of one head of the descriptor `x`."""
    i = n % STAGES
    mbarrier.wait(empty.index(i), (n // STAGES & 1) ^ 1)
    mbarrier.expect(full.index(i), x.block_type.nbytes)
    copy_in(x, [sample, h, row, 0], full.index(i), stages.index(i))


@gluon.jit
def wait_stage(full, n, STAGES: gl.constexpr):
    """Wait until the n-th tile is loaded; returns its stage."""
    i = n % STAGES
    mbarrier.wait(full.index(i), n // STAGES & 1)
    return i


@gluon.jit
def log2(x):
    """Approximate log2, accurate to 22 bits, as exp2 is."""
    return gl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=gl.float32, is_pure=True, pack=1)


@gluon.jit
def sum_by_lane(x, PARTS: gl.constexpr):
    """Sums over each part of a tile's columns, [ROWS, PARTS, 4]: one for each of the four lanes of a row."""
    ROWS: gl.constexpr = x.shape[0]
    EACH: gl.constexpr = x.shape[1] // PARTS
    x = x.reshape([ROWS, PARTS, EACH // 8, 4, 2]).permute((0, 1, 3, 2, 4)).reshape([ROWS, PARTS, 4, EACH // 4])
    return gl.sum(x, 3)


@gluon.jit
def group_maxima(s):
    """The maxima of sixteen groups of keys, [ROWS, 16], each within a lane; neighbours are in different groups."""
    ROWS: gl.constexpr = s.shape[0]
    EACH: gl.constexpr = s.shape[1] // 16
    return gl.max(s.reshape([ROWS, EACH, 2, 4, 2]).permute((0, 2, 3, 4, 1)).reshape([ROWS, 16, EACH]), 2)


@gluon.jit
def nth_largest(best, TOP: gl.constexpr):
    """The TOP-th largest group maximum, or a smaller one: at least TOP keys of a row reach this score."""
    for _ in gl.static_range(TOP - 1):
        best = gl.where(best == gl.max(best, 1)[:, None], float("-inf"), best)
    return gl.max(best, 1)


@gluon.jit
def as_column(x, like):
    """One number per row, broadcast to the layout of a tensor of rows and lanes."""
    return gl.convert_layout(x, gl.SliceLayout(1, like.type.layout))[:, None]
