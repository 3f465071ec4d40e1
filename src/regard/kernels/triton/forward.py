"""Attention in one pass over key tiles, and what the same pass can tell: LSE, maximum, entropy, the map's row strips.

A program owns a tile of queries and walks over the keys that these see: those at the left edge, where it asks who may
look, then those that all see, then those at the right edge. What is not asked for is compiled away.

Entropy is kept as Σ p (s − m), under the running maximum m as Σ p is: large scores cost it no digits. For the map see
`pooling`. No number is written by two programs, so the result is the same to the last bit every time.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from regard.kernels.triton.pooling import add_to_bins, close_bins, pool_rows
from regard.kernels.triton.tiles import load_rows, part_of_walk, score_tile, seen_tile, tiles_to_see


class Task(NamedTuple):
    """Sizes, and where what is found goes; what is None is compiled away.

    served   query heads to a key head
    scale    not negative; it and `cap` hold the factor log2 e already
    out      B H T Ev; lse, maximum and entropy are B H T in float32
    """

    H: int
    served: int
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
    task,
    q,
    k,
    v,
    limits,
    pool,
    first,
    last,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    TMA: tl.constexpr,
    BINS: tl.constexpr,
    SHARE: tl.constexpr,
    TALL: tl.constexpr,
):
    """The row tiles `first` … `last`, counted through all heads: one to a program, or, with scratch, one by one.

    FIRST, LAST: parts of the walk. BINS, SHARE, TALL: see `pooling`; without a map BINS is "".
    """
    tiles, own, programs = tl.cdiv(task.T, ROWS), tl.program_id(0), tl.num_programs(0)
    if BINS == "":
        at = first + own
        head, tile = at // tiles, at % tiles
        if limits.right is not None:
            tile = tiles - 1 - tile  # the longest first
        _row_tile(
            task, q, k, v, limits, pool, head, tile,
            E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, FIRST, LAST, TMA, BINS, SHARE, TALL,
        )  # fmt: skip
    else:
        heads = (last - first) // tiles
        for turn in range(tl.cdiv(last - first, programs)):
            # To and fro, from the longest tiles of all heads to the shortest: all programs have as much to do.
            at = turn * programs + tl.where(turn % 2 == 1, programs - 1 - own, own)
            if at < last - first:
                head, tile = first // tiles + at // tiles, at % tiles
                if limits.right is not None:
                    head, tile = first // tiles + at % heads, tiles - 1 - at // heads
                _row_tile(
                    task, q, k, v, limits, pool, head, tile,
                    E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, FIRST, LAST, TMA, BINS, SHARE, TALL,
                )  # fmt: skip


@triton.jit
def _row_tile(
    task,
    q,
    k,
    v,
    limits,
    pool,
    head,
    tile,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    TMA: tl.constexpr,
    BINS: tl.constexpr,
    SHARE: tl.constexpr,
    TALL: tl.constexpr,
):
    """One tile of queries of one head, from its first key to everything that is found."""
    T, S = task.T, task.S
    sample, h = head // task.H, head % task.H
    g = h // task.served
    rows = tile * ROWS + tl.arange(0, ROWS)
    queries = load_rows(q, sample, h, tile * ROWS, T, ROWS, E, BLOCK_E, False, TMA)

    edges = tiles_to_see(limits, sample, tile, T, S, ROWS, KEYS)
    m = tl.full((ROWS,), float("-inf"), tl.float32)
    total, mean, mass = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, BLOCK_EV), tl.float32)
    for part in tl.static_range(FIRST, LAST + 1):
        begin, end = part_of_walk(edges, part)
        for start in range(begin, end, KEYS):
            keys = load_rows(k, sample, g, start, S, KEYS, E, BLOCK_E, part == 1, TMA)
            x, highest, shift = _scores_below_maximum(task, limits, queries, keys, m, sample, rows, start, part == 1)
            p = tl.exp2(x)
            fade = tl.exp2(m - shift)
            row_sum = tl.sum(p, 1)
            if task.entropy is not None:
                moved = tl.where(m == float("-inf"), 0.0, m - shift)
                if part != 1:
                    x = tl.where(x == float("-inf"), 0.0, x)
                mean = fade * (mean + total * moved) + tl.sum(p * x, 1)
            total = total * fade + row_sum
            values = load_rows(v, sample, g, start, S, KEYS, EV, BLOCK_EV, part == 1, TMA)
            acc = tl.dot(p.to(values.dtype), values, acc * fade[:, None], input_precision="ieee")
            if BINS != "":
                mass = add_to_bins(pool, start, p, row_sum, fade, shift, mass, ROWS, KEYS, BINS, SHARE)
            m = highest

    lse = _tell(task, head, rows, acc, m, total, mean, EV)
    if BINS != "":
        close_bins(pool, edges[3], m, mass, ROWS, BINS)
        pool_rows(pool, head, tile, lse, edges[0], edges[3], T, ROWS, BINS, TALL)


@triton.jit
def _scores_below_maximum(task, limits, queries, keys, m, sample, rows, start, ALL_SEE: tl.constexpr):
    """The scores of a tile less their shift, the new running maximum, and that shift: the maximum, where there is one.

    start    the first key of the tile
    ALL_SEE  every query sees every key of it
    """
    if not ALL_SEE or task.cap is not None:
        s = score_tile(queries, tl.trans(keys), task.scale, task.cap, task.cap is not None)
        if not ALL_SEE:
            columns = start + tl.arange(0, keys.shape[0])[None, :]
            s = tl.where(seen_tile(limits, sample, rows[:, None], columns, task.T, task.S), s, float("-inf"))
        highest = tl.maximum(m, tl.max(s, 1))
        # Who has seen nothing yet stays at -inf, and -inf - -inf would be NaN.
        shift = tl.where(highest == float("-inf"), 0.0, highest)
        x = s - shift[:, None]
    else:
        # Scaled after the maximum was found, so that scaling and shifting are one operation.
        s = tl.dot(queries, tl.trans(keys), input_precision="ieee")
        highest = tl.maximum(m, tl.max(s, 1) * task.scale)
        shift = highest
        x = s * task.scale - shift[:, None]
    return x, highest, shift


@triton.jit
def _tell(task, head, rows, acc, m, total, mean, EV: tl.constexpr):
    """Store what was found of these queries; returns their LSE in base 2."""
    lse = m + tl.log2(total)
    divisor = tl.where(total == 0.0, 1.0, total)  # who saw nothing gets zeros
    here, there = tl.cast(head, tl.int64) * task.T + rows, rows < task.T
    columns = tl.arange(0, acc.shape[1])[None, :]
    out = (acc / divisor[:, None]).to(task.out.dtype.element_ty)
    tl.store(task.out + here[:, None] * EV + columns, out, mask=there[:, None] & (columns < EV))
    if task.lse is not None:
        tl.store(task.lse + here, lse * 0.6931471805599453, mask=there)
    if task.maximum is not None:
        tl.store(task.maximum + here, m * 0.6931471805599453, mask=there)
    if task.entropy is not None:
        entropy = (tl.log2(divisor) - mean / divisor) * 0.6931471805599453
        tl.store(task.entropy + here, tl.where(entropy < 0.0, 0.0, entropy), mask=there)
    return lse
