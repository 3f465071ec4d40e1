"""Bins that share no edges with tiles: a tile's columns in blocks, in each of which one bin begins at most.

Keys come from the last to the first, and so do blocks. What a block holds above the place where a bin begins is of that
bin, which is open until then; what it holds below is of the one before.
"""

from triton import constexpr_function
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.bins import bins_of, store_bins


@gluon.jit
def on_either_side(p, edge, wide, start, BLOCK: gl.constexpr):
    """Of each block of a tile, [ROWS, blocks, lanes]: the sum above the place where a bin begins, and the one below it;
    and the edge behind the tile. Where none begins all is above.

    edge  the first key of the bin that the tile's last key is in: subtracting is quicker than multiplying each time
    """
    ROWS: gl.constexpr = p.shape[0]
    BLOCKS: gl.constexpr = p.shape[1] // BLOCK
    x = p.reshape([ROWS, BLOCKS, BLOCK // 8, 4, 2]).permute((0, 1, 3, 2, 4)).reshape([ROWS, BLOCKS, 4, BLOCK // 4])
    layout: gl.constexpr = x.type.layout
    blocks = gl.arange(0, BLOCKS, gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, layout))))[None, :, None, None]
    lanes = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, layout))))[None, None, :, None]
    begins = gl.zeros_like(blocks)
    for i in gl.static_range(BLOCKS):
        column = edge - start - (BLOCKS - 1 - i) * BLOCK
        begins = gl.where(blocks == BLOCKS - 1 - i, column, begins)
        edge -= gl.where(column >= 0, wide, 0)
    PACK: gl.constexpr = BLOCK // 2
    arguments = [x, begins - lanes * 2]
    sums = gl.inline_asm_elementwise(_add(PACK), _operands(PACK), arguments, gl.float32, is_pure=True, pack=PACK)
    each = gl.arange(0, BLOCK // 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, layout))))
    each = each[None, None, None, :]
    # The first two of each lane, where `_add` leaves them: to add -0.0 is to do nothing.
    above, below = gl.sum(gl.where(each == 0, sums, -0.0), 3), gl.sum(gl.where(each == 1, sums, -0.0), 3)
    return above, below, edge


_SUMS = "a0", "b0", "a1", "b1"
"""Above and below the place, of the one row and of the other."""


@constexpr_function
def _operands(pack):
    """Of `_add`: its results, numbers, and places."""
    return ",".join(["=f"] * pack + ["f"] * pack + ["r"] * pack)


@constexpr_function
def _add(pack):
    """Adds up so many numbers of one lane, on either side of a place: of each eight columns two, of two rows each. Only
    the first four results are set, `_SUMS`.

    Each column is asked on which side it is, and its numbers are added there alone: half of what it takes to choose
    between number and zero twice.
    """
    lines = [".reg .pred above; .reg .f32 a0, b0, a1, b1;", *(f"mov.f32 {sum}, 0f00000000;" for sum in _SUMS)]
    for first in range(0, pack, 4):
        for column in (0, 1):
            lines.append(f"setp.le.s32 above, ${2 * pack}, {2 * first + column};")
            for row in (0, 1):
                number = f"${pack + first + 2 * row + column}"
                lines += [f"@above add.f32 a{row}, a{row}, {number};", f"@!above add.f32 b{row}, b{row}, {number};"]
    lines += [f"mov.f32 ${i}, {sum};" for i, sum in enumerate(_SUMS)]
    return "{" + "\n".join(lines) + "}"


@gluon.jit
def close_bins(
    pool,
    scratch,
    above,
    below,
    shift,
    mass,
    bin,
    start,
    BLOCK: gl.constexpr,
    RUNNING: gl.constexpr,
    SCATTER: gl.constexpr,
):
    """Store the bins that begin in a tile, from the last key's `bin` on, of which there is `mass` already: the rest is
    what `on_either_side` has found. Returns what there is of the bin that is open then, and which one that is.
    """
    BLOCKS: gl.constexpr = above.shape[1]
    layout: gl.constexpr = above.type.layout
    blocks = bins_of(above)
    rest = gl.convert_layout(mass, gl.SliceLayout(1, layout))
    sums, which = above, gl.zeros_like(blocks)
    for i in gl.static_range(BLOCKS):
        here = blocks == BLOCKS - 1 - i
        at = here[:, :, None]
        whole = rest + gl.sum(gl.where(at, above, -0.0), 1)
        begins_here = bin * pool.wide >= start + (BLOCKS - 1 - i) * BLOCK
        sums = gl.where(at, whole[:, None, :], sums)
        which = gl.where(here, gl.where(begins_here, bin, pool.bins), which)  # behind the last bin nothing is stored
        rest = gl.where(begins_here, gl.sum(gl.where(at, below, -0.0), 1), whole)
        bin -= gl.where(begins_here, 1, 0)
    store_bins(pool, scratch, sums, shift, 0, which, RUNNING, SCATTER)
    return gl.convert_layout(rest, mass.type.layout), bin
