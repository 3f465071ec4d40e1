"""What becomes of a tile of scores: weights under the running maximum, and what is counted of them.

In two parts: `weigh` makes what the next product waits for, `count` what nobody waits for.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


class Pool(NamedTuple):
    """What the map needs; without a map the numbers do not matter.

    scratch  [program, consumer, bin, query]
    strips   [head, tile of a consumer, piece, bin], from this launch's first head on; so many `of_head`
    wide     keys of a bin; bins  of keys
    """

    scratch: Any
    strips: Any
    of_head: int
    wide: int
    bins: int


@gluon.jit
def log2(x):
    """Right to 22 digits of two, as exp2 is."""
    return gl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=gl.float32, is_pure=True, pack=1)


@gluon.jit
def weigh(task, s, m, row, start, MASKED: gl.constexpr, CAUSAL: gl.constexpr, ENTROPY: gl.constexpr):
    """p = 2^(s − m), the new maximum, what it was shifted by, and how far that moved; Σ p (s − m) if it is asked for.

    row, start  the first query and the first key of the tile
    """
    scores: gl.constexpr = s.type.layout
    if MASKED:
        columns = start + gl.arange(0, s.shape[1], gl.SliceLayout(0, scores))
        seen = (columns < task.S)[None, :]
        if CAUSAL:
            rows = row + gl.arange(0, s.shape[0], gl.SliceLayout(1, scores))
            seen = seen & (columns[None, :] <= rows[:, None] + task.edge)
        s = gl.where(seen, s, float("-inf"))
    highest = gl.maximum(m, gl.max(s, 1) * task.scale)
    shift = highest
    if MASKED:
        shift = gl.where(highest == float("-inf"), 0.0, highest)  # -inf - -inf would be NaN
    x = s * task.scale - shift[:, None]
    p = gl.exp2(x)
    mean = shift
    if ENTROPY:
        if MASKED:
            x = gl.where(x == float("-inf"), 0.0, x)
        mean = gl.sum(p * x, 1)
    return p, highest, shift, m - shift, mean


@gluon.jit
def count(
    pool,
    so_far,
    p,
    shift,
    moved,
    of_tile,
    scratch,
    start,
    ENTROPY: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
):
    """Σ p, Σ p (s − m) and Σ p of the bin that is open, with a tile added; bins that are complete are stored.

    Keys come from the last to the first. BINS and SHARE are those of `pooling`.
    """
    total, mean, mass = so_far
    fade = gl.exp2(moved)
    row_sum, mass = add_to_bins(pool, scratch, p, mass, fade, shift, start, True, BINS, SHARE)
    if ENTROPY:
        mean = fade * (mean + total * gl.where(moved == float("-inf"), 0.0, moved)) + of_tile
    return total * fade + row_sum, mean, mass


@gluon.jit
def add_to_bins(
    pool, scratch, p, mass, fade, shift, start, RUNNING: gl.constexpr, BINS: gl.constexpr, SHARE: gl.constexpr
):
    """Σ p of each row, and of the bin that is open, with a tile added; bins that are complete are stored.

    RUNNING: p stands under a running maximum, which faded the sums so far, and is stored as a logarithm with its shift.
    """
    if BINS == "narrow":
        row_sum = gl.zeros_like(mass)
        columns = gl.arange(0, p.shape[1], gl.SliceLayout(0, p.type.layout))
        for i in gl.static_range(p.shape[1] // SHARE):
            inside = (columns >= i * SHARE) & (columns < (i + 1) * SHARE)
            one = gl.sum(gl.where(inside[None, :], p, 0.0), 1)
            row_sum += one
            _store(pool, scratch, start // SHARE + i, one, shift, RUNNING)
    else:
        row_sum = gl.sum(p, 1)
    if BINS == "wide":
        if RUNNING:
            mass = mass * fade
        mass += row_sum
        if start % pool.wide == 0:
            _store(pool, scratch, start // pool.wide, mass, shift, RUNNING)
            mass = gl.zeros_like(mass)
    return row_sum, mass


@gluon.jit
def _store(pool, scratch, bin, mass, shift, RUNNING: gl.constexpr):
    """One bin of the consumer's queries; there may be no such bin."""
    ROWS: gl.constexpr = mass.shape[0]
    queries = gl.arange(0, ROWS, mass.type.layout)
    if RUNNING:
        mass = shift + log2(mass)
    gl.store(scratch + bin * ROWS + queries, mass, mask=queries * 0 + bin < pool.bins)


@gluon.jit
def pool_rows(pool, scratch, strip, lse, row, end, T, RUNNING: gl.constexpr, PIECES: gl.constexpr):
    """The weights of a consumer's queries in the bins before `end`, summed over each piece of the queries."""
    ROWS: gl.constexpr = lse.shape[0]
    AT_ONCE: gl.constexpr = 64
    NONE: gl.constexpr = float("-inf") if RUNNING else 0.0
    layout: gl.constexpr = gl.BlockedLayout([1, ROWS // 32], [1, 32], [4, 1], [1, 0])
    queries = gl.arange(0, ROWS, gl.SliceLayout(0, layout))
    shift = gl.convert_layout(gl.where(lse == float("-inf"), 0.0, lse), gl.SliceLayout(0, layout))
    for first in range(0, end, AT_ONCE):
        bins = first + gl.arange(0, AT_ONCE, gl.SliceLayout(1, layout))
        there = (bins < end)[:, None] & (row + queries < T)[None, :]
        weights = gl.load(scratch + bins[:, None] * ROWS + queries[None, :], mask=there, other=NONE)
        if RUNNING:
            weights = gl.exp2(weights - shift[None, :])
        for piece in gl.static_range(PIECES):
            inside = (queries // (ROWS // PIECES) == piece)[None, :]
            sums = gl.sum(gl.where(inside, weights, 0.0), 1)
            gl.store(strip + piece * pool.bins + bins, sums, mask=bins < end)
