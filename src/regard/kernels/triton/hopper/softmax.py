"""What becomes of a tile of scores: weights under the running maximum, and what is counted of them.

In two parts: `weigh` makes what the next product waits for, `count` what nobody waits for.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.bins import bins_of, store_bin, store_bins
from regard.kernels.triton.hopper.lanes import beside, by_lanes, group_maxima
from regard.kernels.triton.hopper.unaligned_bins import close_bins, on_either_side


@gluon.jit
def weigh(
    task,
    pool,
    s,
    m,
    best,
    edge,
    row,
    start,
    MASKED: gl.constexpr,
    CAUSAL: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
):
    """p = 2^(s − m), the new maximum, that of each group of keys, the edge behind the tile, and what is counted: see
    `count`.

    row, start  the first query and the first key of the tile
    edge        see `on_either_side`; only where bins share none with tiles
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
    if BINS == "uneven":
        parts, below, edge = on_either_side(p, edge, pool.wide, start, SHARE)
    else:
        parts = by_lanes(p, s.shape[1] // SHARE if BINS == "narrow" else 1)
        below = parts
    mean = parts
    if ENTROPY:
        if MASKED:
            x = gl.where(x == float("-inf"), 0.0, x)
        mean = by_lanes(p * x, 1)
    moved = m - shift
    return p, highest, best, edge, (shift, moved, gl.exp2(moved), parts, below, mean)


@gluon.jit
def count(
    pool,
    so_far,
    weighed,
    scratch,
    start,
    ENTROPY: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
    SCATTER: gl.constexpr,
):
    """Σ p, Σ p (s − m) and Σ p of the bin that is open, with a tile added; bins that are complete are stored.

    Keys come from the last to the first. BINS and SHARE are those of `pooling`.
    weighed  what the tile's scores were shifted by, how far that moved, and the factor on sums so far; Σ p of each
             part, where bins begin anywhere above that place and below it; Σ p (s − m)
    """
    shift, moved, fade, parts, below, of_tile = weighed
    total, mean, mass, bin = so_far
    fade = beside(fade, total)
    of_lanes = gl.convert_layout(gl.sum(parts, 1), total.type.layout)
    if BINS == "narrow":
        store_bins(pool, scratch, parts, shift, start // SHARE, bins_of(parts), True, SCATTER)
    if BINS == "uneven":
        of_lanes += gl.convert_layout(gl.sum(below, 1), total.type.layout)
        mass, bin = close_bins(pool, scratch, parts, below, shift, mass * fade, bin, start, SHARE, True, SCATTER)
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
