"""Device functions that sum a tile's weights into key bins whose edges do not coincide with tile edges.

Keys come from the last to the first, and so do blocks. The part of a block above the beginning of a bin belongs to that
bin, which is open until then; the part below belongs to the bin before.
"""

from triton import constexpr_function
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.bins import bin_indices, store_bins


@gluon.jit
def split_at_edges(p, edge, bin_width, start, BLOCK: gl.constexpr):
    """For each block of a tile, [ROWS, blocks, lanes]: the sum above the beginning of a bin, and the sum below it; and
    the edge below the tile. Where no bin begins all is above.

    edge  the first key of the bin that contains the tile's last key: subtracting is faster than multiplying each time
    """
    ROWS: gl.constexpr = p.shape[0]
    BLOCKS: gl.constexpr = p.shape[1] // BLOCK
    x = p.reshape([ROWS, BLOCKS, BLOCK // 8, 4, 2]).permute((0, 1, 3, 2, 4)).reshape([ROWS, BLOCKS, 4, BLOCK // 4])
    layout: gl.constexpr = x.type.layout
    blocks = gl.arange(0, BLOCKS, gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, layout))))[None, :, None, None]
    lanes = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, layout))))[None, None, :, None]
    first_columns = gl.zeros_like(blocks)
    for i in gl.static_range(BLOCKS):
        column = edge - start - (BLOCKS - 1 - i) * BLOCK
        first_columns = gl.where(blocks == BLOCKS - 1 - i, column, first_columns)
        edge -= gl.where(column >= 0, bin_width, 0)
    PACK: gl.constexpr = BLOCK // 2
    arguments = [x, first_columns - lanes * 2]
    sums = gl.inline_asm_elementwise(
        _split_sum_asm(PACK), _asm_operands(PACK), arguments, gl.float32, is_pure=True, pack=PACK
    )
    each = gl.arange(0, BLOCK // 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, layout))))
    each = each[None, None, None, :]
    # The first two of each lane, where the assembly leaves them: adding -0.0 changes nothing.
    above, below = gl.sum(gl.where(each == 0, sums, -0.0), 3), gl.sum(gl.where(each == 1, sums, -0.0), 3)
    return above, below, edge


_SUMS = "a0", "b0", "a1", "b1"
"""Above and below the edge, of the first row and of the second."""


@constexpr_function
def _asm_operands(pack):
    """The operands of the assembly: results, numbers, and positions."""
    return ",".join(["=f"] * pack + ["f"] * pack + ["r"] * pack)


@constexpr_function
def _split_sum_asm(pack):
    """Assembly that adds up `pack` numbers of one lane on either side of a position: two of each eight columns, of two
    rows each. Only the first four results, `_SUMS`, are set.

    For each column one comparison selects the side, and its numbers are added only there: half the cost of selecting
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
def store_finished_bins(
    buffers,
    scratch,
    above,
    below,
    shift,
    bin_sum,
    bin,
    start,
    BLOCK: gl.constexpr,
    AS_LOG: gl.constexpr,
    SCATTER: gl.constexpr,
):
    """Store the bins that begin in a tile, from the last key's `bin` on, which already has `bin_sum`: the rest comes
    from `split_at_edges`. Returns the sum of the bin that is open then, and its index.
    """
    BLOCKS: gl.constexpr = above.shape[1]
    layout: gl.constexpr = above.type.layout
    blocks = bin_indices(above)
    open_sum = gl.convert_layout(bin_sum, gl.SliceLayout(1, layout))
    sums, bin_index = above, gl.zeros_like(blocks)
    for i in gl.static_range(BLOCKS):
        is_block = blocks == BLOCKS - 1 - i
        block_mask = is_block[:, :, None]
        closed_sum = open_sum + gl.sum(gl.where(block_mask, above, -0.0), 1)
        begins_here = bin * buffers.bin_width >= start + (BLOCKS - 1 - i) * BLOCK
        sums = gl.where(block_mask, closed_sum[:, None, :], sums)
        # Beyond the last bin nothing is stored.
        bin_index = gl.where(is_block, gl.where(begins_here, bin, buffers.bins), bin_index)
        open_sum = gl.where(begins_here, gl.sum(gl.where(block_mask, below, -0.0), 1), closed_sum)
        bin -= gl.where(begins_here, 1, 0)
    store_bins(buffers, scratch, sums, shift, 0, bin_index, AS_LOG, SCATTER)
    return gl.convert_layout(open_sum, bin_sum.type.layout), bin
