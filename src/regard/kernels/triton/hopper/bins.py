"""Sums over bins of keys, stored by a consumer in its own scratch memory, and their sums over bins of queries.

AS_LOG: they are stored as base-2 logarithms, because the LSE is not known yet; otherwise as weights.

Keys come from the last to the first, and so do blocks. Where bins begin anywhere, the part of a block above the
beginning of a bin belongs to that bin, which is open until then; the part below belongs to the bin before.
"""

from typing import Any, NamedTuple

from triton import constexpr_function
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.tiles import as_column, log2


class MapBuffers(NamedTuple):
    """The buffers and sizes for a map; without a map they are not used.

    scratch      [program, consumer, bin, query]
    strips       [head, piece of a consumer's tile, bin], beginning with this launch's first head; `strips_per_head` of
                 each
    bin_height   queries of a bin; bin_width: keys of a bin; bins: number of bins of keys
    """

    scratch: Any
    strips: Any
    strips_per_head: int
    bin_height: int
    bin_width: int
    bins: int


@gluon.jit
def store_bins(buffers, scratch, parts, shift, first, bins, AS_LOG: gl.constexpr, SCATTER: gl.constexpr):
    """Store sums over bins, [ROWS, bins, lanes]; `bins`, [1, bins], are their indices, relative to `first`. Bins beyond
    the last one are skipped.
    """
    if AS_LOG and SCATTER and parts.shape[1] > 1:
        _store_scattered(buffers, scratch, parts, shift, first, bins)
    else:
        _store_row_sums(buffers, scratch, gl.sum(parts, 2), shift, first + bins, AS_LOG)


@gluon.jit
def _store_row_sums(buffers, scratch, sums, shift, bins, AS_LOG: gl.constexpr):
    """Each lane adds up the bins of all four lanes."""
    ROWS: gl.constexpr = sums.shape[0]
    queries = gl.arange(0, ROWS, gl.SliceLayout(1, sums.type.layout))[:, None]
    if AS_LOG:
        sums = log2(sums) + as_column(shift, sums)
    gl.store(scratch + bins * ROWS + queries, sums, mask=bins + queries * 0 < buffers.bins)


@gluon.jit
def _store_scattered(buffers, scratch, parts, shift, first, bins):
    """Each lane adds up one of four sums: it exchanges half of them, and then half of the rest."""
    ROWS: gl.constexpr = parts.shape[0]
    layout: gl.constexpr = parts.type.layout
    queries = gl.arange(0, ROWS, gl.SliceLayout(1, gl.SliceLayout(2, layout)))[:, None, None]
    lanes = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, layout)))[None, None, :]
    bins = bins[:, :, None]
    zeros = gl.zeros_like(queries + bins + lanes)
    end = (buffers.bins - first) * ROWS
    target = (scratch + first * ROWS).to(gl.int64)
    shift = gl.convert_layout(shift, gl.SliceLayout(1, gl.SliceLayout(2, layout)))[:, None, None]
    arguments = [parts, queries + bins * ROWS, lanes, zeros + end, shift, zeros.to(gl.int64) + target]
    gl.inline_asm_elementwise(_STORE_ASM, _OPERANDS, arguments, dtype=gl.int32, is_pure=False, pack=4)


_OPERANDS = gl.constexpr(",".join(["=r"] * 4 + ["f"] * 4 + ["r"] * 12 + ["f"] * 4 + ["l"] * 4))
_STORE_ASM = gl.constexpr(
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
"""$0–3 are unused; $4–7 the sums of this lane, $8–11 their offsets, $12 the lane, $16 the end of the bins, $20–23 the
shift of the scores, $24 the address of the bins.
"""


@gluon.jit
def store_bin(scratch, bin_sum, shift, bin, AS_LOG: gl.constexpr):
    """Store the bin that ends here."""
    ROWS: gl.constexpr = bin_sum.shape[0]
    if AS_LOG:
        bin_sum = log2(bin_sum) + gl.convert_layout(shift, bin_sum.type.layout)
    gl.store(scratch + bin * ROWS + gl.arange(0, ROWS, bin_sum.type.layout), bin_sum)


@gluon.jit
def bin_indices(parts):
    """The indices of the bins of a tile, [1, bins], from 0."""
    return gl.arange(0, parts.shape[1], gl.SliceLayout(0, gl.SliceLayout(2, parts.type.layout)))[None, :]


@gluon.jit
def sum_bin_rows(buffers, scratch, head, row, lse, end, T, AS_LOG: gl.constexpr, PIECES: gl.constexpr):
    """Sum the weights of a consumer's queries from `row` on, by bin, over pieces of the queries, into strips of `head`.

    PIECES  their number, each a bin of its own; or 0: they end where bins of queries do, and are stored as in
            `max_strips`
    end     the end of the keys that were processed: bins beyond it are empty
    """
    ROWS: gl.constexpr = lse.shape[0]
    BINS_PER_STEP: gl.constexpr = 64
    EMPTY: gl.constexpr = float("-inf") if AS_LOG else 0.0
    # A quarter of the queries in each thread, so that few lanes have to exchange sums.
    layout: gl.constexpr = gl.BlockedLayout([1, ROWS // 4], [8, 4], [4, 1], [1, 0])
    queries = gl.arange(0, ROWS, gl.SliceLayout(0, layout))
    in_range = row + queries < T
    shift = gl.convert_layout(gl.where(lse == float("-inf"), 0.0, lse), gl.SliceLayout(0, layout))
    shift = gl.where(in_range, shift, 0.0)  # rows beyond the end may hold any number
    first_strip = row // ROWS * PIECES
    if PIECES == 0:
        first_strip = row // ROWS + row // buffers.bin_height
    target = buffers.strips + (head.to(gl.int64) * buffers.strips_per_head + first_strip) * buffers.bins
    end_bin = gl.minimum(buffers.bins, gl.cdiv(end, buffers.bin_width))
    for first in range(0, buffers.bins, BINS_PER_STEP):
        bins = first + gl.arange(0, BINS_PER_STEP, gl.SliceLayout(1, layout))
        addresses = scratch + bins[:, None] * ROWS + queries[None, :]
        weights = gl.load(addresses, mask=(bins < end_bin)[:, None], other=EMPTY)
        weights = gl.where(in_range[None, :], weights, EMPTY)
        if AS_LOG:
            weights = gl.exp2(weights - shift[None, :])
        if PIECES > 0:
            sums = gl.sum(weights.reshape([BINS_PER_STEP, PIECES, ROWS // PIECES]), 2)
            pieces = gl.arange(0, PIECES, gl.SliceLayout(0, sums.type.layout))[None, :]
            bins = first + gl.arange(0, BINS_PER_STEP, gl.SliceLayout(1, sums.type.layout))[:, None]
            gl.store(
                target + pieces * buffers.bins + bins,
                sums,
                mask=(first_strip + pieces < buffers.strips_per_head) & (bins < buffers.bins),
            )
        else:
            begin, piece = row // buffers.bin_height * buffers.bin_height - row, 0
            while (begin < gl.minimum(ROWS, T - row)) & (row < T):
                in_piece = (queries >= begin) & (queries < begin + buffers.bin_height)
                sums = gl.sum(gl.where(in_piece[None, :], weights, 0.0), 1)
                gl.store(target + piece * buffers.bins + bins, sums, mask=bins < buffers.bins)
                begin += buffers.bin_height
                piece += 1


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
