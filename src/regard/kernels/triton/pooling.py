"""The map inside the forward: sums over bins of keys as the keys pass by, over bins of queries when the LSE is known.

The sum of p over a bin is stored where the bin ends, as m + log2 Σ p, in scratch of the program's own, [bin, row]:
what is written together lies together. When the LSE is known, the program reads its scratch again, and the weights'
sums over the rows that share a bin of queries go to strips of the tile's own, one for each bin that it touches; `join`
puts them together. Programs with scratch take one tile after another, so that scratch does not grow with the text.

BINS says how bins of keys lie to tiles of keys:
"wide"    a bin is some whole tiles
"narrow"  a tile is some whole bins, each SHARE wide
"uneven"  anything else; at most SHARE bins end in one tile
TALL says how bins of queries lie to tiles of queries: so high, and a tile is some whole bins; or 0, anything else.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton.launch import on_device
from regard.kernels.triton.tile_sizes import power_of_two


class Pool(NamedTuple):
    """What the map needs, as the kernel takes it.

    strips  [head, tile and bin of queries, bin], the first of them of `first_head`; so many `of_head`: see `join`
    wide    keys of a bin; tall  queries of a bin; bins  of keys
    """

    scratch: Any
    strips: Any
    first_head: int
    of_head: int
    wide: int
    tall: int
    bins: int


def layout_of(bins: Bins, rows: int, keys: int) -> dict[str, Any]:
    """BINS, SHARE and TALL for tiles of so many rows and keys.

    >>> layout_of(Bins(high=8, wide=128, R=4, C=4), rows=16, keys=64)
    {'BINS': 'wide', 'SHARE': 1, 'TALL': 8}
    >>> layout_of(Bins(high=20, wide=20, R=4, C=4), rows=16, keys=64)
    {'BINS': 'uneven', 'SHARE': 4, 'TALL': 0}
    """
    tall = bins.high if rows % bins.high == 0 else 0
    if bins.wide % keys == 0:
        return {"BINS": "wide", "SHARE": 1, "TALL": tall}
    if keys % bins.wide == 0:
        return {"BINS": "narrow", "SHARE": bins.wide, "TALL": tall}
    return {"BINS": "uneven", "SHARE": -(-keys // bins.wide), "TALL": tall}


def strips_of_head(T: int, bins: Bins, rows: int) -> int:
    """How many strips a head has at most, whose tiles have so many rows.

    The strip of a tile and a bin of queries lies where their numbers added together say: a tile and the next share one
    bin at most, so that no two strips have the same place.
    """
    return -(-T // rows) + bins.R


def join(strips: Tensor, bins: Bins, rows: int, sums: Tensor) -> None:
    """Writes sums over bins of queries, (heads, R, C): added up from strips of tiles of so many rows, (heads,
    `strips_of_head`, C).
    """
    heads, of_head, C = strips.shape
    block = min(power_of_two(C), 1024)
    with on_device(sums):
        _join[(heads * bins.R, triton.cdiv(C, block))](
            strips, sums, of_head, bins.high, bins.R, C, ROWS=rows, BLOCK=block
        )


@triton.jit
def _join(strips, sums, of_head, high, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """One bin of queries: the tiles that it touches, in order, so that sums are the same every time."""
    at = tl.cast(tl.program_id(0), tl.int64)
    head, r = at // R, tl.program_id(0) % R
    bins = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tile in range(r * high // ROWS, tl.minimum(tl.cdiv((r + 1) * high, ROWS), of_head - R)):
        total += tl.load(strips + (head * of_head + tile + r) * C + bins, mask=bins < C, other=0.0)
    tl.store(sums + at * C + bins, total, mask=bins < C)


@triton.jit
def _scratch(pool, bins, ROWS: tl.constexpr):
    """Where these bins of the program's rows are, bins along the last axis; one bin: rows alone."""
    own = pool.scratch + tl.cast(tl.program_id(0), tl.int64) * (pool.bins * ROWS)
    return own + bins * ROWS + tl.arange(0, ROWS)


