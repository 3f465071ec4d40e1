"""The schedule of query tiles over programs, and the keys visible to a tile.

Programs are persistent: each processes one tile per wave. Where tiles differ in length the longest come first, and
waves alternate in direction, so that no program gets the longest tile of every wave.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


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
