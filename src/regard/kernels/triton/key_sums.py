"""What a map is made of, from q, k and the LSE alone: sums of the weights over bins, columns and distances.

It follows any kernel's output, which stays as it is. A program owns a tile of keys of one query head and walks over the
queries that see it. The sums over a bin's queries are stored where the bin ends, one for each bin of keys that the tile
touches, and put together by a second, small kernel. No number is written by two programs, so the result is the same to
the last bit every time.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.axes import distance_count
from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.launch import FUSED, launch, on_device
from regard.kernels.triton.mask_bands import Sight
from regard.kernels.triton.second_pass import Given, inputs_of, load_shift
from regard.kernels.triton.support import touched_by
from regard.kernels.triton.tile_sizes import Blocks, blocks_for, power_of_two
from regard.kernels.triton.tiles import Limits, load_rows, part_of_walk, score_tile, seen_tile, tiles_to_see

JOINED = tl.constexpr(8)
"""Rows of a map that one program puts together."""


class Sums(NamedTuple):
    """Sums of weights, B H first: over the bins of a map (R C), over all queries (S), by distance (D)."""

    map: Tensor | None
    received: Tensor | None
    distance: Tensor | None


class Pieces(NamedTuple):
    """Where the map's sums go: B H R, tiles of keys, and for each of these the bins of keys that it touches."""

    base: Any
    R: int
    high: int
    wide: int