@triton.jit
def add_to_bins(
    pool,
    start,
    p,
    row_sum,
    fade,
    shift,
    mass,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    BINS: tl.constexpr,
    SHARE: tl.constexpr,
):
    """Store the bins that end in this tile of keys; returns Σ p of the one that goes on.

    Stored under a scalar `if` at the end of a bin: a masked store at every tile costs twice as much.
    """
    if BINS == "narrow":
        sums = tl.trans(tl.sum(tl.reshape(p, (ROWS, KEYS // SHARE, SHARE)), 2))
        bins = start // SHARE + tl.arange(0, KEYS // SHARE)[:, None]
        tl.store(_scratch(pool, bins, ROWS), shift[None, :] + tl.log2(sums), mask=bins < pool.bins)
    elif BINS == "wide":
        mass = mass * fade + row_sum
        if (start + KEYS) % pool.wide == 0:
            tl.store(_scratch(pool, start // pool.wide, ROWS), shift + tl.log2(mass))
            mass = tl.zeros_like(mass)
    else:
        mass = mass * fade
        first, last = start // pool.wide, tl.minimum((start + KEYS) // pool.wide, pool.bins)
        if first == last:
            mass += row_sum
        else:
            columns = start + tl.arange(0, KEYS)[None, :]
            for i in tl.static_range(SHARE):
                if first + i < last:
                    inside = (columns >= (first + i) * pool.wide) & (columns < (first + i + 1) * pool.wide)
                    mass += tl.sum(tl.where(inside, p, 0.0), 1)
                    tl.store(_scratch(pool, first + i, ROWS), shift + tl.log2(mass))
                    mass = tl.zeros_like(mass)
            mass += tl.sum(tl.where(columns >= last * pool.wide, p, 0.0), 1)
    return mass


@triton.jit
def close_bins(pool, high, m, mass, ROWS: tl.constexpr, BINS: tl.constexpr):
    """Store the bin that had not ended where the keys did, at `high`."""
    if BINS != "narrow":  # noqa: SIM102 - known when compiled; the other is not
        if high // pool.wide < pool.bins:
            shift = tl.where(m == float("-inf"), 0.0, m)
            tl.store(_scratch(pool, high // pool.wide, ROWS), shift + tl.log2(mass))
    tl.debug_barrier()  # what one thread has stored another will load


@triton.jit
def pool_rows(pool, head, tile, lse, low, high, T, ROWS: tl.constexpr, BINS: tl.constexpr, TALL: tl.constexpr):
    """The tile's weights in bins of keys, summed over the rows of each bin of queries. Strips are zero beforehand."""
    AT_ONCE: tl.constexpr = 32
    rows = tile * ROWS + tl.arange(0, ROWS)
    shift = tl.where(lse == float("-inf"), 0.0, lse)
    first = tile * ROWS // pool.tall
    pieces = (tl.minimum(tile * ROWS + ROWS, T) - 1) // pool.tall - first + 1
    strip = pool.strips + (tl.cast(head - pool.first_head, tl.int64) * pool.of_head + tile + first) * pool.bins
    end = tl.minimum(pool.bins, high // pool.wide + 1)
    if BINS == "narrow":
        end = tl.minimum(pool.bins, high // pool.wide)
    for c in range(low // pool.wide, end, AT_ONCE):
        bins = c + tl.arange(0, AT_ONCE)[:, None]
        t = tl.load(_scratch(pool, bins, ROWS), mask=(bins < end) & (rows < T)[None, :], other=float("-inf"))
        weights = tl.exp2(t - shift[None, :])  # bins rows
        if TALL:
            sums = tl.sum(tl.reshape(weights, (AT_ONCE, ROWS // TALL, TALL)), 2)
            piece = tl.arange(0, ROWS // TALL)[None, :]
            tl.store(strip + piece * pool.bins + bins, sums, mask=(bins < end) & (piece < pieces))
        else:
            bins = c + tl.arange(0, AT_ONCE)
            for piece in range(pieces):
                inside = (rows // pool.tall == first + piece)[None, :]
                sums = tl.sum(tl.where(inside, weights, 0.0), 1)
                tl.store(strip + piece * pool.bins + bins, sums, mask=bins < end)
    tl.debug_barrier()  # before the scratch is written again
