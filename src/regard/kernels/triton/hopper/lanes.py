"""A tile of scores as it lies in lanes: a row in four of them, of each eight columns two in each."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


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
