"""Sums over bins of keys, as a consumer stores them in scratch of its own, and their sums over bins of queries.

RUNNING: they are stored as logarithms with base 2, since the LSE is not known yet; else as weights.
"""

from typing import Any, NamedTuple

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.lanes import beside, log2


class Pool(NamedTuple):
    """What the map needs; without a map the numbers do not matter.

    scratch  [program, consumer, bin, query]
    strips   [head, piece of a consumer's tile, bin], from this launch's first head on; so many `of_head`
    high     queries of a bin; wide  keys; bins  of keys
    """

    scratch: Any
    strips: Any
    of_head: int
    high: int
    wide: int
    bins: int


@gluon.jit
def store_bins(pool, scratch, parts, shift, first, bins, RUNNING: gl.constexpr, SCATTER: gl.constexpr):
    """Sums over bins, [ROWS, bins, lanes]; `bins`, [1, bins], says which ones, counted from the `first` on. What would
    lie behind the last one is left out.
    """
    if RUNNING and SCATTER and parts.shape[1] > 1:
        _store_each_its_own(pool, scratch, parts, shift, first, bins)
    else:
        _store_all(pool, scratch, gl.sum(parts, 2), shift, first + bins, RUNNING)


@gluon.jit
def _store_all(pool, scratch, masses, shift, bins, RUNNING: gl.constexpr):
    """Each lane adds up the bins of all four."""
    ROWS: gl.constexpr = masses.shape[0]
    queries = gl.arange(0, ROWS, gl.SliceLayout(1, masses.type.layout))[:, None]
    if RUNNING:
        masses = log2(masses) + beside(shift, masses)
    gl.store(scratch + bins * ROWS + queries, masses, mask=bins + queries * 0 < pool.bins)


@gluon.jit
def _store_each_its_own(pool, scratch, parts, shift, first, bins):
    """Of four sums each lane adds up one: it gives half of them away, and then half of the rest."""
    ROWS: gl.constexpr = parts.shape[0]
    layout: gl.constexpr = parts.type.layout
    queries = gl.arange(0, ROWS, gl.SliceLayout(1, gl.SliceLayout(2, layout)))[:, None, None]
    lanes = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, layout)))[None, None, :]
    bins = bins[:, :, None]
    everywhere = gl.zeros_like(queries + bins + lanes)
    end = (pool.bins - first) * ROWS
    into = (scratch + first * ROWS).to(gl.int64)
    shift = gl.convert_layout(shift, gl.SliceLayout(1, gl.SliceLayout(2, layout)))[:, None, None]
    arguments = [parts, queries + bins * ROWS, lanes, everywhere + end, shift, everywhere.to(gl.int64) + into]
    gl.inline_asm_elementwise(_STORE, _OPERANDS, arguments, dtype=gl.int32, is_pure=False, pack=4)


_OPERANDS = gl.constexpr(",".join(["=r"] * 4 + ["f"] * 4 + ["r"] * 12 + ["f"] * 4 + ["l"] * 4))
_STORE = gl.constexpr(
    """{
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
    selp.f32 second, $21, $20, odd;
    selp.f32 away, $23, $22, odd;
    selp.f32 second, away, second, high;
    lg2.approx.ftz.f32 sum, sum;
    add.f32 sum, sum, second;
    setp.lt.s32 there, at, $16;
    mad.wide.s32 place, at, 4, $24;
    @there st.global.f32 [place], sum;
    mov.b32 $0, at; mov.b32 $1, at; mov.b32 $2, at; mov.b32 $3, at;
    }"""
)
"""$0–3 do not matter; $4–7 the sums of this lane, $8–11 where they go, $12 the lane, $16 where the bins end, $20–23
what was taken off the scores, $24 the bins.
"""


@gluon.jit
def store_bin(scratch, mass, shift, bin, RUNNING: gl.constexpr):
    """The bin that ends here."""
    ROWS: gl.constexpr = mass.shape[0]
    if RUNNING:
        mass = log2(mass) + gl.convert_layout(shift, mass.type.layout)
    gl.store(scratch + bin * ROWS + gl.arange(0, ROWS, mass.type.layout), mass)


@gluon.jit
def bins_of(parts):
    """The bins of a tile, [1, bins], from its first on."""
    return gl.arange(0, parts.shape[1], gl.SliceLayout(0, gl.SliceLayout(2, parts.type.layout)))[None, :]


@gluon.jit
def pool_rows(pool, scratch, head, row, lse, end, T, RUNNING: gl.constexpr, PIECES: gl.constexpr):
    """The weights of a consumer's queries, from `row` on, in each bin, summed over each piece of the queries: into
    strips of `head`.

    PIECES  so many, each a bin of its own; or 0: they end where bins of queries do, and lie as `strips_of_head` says
    end     of the keys that were looked at: no bin behind it holds anything
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
    strip = row // ROWS * PIECES
    if PIECES == 0:
        strip = row // ROWS + row // pool.high
    into = pool.strips + (head.to(gl.int64) * pool.of_head + strip) * pool.bins
    looked_at = gl.minimum(pool.bins, gl.cdiv(end, pool.wide))
    for first in range(0, pool.bins, AT_ONCE):
        bins = first + gl.arange(0, AT_ONCE, gl.SliceLayout(1, layout))
        places = scratch + bins[:, None] * ROWS + queries[None, :]
        weights = gl.load(places, mask=(bins < looked_at)[:, None], other=NONE)
        weights = gl.where(is_query[None, :], weights, NONE)
        if RUNNING:
            weights = gl.exp2(weights - shift[None, :])
        if PIECES > 0:
            sums = gl.sum(weights.reshape([AT_ONCE, PIECES, ROWS // PIECES]), 2)
            pieces = gl.arange(0, PIECES, gl.SliceLayout(0, sums.type.layout))[None, :]
            bins = first + gl.arange(0, AT_ONCE, gl.SliceLayout(1, sums.type.layout))[:, None]
            gl.store(into + pieces * pool.bins + bins, sums, mask=(strip + pieces < pool.of_head) & (bins < pool.bins))
        else:
            begin, piece = row // pool.high * pool.high - row, 0
            while (begin < gl.minimum(ROWS, T - row)) & (row < T):
                inside = (queries >= begin) & (queries < begin + pool.high)
                sums = gl.sum(gl.where(inside[None, :], weights, 0.0), 1)
                gl.store(into + piece * pool.bins + bins, sums, mask=bins < pool.bins)
                begin += pool.high
                piece += 1