@triton.jit
def _walk_queries(
    given,
    q,
    k,
    limits,
    received,
    pieces,
    shares,
    offsets,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    KEYS: tl.constexpr,
    QUERIES: tl.constexpr,
    BINS: tl.constexpr,
    LOW: tl.constexpr,
    DISTANCES: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    TMA: tl.constexpr,
):
    """BINS: so many bins of keys a tile may touch; LOW: a tile of queries, many bins; else see `inputs_of`.

    offsets   where query 0 of each sample stands; None for S − T
    """
    T, S = given.T, given.S
    tiles = tl.cdiv(S, KEYS)
    tile, head = tl.program_id(0) % tiles, tl.cast(tl.program_id(0) // tiles, tl.int64)
    sample, h = head // given.H, head % given.H
    keys = tile * KEYS + tl.arange(0, KEYS)
    own = load_rows(k, sample, h // given.served, tile * KEYS, S, KEYS, E, BLOCK_E, False, TMA)
    lse = given.lse + head * T
    if pieces is not None:
        strip = pieces.base + (head * pieces.R * tiles + tile) * BINS
        bins = tl.where(keys < S, keys // pieces.wide - tile * KEYS // pieces.wide, -1)
    edges = tiles_to_see(limits, sample, tile, S, T, KEYS, QUERIES)
    in_bin, total = tl.zeros((KEYS,), tl.float32), tl.zeros((KEYS,), tl.float32)
    found = tl.zeros((DISTANCES,), tl.float32)
    offset = S - T
    if offsets is not None:
        offset = tl.load(offsets + sample).to(tl.int32)
    for part in tl.static_range(FIRST, LAST + 1):
        begin, end = part_of_walk(edges, part)
        for start in range(begin, end, QUERIES):
            rows = start + tl.arange(0, QUERIES)
            queries = load_rows(q, sample, h, start, T, QUERIES, E, BLOCK_E, part == 1, TMA)
            # Keys × queries: what is added up over queries stays in one row.
            scores = score_tile(own, tl.trans(queries), given.scale, given.cap, given.cap is not None)
            if part != 1:
                seen = seen_tile(limits, sample, keys[:, None], rows[None, :], S, T)
                scores = tl.where(seen, scores, float("-inf"))
            weights = tl.exp2(scores - load_shift(lse, rows, T)[None, :])
            if shares is not None:
                found = _add_distances(found, weights, rows + offset, keys, S, DISTANCES)
            if pieces is None:
                total += tl.sum(weights, 1)
            else:
                in_bin, total = _add_to_bins(
                    pieces, strip, in_bin, total, weights, rows, start, bins, tiles, QUERIES, BINS, LOW
                )
    if pieces is not None:
        _store_bin(strip, in_bin, bins, edges[3] // pieces.high, pieces.R, tiles, BINS)
        total += in_bin
    tl.store(received + head * S + keys, total, mask=keys < S)
    if shares is not None:
        tl.store(shares + (head * tiles + tile) * DISTANCES + tl.arange(0, DISTANCES), found)


@triton.jit
def _add_to_bins(
    pieces,
    strip,
    in_bin,
    total,
    weights,
    rows,
    start,
    bins,
    tiles,
    QUERIES: tl.constexpr,
    BINS: tl.constexpr,
    LOW: tl.constexpr,
):
    """The sums of the bin of queries that is open, and of all that are closed, with a tile of weights added."""
    if LOW:
        here = rows // pieces.high
        for r in range(start // pieces.high, (start + QUERIES) // pieces.high):
            in_bin += tl.sum(tl.where((here == r)[None, :], weights, 0.0), 1)
            _store_bin(strip, in_bin, bins, r, pieces.R, tiles, BINS)
            total += in_bin
            in_bin = tl.zeros_like(in_bin)
        in_bin += tl.sum(tl.where((here == (start + QUERIES) // pieces.high)[None, :], weights, 0.0), 1)
    else:
        edge = (start // pieces.high + 1) * pieces.high
        if edge > start + QUERIES:
            in_bin += tl.sum(weights, 1)
        else:
            in_bin += tl.sum(tl.where((rows < edge)[None, :], weights, 0.0), 1)
            _store_bin(strip, in_bin, bins, start // pieces.high, pieces.R, tiles, BINS)
            total += in_bin
            in_bin = tl.sum(tl.where((rows >= edge)[None, :], weights, 0.0), 1)
    return in_bin, total


@triton.jit
def _store_bin(strip, in_bin, bins, r, R, tiles, BINS: tl.constexpr):
    """The sums over the queries of bin `r`, by bins of keys; there may be no such bin."""
    if r < R:
        each = tl.arange(0, BINS)
        sums = tl.sum(tl.where(bins[:, None] == each[None, :], in_bin[:, None], 0.0), 0)
        tl.store(strip + tl.cast(r, tl.int64) * tiles * BINS + each, sums)


@triton.jit
def _add_distances(found, weights, places, keys, S, DISTANCES: tl.constexpr):
    """What was found at the distances 0, 1, 2–3, 4–7, …, with a tile of weights added, keys × queries."""
    far = tl.abs(places[None, :] - keys[:, None])
    weights = tl.where((keys < S)[:, None], weights, 0.0)
    nearest, furthest = tl.min(tl.min(far, 1), 0), tl.max(tl.max(far, 1), 0)
    for d in range(DISTANCES):
        near, next_one = (1 << d) >> 1, 1 << d
        if (nearest < next_one) & (furthest >= near):
            there = tl.sum(tl.sum(tl.where((far >= near) & (far < next_one), weights, 0.0), 1), 0)
            found += tl.where(tl.arange(0, DISTANCES) == d, there, 0.0)
    return found


@triton.jit
def _join(pieces, pooled, rows, S, C, wide, most, KEYS: tl.constexpr, BINS: tl.constexpr, BLOCK_C: tl.constexpr):
    """Rows of the map: of each bin of keys its pieces, from the first tile that touches it to the last."""
    row = tl.program_id(0) * JOINED + tl.arange(0, JOINED)[:, None]
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    here = pieces + tl.cast(row, tl.int64) * tl.cdiv(S, KEYS) * BINS
    last = (tl.minimum((c + 1) * wide, S) - 1) // KEYS
    total = tl.zeros((JOINED, BLOCK_C), tl.float32)
    for step in range(most):
        tile = c * wide // KEYS + step
        at = tile * BINS + c - tile * KEYS // wide
        total += tl.load(here + at, mask=(row < rows) & (c < C) & (tile <= last), other=0.0)
    tl.store(pooled + tl.cast(row, tl.int64) * C + c, total, mask=(row < rows) & (c < C))


@torch.no_grad()
def sums(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    sight: Sight,
    *,
    scale: float,
    softcap: float | None = None,
    bins: Bins | None = None,
    received: bool = True,
    distance: bool = False,
    offsets: Tensor | None = None,
    blocks: Blocks | None = None,
) -> Sums:
    """Of a map, of columns, of distances, as asked for. q B H T E, k B G S E, lse B H T in nats.

    offsets   B, where query 0 of each sample stands, for distances; None for S − T
    """
    (B, H, T, E), S = q.shape, k.shape[2]
    if blocks is None and not distance and q.numel() and k.numel() and hopper.is_at_hand(q.device):
        from regard.kernels.triton.hopper import launch as quicker

        if quicker.fits(q, k, sight=sight, scale=scale, softcap=softcap, bins=bins):
            pooled = quicker.map_of(q, k, lse, sight, scale=scale, bins=bins) if bins else None
            return Sums(pooled, quicker.received_of(q, k, lse, sight, scale=scale) if received else None, None)
    blocks = blocks or blocks_for(q.dtype, E, S, T)  # here it is keys that stay, and queries that pass by
    keys, queries, tiles = blocks.rows, blocks.keys, triton.cdiv(S, blocks.rows)
    D = distance_count(T, S)
    distances = power_of_two(D, 2)
    columns = lse.new_zeros(B, H, S)
    shares = lse.new_zeros(B, H, tiles, distances) if distance else None
    pieces, pooled, touched, is_low = None, None, 1, False
    if bins is not None:
        queries = min(queries, max(16, 1 << (bins.high.bit_length() - 1)))  # then at most one bin ends in a tile
        touched, is_low = touched_by(keys, bins.wide), bins.high < queries
        pieces = Pieces(lse.new_zeros(B, H, bins.R, tiles, touched), bins.R, bins.high, bins.wide)
        pooled = lse.new_zeros(B, H, bins.R, bins.C)
    if q.numel() and k.numel():
        given, limits = Given.of(q, k, lse, scale, softcap), Limits.of(sight.swapped(), keys)
        inputs = inputs_of(given, q, k, limits, queries=queries, keys=keys, passing=queries, length=T)
        found = {"BINS": touched, "LOW": is_low, "DISTANCES": distances}
        arguments = (*inputs.arguments, columns, pieces, shares, offsets if distance else None)
        launch(_walk_queries, B * H * tiles, blocks, q, *arguments, **inputs.constants, **found)
        if bins is not None and pieces is not None:
            most, block_c = (bins.wide - 1) // keys + 2, min(128, power_of_two(bins.C))
            rows = B * H * bins.R
            with on_device(q):
                _join[(triton.cdiv(rows, JOINED), triton.cdiv(bins.C, block_c))](
                    pieces.base,
                    pooled,
                    rows,
                    S,
                    bins.C,
                    bins.wide,
                    most,
                    KEYS=keys,
                    BINS=touched,
                    BLOCK_C=block_c,
                    **FUSED,
                )
    return Sums(pooled, columns, None if shares is None else shares.sum(2)[..., :D])
