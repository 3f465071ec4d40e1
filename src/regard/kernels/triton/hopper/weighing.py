"""What becomes of a tile of scores: weights under the running maximum, and what is counted of them.

In two parts: `weigh` makes what the next product waits for, `count` what nobody waits for.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


class Pool(NamedTuple):
    """What the map needs; without a map the numbers do not matter.

    scratch  [program, consumer, bin, query]
    strips   [head, piece of a consumer's tile, bin], from this launch's first head on; so many `of_head`
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
    return gl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=gl.float32, is_pure=True, pack=1)


@gluon.jit
def by_lanes(x, PARTS: gl.constexpr):
    """Sums over each part of a tile's columns, [ROWS, PARTS, 4]: one of each of the four lanes that a row lies in."""
    ROWS: gl.constexpr = x.shape[0]
    EACH: gl.constexpr = x.shape[1] // PARTS
    x = x.reshape([ROWS, PARTS, EACH // 8, 4, 2]).permute((0, 1, 3, 2, 4)).reshape([ROWS, PARTS, 4, EACH // 4])
    return gl.sum(x, 3)


@gluon.jit
def group_maxima(s):
    """The maxima of sixteen groups of keys, [ROWS, 16]: neighbours are in different ones, and no lane asks another."""
    ROWS: gl.constexpr = s.shape[0]
    EACH: gl.constexpr = s.shape[1] // 16
    return gl.max(s.reshape([ROWS, EACH, 2, 4, 2]).permute((0, 2, 3, 4, 1)).reshape([ROWS, 16, EACH]), 2)


@gluon.jit
def least_of(best, TOP: gl.constexpr):
    """The TOP-th largest maximum of a group, or a smaller one: so many keys of a row score that much."""
    for _ in gl.static_range(TOP - 1):
        best = gl.where(best == gl.max(best, 1)[:, None], float("-inf"), best)
    return gl.max(best, 1)


@gluon.jit
def beside(x, like):
    """A number of each row, as it goes with a tensor of rows and lanes."""
    return gl.convert_layout(x, gl.SliceLayout(1, like.type.layout))[:, None]


@gluon.jit
def weigh(
    task,
    s,
    m,
    best,
    row,
    start,
    MASKED: gl.constexpr,
    CAUSAL: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    PARTS: gl.constexpr,
):
    """p = 2^(s − m), the new maximum, that of each group of keys, and what is counted: see `count`.

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
    maxima = group_maxima(s)  # not of all keys at once: a maximum waits for the one before
    if TOP > 0:
        best = gl.maximum(best, maxima)
    highest = gl.maximum(m, gl.convert_layout(gl.max(maxima, 1), m.type.layout) * task.scale)
    shift = highest
    if MASKED:
        shift = gl.where(highest == float("-inf"), 0.0, highest)  # -inf - -inf would be NaN
    x = s * task.scale - shift[:, None]
    p = gl.exp2(x)
    parts = by_lanes(p, PARTS)
    mean = parts
    if ENTROPY:
        if MASKED:
            x = gl.where(x == float("-inf"), 0.0, x)
        mean = by_lanes(p * x, 1)
    moved = m - shift
    return p, highest, best, (shift, moved, gl.exp2(moved), parts, mean)


@gluon.jit
def count(pool, so_far, weighed, scratch, start, ENTROPY: gl.constexpr, BINS: gl.constexpr, SHARE: gl.constexpr):
    """Σ p, Σ p (s − m) and Σ p of the bin that is open, with a tile added; bins that are complete are stored.

    Keys come from the last to the first. BINS and SHARE are those of `pooling`.
    weighed  what the tile's scores were shifted by, how far that moved, and the factor on sums so far; Σ p, Σ p (s − m)
    """
    shift, moved, fade, parts, of_tile = weighed
    total, mean, mass, bin = so_far
    fade = beside(fade, total)
    of_lanes = gl.convert_layout(gl.sum(parts, 1), total.type.layout)
    if BINS == "narrow":
        store_bins(pool, scratch, gl.sum(parts, 2), shift, start // SHARE, True)
    if BINS == "wide":
        mass = mass * fade + of_lanes
        if start == bin * pool.wide:
            store_bin(scratch, gl.sum(mass, 1), shift, bin, True)
            mass = gl.zeros_like(mass)
            bin -= 1
    if ENTROPY:
        still = beside(gl.where(moved == float("-inf"), 0.0, moved), total)
        mean = fade * (mean + total * still) + gl.convert_layout(gl.sum(of_tile, 1), total.type.layout)
    return total * fade + of_lanes, mean, mass, bin


@gluon.jit
def store_bins(pool, scratch, masses, shift, first, RUNNING: gl.constexpr):
    """The bins of a tile, [ROWS, bins]; of the last ones there may be none."""
    ROWS: gl.constexpr = masses.shape[0]
    layout: gl.constexpr = masses.type.layout
    queries = gl.arange(0, ROWS, gl.SliceLayout(1, layout))[:, None]
    bins = first + gl.arange(0, masses.shape[1], gl.SliceLayout(0, layout))[None, :]
    if RUNNING:
        masses = log2(masses) + beside(shift, masses)
    gl.store(scratch + bins * ROWS + queries, masses, mask=bins + queries * 0 < pool.bins)


@gluon.jit
def store_bin(scratch, mass, shift, bin, RUNNING: gl.constexpr):
    """The bin that ends here."""
    ROWS: gl.constexpr = mass.shape[0]
    if RUNNING:
        mass = log2(mass) + gl.convert_layout(shift, mass.type.layout)
    gl.store(scratch + bin * ROWS + gl.arange(0, ROWS, mass.type.layout), mass)


@gluon.jit
def pool_rows(pool, scratch, head, strip, lse, row, end, T, RUNNING: gl.constexpr, PIECES: gl.constexpr):
    """The weights of a consumer's queries in each bin, summed over each piece of the queries: into strips of `head`.

    end  of the keys that were looked at: no bin behind it holds anything
    """
    ROWS: gl.constexpr = lse.shape[0]
    AT_ONCE: gl.constexpr = 64
    NONE: gl.constexpr = float("-inf") if RUNNING else 0.0
    layout: gl.constexpr = gl.BlockedLayout([1, ROWS // 32], [1, 32], [4, 1], [1, 0])
    queries = gl.arange(0, ROWS, gl.SliceLayout(0, layout))
    shift = gl.convert_layout(gl.where(lse == float("-inf"), 0.0, lse), gl.SliceLayout(0, layout))
    shift = gl.where(row + queries < T, shift, 0.0)  # who is not there may have looked at anything
    into = pool.strips + (head.to(gl.int64) * pool.of_head + strip) * pool.bins
    for first in range(0, pool.bins, AT_ONCE):
        bins = first + gl.arange(0, AT_ONCE, gl.SliceLayout(1, layout))
        there = (bins < gl.minimum(pool.bins, gl.cdiv(end, pool.wide)))[:, None] & (row + queries < T)[None, :]
        weights = gl.load(scratch + bins[:, None] * ROWS + queries[None, :], mask=there, other=NONE)
        if RUNNING:
            weights = gl.exp2(weights - shift[None, :])
        for piece in gl.static_range(PIECES):
            inside = (queries // (ROWS // PIECES) == piece)[None, :]
            sums = gl.sum(gl.where(inside, weights, 0.0), 1)
            is_row = bins * 0 + strip + piece < pool.of_head
            gl.store(into + piece * pool.bins + bins, sums, mask=is_row & (bins < pool.bins))
