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
    weighed  what the tile's scores were shifted by, how far that moved, and the factor on sums so far; Σ p, Σ p (s − m)
    """
    shift, moved, fade, parts, of_tile = weighed
    total, mean, mass, bin = so_far
    fade = beside(fade, total)
    of_lanes = gl.convert_layout(gl.sum(parts, 1), total.type.layout)
    if BINS == "narrow":
        store_bins(pool, scratch, parts, shift, start // SHARE, True, SCATTER)
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
def store_bins(pool, scratch, parts, shift, first, RUNNING: gl.constexpr, SCATTER: gl.constexpr):
    """The bins of a tile, [ROWS, bins, lanes], from the `first` on; of the last ones there may be none."""
    if SCATTER and parts.shape[1] > 1:
        _store_each_its_own(pool, scratch, parts, shift, first, RUNNING)
    else:
        _store_all(pool, scratch, gl.sum(parts, 2), shift, first, RUNNING)


@gluon.jit
def _store_all(pool, scratch, masses, shift, first, RUNNING: gl.constexpr):
    """Each lane adds up the bins of all four."""
    ROWS: gl.constexpr = masses.shape[0]
    layout: gl.constexpr = masses.type.layout
    queries = gl.arange(0, ROWS, gl.SliceLayout(1, layout))[:, None]
    bins = first + gl.arange(0, masses.shape[1], gl.SliceLayout(0, layout))[None, :]
    if RUNNING:
        masses = log2(masses) + beside(shift, masses)
    gl.store(scratch + bins * ROWS + queries, masses, mask=bins + queries * 0 < pool.bins)


@gluon.jit
def _store_each_its_own(pool, scratch, parts, shift, first, RUNNING: gl.constexpr):
    """Of four sums each lane adds up one: it gives half of them away, and then half of the rest."""
    ROWS: gl.constexpr = parts.shape[0]
    layout: gl.constexpr = parts.type.layout
    queries = gl.arange(0, ROWS, gl.SliceLayout(1, gl.SliceLayout(2, layout)))[:, None, None]
    bins = gl.arange(0, parts.shape[1], gl.SliceLayout(0, gl.SliceLayout(2, layout)))[None, :, None]
    lanes = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, layout)))[None, None, :]
    everywhere = gl.zeros_like(queries + bins + lanes)
    end = (pool.bins - first) * ROWS
    into = (scratch + first * ROWS).to(gl.int64)
    shift = gl.convert_layout(shift, gl.SliceLayout(1, gl.SliceLayout(2, layout)))[:, None, None]
    arguments = [parts, queries + bins * ROWS, lanes, everywhere + end, shift, everywhere.to(gl.int64) + into]
    STORE: gl.constexpr = _STORE_LOG if RUNNING else _STORE
    gl.inline_asm_elementwise(STORE, _OPERANDS, arguments, dtype=gl.int32, is_pure=False, pack=4)


_OPERANDS = gl.constexpr(",".join(["=r"] * 4 + ["f"] * 4 + ["r"] * 12 + ["f"] * 4 + ["l"] * 4))
_ONE_OF_FOUR = """
    .reg .pred odd, high, there; .reg .b32 lane, at, other; .reg .f32 sum, second, away, got; .reg .b64 place;
    and.b32 lane, $12, 1;
    setp.ne.s32 odd, lane, 0;
    and.b32 lane, $12, 2;
    setp.ne.s32 high, lane, 0;
    selp.f32 sum, $5, $4, odd;
    selp.f32 away, $4, $5, odd;
    shfl.sync.bfly.b32 got, away, 1, 31, -1;
    add.f32 sum, sum, got;
    selp.f32 second, $7, $6, odd;
    selp.f32 away, $6, $7, odd;
    shfl.sync.bfly.b32 got, away, 1, 31, -1;
    add.f32 second, second, got;
    selp.f32 away, sum, second, high;
    selp.f32 sum, second, sum, high;
    shfl.sync.bfly.b32 got, away, 2, 31, -1;
    add.f32 sum, sum, got;
    selp.b32 at, $9, $8, odd;
    selp.b32 other, $11, $10, odd;
    selp.b32 at, other, at, high;
    """
"""$4–7 the sums of this lane, $8–11 where they go, $12 the lane. Then there is one sum, and one place for it."""
_ITS_LOG = """
    selp.f32 second, $21, $20, odd;
    selp.f32 away, $23, $22, odd;
    selp.f32 second, away, second, high;
    lg2.approx.ftz.f32 sum, sum;
    add.f32 sum, sum, second;
    """
"""$20–23 what was taken off the scores."""
_PUT = """
    setp.lt.s32 there, at, $16;
    mad.wide.s32 place, at, 4, $24;
    @there st.global.f32 [place], sum;
    mov.b32 $0, at; mov.b32 $1, at; mov.b32 $2, at; mov.b32 $3, at;
    """
"""$16 where the bins end, $24 the bins; $0–3 do not matter."""
_STORE = gl.constexpr("{" + _ONE_OF_FOUR + _PUT + "}")
_STORE_LOG = gl.constexpr("{" + _ONE_OF_FOUR + _ITS_LOG + _PUT + "}")


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
    # A quarter of the queries in each thread, so that few lanes have to tell each other.
    layout: gl.constexpr = gl.BlockedLayout([1, ROWS // 4], [8, 4], [4, 1], [1, 0])
    queries = gl.arange(0, ROWS, gl.SliceLayout(0, layout))
    is_query = row + queries < T
    shift = gl.convert_layout(gl.where(lse == float("-inf"), 0.0, lse), gl.SliceLayout(0, layout))
    shift = gl.where(is_query, shift, 0.0)  # who is not there may have looked at anything
    into = pool.strips + (head.to(gl.int64) * pool.of_head + strip) * pool.bins
    looked_at = gl.minimum(pool.bins, gl.cdiv(end, pool.wide))
    for first in range(0, pool.bins, AT_ONCE):
        bins = first + gl.arange(0, AT_ONCE, gl.SliceLayout(1, layout))
        places = scratch + bins[:, None] * ROWS + queries[None, :]
        weights = gl.load(places, mask=(bins < looked_at)[:, None], other=NONE)
        weights = gl.where(is_query[None, :], weights, NONE)
        if RUNNING:
            weights = gl.exp2(weights - shift[None, :])
        sums = gl.sum(weights.reshape([AT_ONCE, PIECES, ROWS // PIECES]), 2)
        pieces = gl.arange(0, PIECES, gl.SliceLayout(0, sums.type.layout))[None, :]
        bins = first + gl.arange(0, AT_ONCE, gl.SliceLayout(1, sums.type.layout))[:, None]
        gl.store(into + pieces * pool.bins + bins, sums, mask=(strip + pieces < pool.of_head) & (bins < pool.bins))
