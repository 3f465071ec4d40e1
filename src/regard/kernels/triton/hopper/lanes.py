"""Layout of a tile of scores over lanes: a row is in four lanes, each with two of every eight columns."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


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
