"""Which tile of queries a program takes at which turn, and which keys that tile sees.

Programs stay, and take one tile after another. Where tiles are of different length the longest come first, and turns
go to and fro, so that nobody gets the longest of each turn.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


class Task(NamedTuple):
    """Sizes, what is given, and where what is found goes; what there is not is `out` once more.

    first     the first head of this launch, and `heads` how many, counted through the samples
    together  so many heads are worked on at once, where attention is causal
    served    query heads to a key head
    edge      query i sees the keys up to i + edge, where attention is causal
    scale     positive; holds the factor log2 e already
    lse       found by a forward, given to a second pass, as is `threshold`; `counts` of survivors are found
    """

    first: int
    heads: int
    together: int
    H: int
    served: int
    T: int
    S: int
    edge: int
    scale: float
    out: Any
    lse: Any
    entropy: Any
    threshold: Any
    counts: Any


@gluon.jit
def turns_of(task, length, ROWS: gl.constexpr):
    """How many turns there are, and how many tiles of a sequence so long."""
    tiles = task.heads * gl.cdiv(length, ROWS)
    return gl.cdiv(tiles, gl.num_programs(0)), tiles


@gluon.jit
def tile_at(turn, CAUSAL: gl.constexpr):
    """Which tile this program takes; there may be no such tile at the last turn."""
    own = gl.program_id(0)
    if CAUSAL:
        own = gl.where(turn % 2 == 1, gl.num_programs(0) - 1 - own, own)
    return turn * gl.num_programs(0) + own


@gluon.jit
def place_of(task, at, length, ROWS: gl.constexpr, CAUSAL: gl.constexpr, BY_KEYS: gl.constexpr):
    """Head and tile: whole heads one by one; or the longest tiles of some heads first, the last queries, first keys."""
    tiles = gl.cdiv(length, ROWS)
    head, tile = at // tiles, at % tiles
    if CAUSAL:
        first = at // (tiles * task.together) * task.together
        together = gl.maximum(gl.minimum(task.together, task.heads - first), 1)  # behind the last tile there is none
        within = at - first * tiles
        head, tile = first + within % together, within // together
        if not BY_KEYS:
            tile = tiles - 1 - tile
    return task.first + head, tile


@gluon.jit
def keys_of(task, tile, ROWS: gl.constexpr, KEYS: gl.constexpr, CAUSAL: gl.constexpr):
    """How many tiles of keys are seen, and how many of them, counted from the last, not by all."""
    seen, by_all = task.S, task.S
    if CAUSAL:
        seen = gl.minimum(task.S, (tile + 1) * ROWS + task.edge)
        by_all = gl.minimum(task.S, gl.maximum(tile * ROWS + task.edge + 1, 0))
    tiles = gl.maximum(gl.cdiv(seen, KEYS), 1)
    return tiles, tiles - by_all // KEYS


@gluon.jit
def queries_of(task, tile, ROWS: gl.constexpr, QUERIES: gl.constexpr, CAUSAL: gl.constexpr):
    """Where the tiles of queries begin that see a tile of keys, how many there are, and how many do so in part only."""
    first, partly, tiles = 0, 0, gl.cdiv(task.T, QUERIES)
    if CAUSAL:
        # Key j is seen from query j − edge on.
        skipped = gl.minimum(gl.maximum(tile * ROWS - task.edge, 0) // QUERIES, tiles)
        from_here_all = gl.minimum(gl.cdiv(gl.maximum((tile + 1) * ROWS - 1 - task.edge, 0), QUERIES), tiles)
        first, partly, tiles = skipped * QUERIES, from_here_all - skipped, tiles - skipped
    return first, tiles, partly
