"""What can be told of each query from q, k and the LSE alone: its strongest keys, exactly, and its entropy.

A program owns a tile of queries, walks over the keys that they see, and keeps the k best so far of each query. A tile's
best key is taken in where it beats the least of those, and taken off the tile, until no query finds a better one: past
the first tiles that is mostly once or never. No exponential is needed for it, and no sorting. Of equal keys the earlier
are the stronger. Where a quicker pass can list the few keys that may be the strongest, those are ranked instead
(`survivors`), and only queries are searched whose lists had no room for all.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.triton import hopper
from regard.kernels.triton.candidates import FEW, ROOM, Kept, Survivors, rank
from regard.kernels.triton.launch import launch
from regard.kernels.triton.mask_bands import Sight, sight_of
from regard.kernels.triton.second_pass import Given, inputs_of, load_shift
from regard.kernels.triton.support import MOST
from regard.kernels.triton.tile_sizes import SEARCHING, Blocks, blocks_for, power_of_two
from regard.kernels.triton.tiles import Limits, load_rows, part_of_walk, score_tile, seen_tile, tiles_to_see
from regard.masks import BoundMask
from regard.records import Top

LISTED = tl.constexpr(ROOM)


class OfQueries(NamedTuple):
    """What was found of each query, B H T first; what was not asked for is None."""

    top: Top | None
    entropy: Tensor | None


class Crowded(NamedTuple):
    """Which queries are searched, of the heads from `first` on: those with more keys, heads T, than a list has room."""

    counts: Any
    first: int


@triton.jit
def _walk_keys(
    given,
    q,
    k,
    limits,
    top,
    entropies,
    crowded,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    SLOTS: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    TMA: tl.constexpr,
):
    """SLOTS: for so many keys of each query there is room; `crowded` is None for all queries; else see `inputs_of`."""
    T, S = given.T, given.S
    tiles = tl.cdiv(T, QUERIES)
    # The last queries first: where attention is causal they have the most to do.
    tile, head = tiles - 1 - tl.program_id(0) % tiles, tl.cast(tl.program_id(0) // tiles, tl.int64)
    rows = tile * QUERIES + tl.arange(0, QUERIES)
    wanted = rows < T
    if crowded is not None:
        wanted = tl.load(crowded.counts + head * T + rows, mask=wanted, other=0) > LISTED
        if tl.max(wanted.to(tl.int32), 0) == 0:
            return
        head += crowded.first
    sample, h = head // given.H, head % given.H
    own = load_rows(q, sample, h, tile * QUERIES, T, QUERIES, E, BLOCK_E, False, TMA)
    shift = load_shift(given.lse + head * T, rows, T)
    edges = tiles_to_see(limits, sample, tile, T, S, QUERIES, KEYS)
    slots = tl.arange(0, SLOTS)[None, :]
    best = tl.full((QUERIES, SLOTS), float("-inf"), tl.float32)
    places = tl.zeros((QUERIES, SLOTS), tl.int32) - 1 - slots  # different ones, as those of keys are
    entropy = tl.zeros((QUERIES,), tl.float32)
    if top is not None:
        best = tl.where(slots < top.k, best, float("inf"))  # slots too many never hold the least
    for part in tl.static_range(FIRST, LAST + 1):
        begin, end = part_of_walk(edges, part)
        for start in range(begin, end, KEYS):
            keys = start + tl.arange(0, KEYS)
            key_tile = load_rows(k, sample, h // given.served, start, S, KEYS, E, BLOCK_E, part == 1, TMA)
            scores = score_tile(own, tl.trans(key_tile), given.scale, given.cap, given.cap is not None)
            if part != 1:
                seen = seen_tile(limits, sample, rows[:, None], keys[None, :], T, S)
                scores = tl.where(seen, scores, float("-inf"))
            if entropies is not None:
                below = shift[:, None] - scores
                weights = tl.exp2(-below)
                entropy += tl.sum(weights * tl.where(weights == 0, 0.0, below), 1)  # 0 · inf would be NaN
            if top is not None:
                best, places = _take_better(scores, keys, best, places, S, SLOTS)
    here = head * T + rows
    if entropies is not None:
        tl.store(entropies + here, tl.where(entropy < 0.0, 0.0, entropy) * 0.6931471805599453, mask=wanted)
    if top is not None:
        places = _fill(best, places, slots, tl.minimum(S, 2 * top.k), SLOTS)
        _keep(top, here, wanted, best, places, slots, shift, S)


@triton.jit
def _take_better(scores, keys, best, places, S, SLOTS: tl.constexpr):
    """The best scores and their places, after a tile of scores: no query finds more better ones in it than slots."""
    least, strongest = tl.min(best, 1), tl.max(scores, 1)
    more = tl.max(tl.where(strongest > least, 1, 0), 0) > 0
    if SLOTS <= 8:
        # Not a loop: Triton brings no tile beforehand where a loop holds another one.
        for _ in tl.static_range(SLOTS):
            if more:
                best, places, scores, least, strongest, more = _take_one(
                    scores, keys, best, places, least, strongest, S, SLOTS
                )
    else:
        while more:
            best, places, scores, least, strongest, more = _take_one(
                scores, keys, best, places, least, strongest, S, SLOTS
            )
    return best, places


@triton.jit
def _take_one(scores, keys, best, places, least, strongest, S, SLOTS: tl.constexpr):
    """Each query's strongest key goes where the least stood, if it is stronger, and off the tile; is there more?"""
    place = tl.min(tl.where(scores == strongest[:, None], keys[None, :], S), 1)
    gone = tl.max(tl.where(best == least[:, None], places, -1 - SLOTS), 1)  # of equal ones the last
    into = (strongest > least)[:, None] & (places == gone[:, None])
    best = tl.where(into, strongest[:, None], best)
    places = tl.where(into, place[:, None], places)
    scores = tl.where(keys[None, :] == place[:, None], float("-inf"), scores)
    least, strongest = tl.min(best, 1), tl.max(scores, 1)
    return best, places, scores, least, strongest, tl.max(tl.where(strongest > least, 1, 0), 0) > 0


