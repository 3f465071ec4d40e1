"""The map inside the forward: sums over bins of keys in the loop, over bins of queries once the LSE is known.

The sum of p over a bin is stored when the bin ends, as m + log2 Σ p, in scratch memory of the program, [bin, row], so
that stores are contiguous. Once the LSE is known, the program reads its scratch again and writes the sums of the
weights over the rows of each bin of queries to strips of the tile, one strip for each bin it touches; `sum_strips` adds
them up. Programs with scratch process several tiles, so that scratch does not grow with the sequence.

BINS: how bins of keys are aligned to tiles of keys:
"wide"    a bin is a number of whole tiles
"narrow"  a tile is a number of whole bins, each BIN_UNIT wide
"uneven"  anything else; at most BIN_UNIT bins end in one tile
BIN_ROWS: the height of a bin of queries where a tile is a number of whole bins; 0 otherwise.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.division import Bins
from regard.kernels.triton.support import power_of_two
from regard.kernels.triton.tiles import on_device


class MapBuffers(NamedTuple):
    """The buffers and sizes that the kernel needs for a map.

    strips      [head, tile and bin of queries, bin], beginning with `first_head`; `strips_per_head` of each head: see
                `sum_strips`
    bin_width   keys of a bin; bin_height: queries of a bin; bins: number of bins of keys
    """

    scratch: Any
    strips: Any
    first_head: int
    strips_per_head: int
    bin_width: int
    bin_height: int
    bins: int


def bin_layout(bins: Bins, rows: int, keys: int) -> dict[str, Any]:
    """BINS, BIN_UNIT and BIN_ROWS for tiles of `rows` queries and `keys` keys.

    >>> bin_layout(Bins(height=8, width=128, R=4, C=4), rows=16, keys=64)
    {'BINS': 'wide', 'BIN_UNIT': 1, 'BIN_ROWS': 8}
    >>> bin_layout(Bins(height=20, width=20, R=4, C=4), rows=16, keys=64)
    {'BINS': 'uneven', 'BIN_UNIT': 4, 'BIN_ROWS': 0}
    """
    bin_rows = bins.height if rows % bins.height == 0 else 0
    if bins.width % keys == 0:
        return {"BINS": "wide", "BIN_UNIT": 1, "BIN_ROWS": bin_rows}
    if keys % bins.width == 0:
        return {"BINS": "narrow", "BIN_UNIT": bins.width, "BIN_ROWS": bin_rows}
    return {"BINS": "uneven", "BIN_UNIT": -(-keys // bins.width), "BIN_ROWS": bin_rows}


def max_strips(T: int, bins: Bins, rows: int) -> int:
    """The largest number of strips of a head, for tiles of `rows` rows.

    The index of a strip is its tile plus its bin of queries: consecutive tiles share at most one bin, so that no two
    strips have the same index.
    """
    return -(-T // rows) + bins.R


def sum_strips(strips: Tensor, bins: Bins, rows: int, sums: Tensor) -> None:
    """Write the sums over bins of queries, (heads, R, C), added up from strips of tiles of `rows` rows, (heads,
    `max_strips`, C).
    """
    heads, strips_per_head, C = strips.shape
    block = min(power_of_two(C), 1024)
    with on_device(sums):
        _sum_strips_kernel[(heads * bins.R, triton.cdiv(C, block))](
            strips, sums, strips_per_head, bins.height, bins.R, C, ROWS=rows, BLOCK=block
        )


@triton.jit
def _sum_strips_kernel(strips, sums, strips_per_head, bin_height, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """One bin of queries: add the tiles that it touches, in order, so that sums are reproducible."""
    at = tl.cast(tl.program_id(0), tl.int64)
    head, r = at // R, tl.program_id(0) % R
    bins = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tile in range(r * bin_height // ROWS, tl.minimum(tl.cdiv((r + 1) * bin_height, ROWS), strips_per_head - R)):
        total += tl.load(strips + (head * strips_per_head + tile + r) * C + bins, mask=bins < C, other=0.0)
    tl.store(sums + at * C + bins, total, mask=bins < C)


@triton.jit
def _scratch(buffers, bins, ROWS: tl.constexpr):
    """Addresses of these bins of the program's rows, with bins along the first axis; for one bin: rows alone."""
    program_scratch = buffers.scratch + tl.cast(tl.program_id(0), tl.int64) * (buffers.bins * ROWS)
    return program_scratch + bins * ROWS + tl.arange(0, ROWS)


