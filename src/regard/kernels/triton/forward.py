"""Attention in one pass over key tiles, and what the same pass can tell: LSE, maximum, entropy, the map's row strips.

A program owns a tile of queries and walks over the keys that these see: those at the left edge, where it asks who may
look, then those that all see, then those at the right edge. What is not asked for is compiled away.

Entropy is kept as Σ p (s − m), under the running maximum m as Σ p is: large scores cost it no digits. For the map see
`pooling`. No number is written by two programs, so the result is the same to the last bit every time.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from regard.kernels.triton.pooling import Pool, add_to_bins, close_bins, pool_rows
from regard.kernels.triton.tiles import Heads, Limits, load_tile, score_tile, seen_tile, tiles_to_see


class Task(NamedTuple):
    """Everything a program needs to know; what is None is compiled away.

    served   query heads to a key head
    scale    not negative; it and `cap` hold the factor log2 e already
    out      B H T Ev; lse, maximum and entropy are B H T in float32
    """

    q: Heads
    k: Heads
    v: Heads
    H: int
    served: int
    T: int
    S: int
    limits: Limits
    scale: float
    cap: float | None
    out: Any
    lse: Any = None
    maximum: Any = None
    entropy: Any = None
    pool: Pool | None = None


@triton.jit
def forward_kernel(
    task,
    first,
    last,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    WHOLE: tl.constexpr,
    BINS: tl.constexpr,
    SHARE: tl.constexpr,
    TALL: tl.constexpr,
):
    """The row tiles `first` … `last`, counted through all heads: one to a program, or, with scratch, one by one.

    WHOLE: keys fill their tiles. BINS, SHARE, TALL: see `pooling`.
    """
    at = first + tl.program_id(0)
    if task.pool is None:
        _row_tile(task, at, E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, WHOLE, BINS, SHARE, TALL)
    else:
        for one in range(at, last, tl.num_programs(0)):
            _row_tile(task, one, E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, WHOLE, BINS, SHARE, TALL)


@triton.jit
def _row_tile(
    task,
    at,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    WHOLE: tl.constexpr,
    BINS: tl.constexpr,
    SHARE: tl.constexpr,
    TALL: tl.constexpr,
):
    """One tile of queries of one head, from its first key to everything that is found."""
    T, S, limits = task.T, task.S, task.limits
    tiles = tl.cdiv(T, ROWS)
    head, tile = at // tiles, at % tiles
    if limits.right is not None:
        tile = tiles - 1 - tile  # the longest first
    sample, h = tl.cast(head // task.H, tl.int64), tl.cast(head % task.H, tl.int64)
    rows = tile * ROWS + tl.arange(0, ROWS)
    own = task.q.base + sample * task.q.sample + h * task.q.head
    q = load_tile(own, tile * ROWS, T, task.q.row, ROWS, E, BLOCK_E, False)
    k = task.k.base + sample * task.k.sample + h // task.served * task.k.head
    v = task.v.base + sample * task.v.sample + h // task.served * task.v.head

    low, sure_low, sure_high, high = tiles_to_see(limits, sample, tile, T, S, ROWS, KEYS)
    m = tl.full((ROWS,), float("-inf"), tl.float32)
    total, mean, mass = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, BLOCK_EV), tl.float32)
    so_far = (m, total, mean, mass, acc)
    if limits.left is not None or limits.reach is not None:
        for start in range(low, sure_low, KEYS):
            so_far = _key_tile(
                task, so_far, q, k, v, sample, rows, start, True, E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, BINS, SHARE
            )
    for start in range(sure_low, sure_high, KEYS):
        so_far = _key_tile(
            task, so_far, q, k, v, sample, rows, start, False, E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, BINS, SHARE
        )
    if limits.left is not None or limits.right is not None or limits.reach is not None or not WHOLE:
        for start in range(sure_high, high, KEYS):
            so_far = _key_tile(
                task, so_far, q, k, v, sample, rows, start, True, E, EV, BLOCK_E, BLOCK_EV, ROWS, KEYS, BINS, SHARE
            )

    m, total, mean, mass, acc = so_far
    lse = m + tl.log2(total)
    divisor = tl.where(total == 0.0, 1.0, total)  # who saw nothing gets zeros
    here = tl.cast(head, tl.int64) * T + rows
    columns = tl.arange(0, BLOCK_EV)[None, :]
    out = (acc / divisor[:, None]).to(task.out.dtype.element_ty)
    tl.store(task.out + here[:, None] * EV + columns, out, mask=(rows < T)[:, None] & (columns < EV))
    if task.lse is not None:
        tl.store(task.lse + here, lse * 0.6931471805599453, mask=rows < T)
    if task.maximum is not None:
        tl.store(task.maximum + here, m * 0.6931471805599453, mask=rows < T)
    if task.entropy is not None:
        entropy = (tl.log2(divisor) - mean / divisor) * 0.6931471805599453
        tl.store(task.entropy + here, tl.maximum(entropy, 0.0), mask=rows < T)
    if task.pool is not None:
        close_bins(task.pool, high, m, mass, ROWS, BINS)
        pool_rows(task.pool, head, tile, tiles, lse, low, high, T, ROWS, BINS, TALL)


@triton.jit
def _key_tile(
    task,
    so_far,
    q,
    keys,
    values,
    sample,
    rows,
    start,
    MASKED: tl.constexpr,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    BINS: tl.constexpr,
    SHARE: tl.constexpr,
):
    """What was found so far, with a tile of keys added: maximum, Σ p, Σ p (s − m), Σ p of the bin, Σ p v."""
    m, total, mean, mass, acc = so_far
    k = load_tile(keys, start, task.S, task.k.row, KEYS, E, BLOCK_E, not MASKED)
    if MASKED or task.cap is not None:
        s = score_tile(q, tl.trans(k), task.scale, task.cap, task.cap is not None)
        if MASKED:
            columns = start + tl.arange(0, KEYS)[None, :]
            s = tl.where(seen_tile(task.limits, sample, rows[:, None], columns, task.T, task.S), s, float("-inf"))
        highest = tl.maximum(m, tl.max(s, 1))
        # Who has seen nothing yet stays at -inf, and -inf - -inf would be NaN.
        shift = tl.where(highest == float("-inf"), 0.0, highest)
        x = s - shift[:, None]
    else:
        # Scaled after the maximum was found, so that scaling and shifting are one operation.
        s = tl.dot(q, tl.trans(k), input_precision="ieee")
        highest = tl.maximum(m, tl.max(s, 1) * task.scale)
        shift = highest
        x = s * task.scale - shift[:, None]
    p = tl.exp2(x)
    fade = tl.exp2(m - shift)
    row_sum = tl.sum(p, 1)
    if task.entropy is not None:
        moved = tl.where(m == float("-inf"), 0.0, m - shift)
        if MASKED:
            x = tl.where(x == float("-inf"), 0.0, x)
        mean = fade * (mean + total * moved) + tl.sum(p * x, 1)
    total = total * fade + row_sum
    v = load_tile(values, start, task.S, task.v.row, KEYS, EV, BLOCK_EV, not MASKED)
    acc = tl.dot(p.to(v.dtype), v, acc * fade[:, None], input_precision="ieee")
    if task.pool is not None:
        mass = add_to_bins(task.pool, start, p, row_sum, fade, shift, mass, ROWS, KEYS, BINS, SHARE)
    return highest, total, mean, mass, acc