@triton.jit
def _fill(best, places, slots, candidates, SLOTS: tl.constexpr):
    """For a query that sees too few keys: the first ones that it does not hold already, with a weight of 0."""
    if tl.min(tl.min(best, 1), 0) == float("-inf"):
        for key in range(candidates):
            held = tl.max(tl.where(places == key, 1, 0), 1) > 0
            slot = tl.min(tl.where((best == float("-inf")) & (places < 0), slots, SLOTS), 1)
            places = tl.where((held[:, None] == 0) & (slots == slot[:, None]), key, places)
    return places


@triton.jit
def _keep(top, here, wanted, best, places, slots, shift, S):
    """The strongest keys in their order, of equal ones the earlier first."""
    best = tl.where(slots < top.k, best, float("-inf"))
    places = tl.where(slots < top.k, places, S)
    for already in range(top.k):
        strongest = tl.max(best, 1)
        place = tl.min(tl.where(best == strongest[:, None], places, S), 1)
        at = here * top.k + already
        tl.store(top.indices + at, place.to(tl.int64), mask=wanted)
        tl.store(top.weights + at, tl.exp2(strongest - shift), mask=wanted)
        taken = places == place[:, None]
        best, places = tl.where(taken, float("-inf"), best), tl.where(taken, S, places)


@torch.no_grad()
def of_queries(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    *,
    mask: BoundMask | None = None,
    scale: float,
    softcap: float | None = None,
    top: int | None = None,
    entropy: bool = False,
    threshold: Tensor | None = None,
    blocks: Blocks | None = None,
) -> OfQueries:
    """The `top` strongest keys, `MOST` at most, and entropy, if asked for. q B H T E, k B G S E, lse B H T, nats.

    A `threshold`, B H T, that `top` keys of each query reach where it sees so many, scores not scaled, may save a pass.
    """
    (B, H, T, E), S = q.shape, k.shape[2]
    count = min(top or 0, S)
    assert count <= MOST
    kept = Kept(lse.new_empty((B, H, T, count), dtype=torch.int64), lse.new_empty((B, H, T, count)), count)
    entropies = lse.new_zeros(B, H, T) if entropy else None
    if not (q.numel() and k.numel()):
        kept.indices.copy_(torch.arange(count))
        kept.weights.zero_()
    else:
        given, sight = Given.of(q, k, lse, scale, softcap), sight_of(mask)
        groups = None
        if 0 < count <= FEW and blocks is None and not entropy:
            groups = _listed(q, k, sight, scale, softcap, count, threshold)
        blocks = blocks or blocks_for(q.dtype, E, T, S, table=SEARCHING)
        limits, slots = Limits.of(sight, blocks.rows), power_of_two(count, 2)
        inputs = inputs_of(given, q, k, limits, queries=blocks.rows, keys=blocks.keys, passing=blocks.keys, length=S)
        arguments = (*inputs.arguments, kept if count else None, entropies)
        tiles = triton.cdiv(T, blocks.rows)
        if groups is None:
            launch(_walk_keys, B * H * tiles, blocks, q, *arguments, None, **inputs.constants, SLOTS=slots)
        for first, some in groups or ():
            rank(given, q, k, some, first, kept)
            crowded, programs = Crowded(some.counts, first), len(some.counts) * tiles
            launch(_walk_keys, programs, blocks, q, *arguments, crowded, **inputs.constants, SLOTS=slots)
    return OfQueries(Top(kept.indices, kept.weights) if top else None, entropies)


def _listed(
    q: Tensor, k: Tensor, sight: Sight, scale: float, softcap: float | None, top: int, threshold: Tensor | None
) -> Iterable[tuple[int, Survivors]] | None:
    """The keys that reach the threshold, for heads in groups, each with its first; None where nobody is quick at it."""
    if not hopper.is_at_hand(q.device):
        return None
    from regard.kernels.triton.hopper import launch as quicker

    if not quicker.fits(q, k, sight=sight, scale=scale, softcap=softcap, bins=None):
        return None
    if threshold is None:
        threshold = quicker.thresholds_of(q, k, sight, top=top)
    return quicker.survivors_of(q, k, threshold, sight)