@triton.jit
def add_to_bins(
    buffers,
    start,
    p,
    row_sum,
    rescale,
    shift,
    bin_sum,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    BINS: tl.constexpr,
    BIN_UNIT: tl.constexpr,
):
    """Store the bins that end in this tile of keys; returns Σ p of the bin that continues.

    Stored under a scalar `if` at the end of a bin: a masked store for every tile costs twice as much.
    """
    if BINS == "narrow":
        sums = tl.trans(tl.sum(tl.reshape(p, (ROWS, KEYS // BIN_UNIT, BIN_UNIT)), 2))
        bins = start // BIN_UNIT + tl.arange(0, KEYS // BIN_UNIT)[:, None]
        tl.store(_scratch(buffers, bins, ROWS), shift[None, :] + tl.log2(sums), mask=bins < buffers.bins)
    elif BINS == "wide":
        bin_sum = bin_sum * rescale + row_sum
        if (start + KEYS) % buffers.bin_width == 0:
            tl.store(_scratch(buffers, start // buffers.bin_width, ROWS), shift + tl.log2(bin_sum))
            bin_sum = tl.zeros_like(bin_sum)
    else:
        bin_sum = bin_sum * rescale
        first, last = start // buffers.bin_width, tl.minimum((start + KEYS) // buffers.bin_width, buffers.bins)
        if first == last:
            bin_sum += row_sum
        else:
            columns = start + tl.arange(0, KEYS)[None, :]
            for i in tl.static_range(BIN_UNIT):
                if first + i < last:
                    inside = (columns >= (first + i) * buffers.bin_width) & (
                        columns < (first + i + 1) * buffers.bin_width
                    )
                    bin_sum += tl.sum(tl.where(inside, p, 0.0), 1)
                    tl.store(_scratch(buffers, first + i, ROWS), shift + tl.log2(bin_sum))
                    bin_sum = tl.zeros_like(bin_sum)
            bin_sum += tl.sum(tl.where(columns >= last * buffers.bin_width, p, 0.0), 1)
    return bin_sum


@triton.jit
def store_last_bin(buffers, high, m, bin_sum, ROWS: tl.constexpr, BINS: tl.constexpr):
    """Store the bin that had not ended at the last key, `high`."""
    if BINS != "narrow":  # noqa: SIM102 - known when compiled; the other is not
        if high // buffers.bin_width < buffers.bins:
            shift = tl.where(m == float("-inf"), 0.0, m)
            tl.store(_scratch(buffers, high // buffers.bin_width, ROWS), shift + tl.log2(bin_sum))
    tl.debug_barrier()  # other threads load what this one stored


@triton.jit
def sum_bin_rows(
    buffers, head, tile, lse, low, high, T, ROWS: tl.constexpr, BINS: tl.constexpr, BIN_ROWS: tl.constexpr
):
    """The tile's weights in bins of keys, summed over the rows of each bin of queries. Strips must be zero before."""
    BINS_PER_STEP: tl.constexpr = 32
    rows = tile * ROWS + tl.arange(0, ROWS)
    shift = tl.where(lse == float("-inf"), 0.0, lse)
    first = tile * ROWS // buffers.bin_height
    pieces = (tl.minimum(tile * ROWS + ROWS, T) - 1) // buffers.bin_height - first + 1
    strip = (
        buffers.strips
        + (tl.cast(head - buffers.first_head, tl.int64) * buffers.strips_per_head + tile + first) * buffers.bins
    )
    end = tl.minimum(buffers.bins, high // buffers.bin_width + 1)
    if BINS == "narrow":
        end = tl.minimum(buffers.bins, high // buffers.bin_width)
    for c in range(low // buffers.bin_width, end, BINS_PER_STEP):
        bins = c + tl.arange(0, BINS_PER_STEP)[:, None]
        log_sums = tl.load(_scratch(buffers, bins, ROWS), mask=(bins < end) & (rows < T)[None, :], other=float("-inf"))
        weights = tl.exp2(log_sums - shift[None, :])  # bins rows
        if BIN_ROWS:
            sums = tl.sum(tl.reshape(weights, (BINS_PER_STEP, ROWS // BIN_ROWS, BIN_ROWS)), 2)
            piece = tl.arange(0, ROWS // BIN_ROWS)[None, :]
            tl.store(strip + piece * buffers.bins + bins, sums, mask=(bins < end) & (piece < pieces))
        else:
            bins = c + tl.arange(0, BINS_PER_STEP)
            for piece in range(pieces):
                inside = (rows // buffers.bin_height == first + piece)[None, :]
                sums = tl.sum(tl.where(inside, weights, 0.0), 1)
                tl.store(strip + piece * buffers.bins + bins, sums, mask=bins < end)
    tl.debug_barrier()  # before the scratch is overwritten
