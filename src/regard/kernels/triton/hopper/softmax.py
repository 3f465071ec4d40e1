"""Softmax of a tile of scores relative to the running maximum, and the sums of it.

In two parts: `softmax_tile` computes what the next product waits for, `accumulate` everything else.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.bins import bin_indices, split_at_edges, store_bin, store_bins, store_finished_bins
from regard.kernels.triton.hopper.tiles import as_column, group_maxima, sum_by_lane


@gluon.jit
def softmax_tile(
    args,
    buffers,
    s,
    m,
    group_max,
    edge,
    row,
    start,
    MASKED: gl.constexpr,
    CAUSAL: gl.constexpr,
    ENTROPY: gl.constexpr,
    TOP: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
):
    """p = 2^(s − m), the new maximum, that of each group of keys, the edge below the tile, the terms for `accumulate`.

    row, start  the first query and the first key of the tile
    edge        see `split_at_edges`; only for bins that are not aligned to tiles
    """
    scores: gl.constexpr = s.type.layout
    if MASKED:
        columns = start + gl.arange(0, s.shape[1], gl.SliceLayout(0, scores))
        visible = (columns < args.S)[None, :]
        if CAUSAL:
            rows = row + gl.arange(0, s.shape[0], gl.SliceLayout(1, scores))
            visible = visible & (columns[None, :] <= rows[:, None] + args.edge)
        s = gl.where(visible, s, float("-inf"))
    maxima = group_maxima(s)  # not of all keys at once: each maximum waits for the one before
    if TOP > 0:
        group_max = gl.maximum(group_max, maxima)
    new_max = gl.maximum(m, gl.convert_layout(gl.max(maxima, 1), m.type.layout) * args.scale)
    shift = new_max
    if MASKED:
        shift = gl.where(new_max == float("-inf"), 0.0, new_max)  # -inf - -inf would be NaN
    x = s * args.scale - shift[:, None]
    p = gl.exp2(x)
    if BINS == "uneven":
        parts, below, edge = split_at_edges(p, edge, buffers.bin_width, start, BIN_UNIT)
    else:
        parts = sum_by_lane(p, s.shape[1] // BIN_UNIT if BINS == "narrow" else 1)
        below = parts
    score_sum = parts
    if ENTROPY:
        if MASKED:
            x = gl.where(x == float("-inf"), 0.0, x)
        score_sum = sum_by_lane(p * x, 1)
    max_change = m - shift
    return p, new_max, group_max, edge, (shift, max_change, gl.exp2(max_change), parts, below, score_sum)


@gluon.jit
def accumulate(
    buffers,
    totals,
    tile_terms,
    scratch,
    start,
    ENTROPY: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
    SCATTER: gl.constexpr,
):
    """Σ p, Σ p (s − m) and Σ p of the current bin, with a tile added; complete bins are stored.

    Keys come from the last to the first. BINS and BIN_UNIT are those of `pooling`.
    tile_terms  the shift of the tile's scores, its change, and the factor for earlier sums; Σ p of each part, for
                unaligned bins above and below the edge; Σ p (s − m)
    """
    shift, max_change, rescale, parts, below, tile_score_sum = tile_terms
    total, score_sum, bin_sum, bin = totals
    rescale = as_column(rescale, total)
    lane_sums = gl.convert_layout(gl.sum(parts, 1), total.type.layout)
    if BINS == "narrow":
        store_bins(buffers, scratch, parts, shift, start // BIN_UNIT, bin_indices(parts), True, SCATTER)
    if BINS == "uneven":
        lane_sums += gl.convert_layout(gl.sum(below, 1), total.type.layout)
        bin_sum, bin = store_finished_bins(
            buffers, scratch, parts, below, shift, bin_sum * rescale, bin, start, BIN_UNIT, True, SCATTER
        )
    if BINS == "wide":
        bin_sum = bin_sum * rescale + lane_sums
        if start == bin * buffers.bin_width:
            store_bin(scratch, gl.sum(bin_sum, 1), shift, bin, True)
            bin_sum = gl.zeros_like(bin_sum)
            bin -= 1
    if ENTROPY:
        finite_change = as_column(gl.where(max_change == float("-inf"), 0.0, max_change), total)
        score_sum = rescale * (score_sum + total * finite_change) + gl.convert_layout(
            gl.sum(tile_score_sum, 1), total.type.layout
        )
    return total * rescale + lane_sums, score_sum, bin_sum, bin
