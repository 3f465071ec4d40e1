"""Top keys, exactly, entropy and the largest score of each query, from q, k and the LSE.

A program owns a tile of queries, loops over the keys visible to them, and keeps the k best keys of each query so far.
The best key of a tile replaces the worst kept one if its score is higher, and is removed from the tile, until no query
improves: after the first tiles that is usually once or never. This needs no exponential and no sorting. Of equal scores
the earlier key counts as higher.

Where a faster pass can list the few candidate keys, those are ranked instead by their exact scores (`rank`), and only
queries whose lists overflowed are searched. The lists contain every key that can be among the top ones, in any order.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.triton import hopper
from regard.kernels.triton.second_pass import SecondPassArguments, kernel_arguments, load_shift
from regard.kernels.triton.support import MAX_TOP, SEARCH_BLOCKS, Blocks, MaskBands, bands_of, blocks_for, power_of_two
from regard.kernels.triton.tiles import (
    Limits,
    StridedTensor,
    base_of,
    launch,
    load_rows,
    loop_range,
    mask_tile,
    score_tile,
    visible_tiles,
)
from regard.records import Top

MAX_LISTED_TOP = 8
"""The largest top-k found from lists; for a larger one too many keys pass the threshold."""

LIST_SIZE = 32
"""Keys that a list can hold. For random scores about 11 keys pass the threshold of a top-8."""

QUERIES = 8
"""Queries of a program: the smallest number that tensor cores multiply."""

COLUMNS = 32
"""Columns of a head loaded at a time, so that the rows of all keys fit into registers."""

REGISTERS = 168
"""Maximum registers per thread: more would help only lists more than half full, and let fewer programs run at once."""


class Candidates(NamedTuple):
    """The candidate keys for the queries of a group of heads.

    counts  heads T, int32: their number, possibly more than LIST_SIZE
    keys    heads T LIST_SIZE, int32: the first of them, in any order
    """

    counts: Any
    keys: Any


class TopOutput(NamedTuple):
    """Output tensors for the top keys, B H T k."""

    indices: Any
    weights: Any
    k: int


@triton.jit
def _rank(
    args,
    q,
    k,
    candidates,
    first,
    top,
    E: tl.constexpr,
    COLUMNS: tl.constexpr,
    QUERIES: tl.constexpr,
    LIST_SIZE: tl.constexpr,
):
    """Half of a list is usually enough; otherwise process half of the queries at a time, with as many keys in total."""
    tiles = tl.cdiv(args.T, QUERIES)
    head, start = tl.program_id(0) // tiles, tl.program_id(0) % tiles * QUERIES
    rows = start + tl.arange(0, QUERIES)
    counts = tl.load(candidates.counts + tl.cast(head, tl.int64) * args.T + rows, mask=rows < args.T, other=0)
    if tl.max(tl.where(counts <= LIST_SIZE, counts, 0), 0) <= LIST_SIZE // 2:
        _rank_queries(
            args, q, k, candidates, first, top, head, start, E, COLUMNS, QUERIES, QUERIES, LIST_SIZE // 2, LIST_SIZE
        )
    else:
        for part in range(2):
            begin = start + part * (QUERIES // 2)
            _rank_queries(
                args, q, k, candidates, first, top, head, begin, E, COLUMNS, QUERIES, QUERIES // 2, LIST_SIZE, LIST_SIZE
            )


@triton.jit
def _rank_queries(
    args,
    q,
    k,
    candidates,
    first,
    top,
    head,
    start,
    E: tl.constexpr,
    COLUMNS: tl.constexpr,
    DOT_QUERIES: tl.constexpr,
    QUERIES: tl.constexpr,
    SLOTS: tl.constexpr,
    LIST_SIZE: tl.constexpr,
):
    """Rank QUERIES queries of `head`, from `start` on, by SLOTS slots of their lists. DOT_QUERIES: see `_score`."""
    T, S = args.T, args.S
    query_index, slots = tl.arange(0, QUERIES), tl.arange(0, SLOTS)[None, :]
    rows = start + query_index
    of_group, of_all = tl.cast(head, tl.int64) * T + start, tl.cast(first + head, tl.int64) * T + start
    counts = tl.load(candidates.counts + of_group + query_index, mask=rows < T, other=LIST_SIZE + 1)
    fits = counts <= LIST_SIZE
    lists = candidates.keys + of_group * LIST_SIZE + query_index[:, None] * LIST_SIZE
    keys = tl.load(lists + slots, mask=fits[:, None] & (slots < counts[:, None]), other=S)
    scores = _score(args, q, k, keys, first + head, start, E, COLUMNS, DOT_QUERIES, QUERIES, SLOTS)
    shift = load_shift(args.lse + (of_all - start), rows, T)
    ranks = _ranks(scores, keys, SLOTS)
    indices, weights = (
        top.indices + of_all * top.k + query_index * top.k,
        top.weights + of_all * top.k + query_index * top.k,
    )
    is_top = (keys < S) & (ranks < top.k)
    tl.store(indices[:, None] + ranks, keys.to(tl.int64), mask=is_top)
    tl.store(weights[:, None] + ranks, tl.exp2(scores - shift[:, None]), mask=is_top)
    if tl.min(tl.where(fits, counts, top.k), 0) < top.k:
        no_weight = tl.where(shift == shift, 0.0, shift)  # where the LSE is NaN, every weight is NaN
        _fill_missing(indices, weights, no_weight, top.k, keys, tl.where(fits, counts, top.k), S)


@triton.jit
def _score(
    args,
    q,
    k,
    keys,
    head,
    start,
    E: tl.constexpr,
    COLUMNS: tl.constexpr,
    DOT_QUERIES: tl.constexpr,
    QUERIES: tl.constexpr,
    SLOTS: tl.constexpr,
):
    """The scores of each query's own keys, in base 2; -inf where there is no key, or where the score is NaN.

    DOT_QUERIES: the number of queries in the product with every key, the smallest that tensor cores take.
    """
    sample, h = head // args.H, head % args.H
    each = tl.arange(0, DOT_QUERIES)
    queries = base_of(q, sample, h) + tl.cast(start, tl.int64) * q.row + each[:, None] * q.row
    # Empty slots load the first key: cheaper than a mask on every piece of a row.
    key_index = tl.cast(tl.reshape(tl.where(keys < args.S, keys, 0), (QUERIES * SLOTS,)), tl.int64)
    keys_base = base_of(k, sample, h // args.group_size)
    products = tl.zeros((QUERIES * SLOTS, DOT_QUERIES), tl.float32)
    for begin in tl.static_range(0, E, COLUMNS):
        columns = begin + tl.arange(0, COLUMNS)[None, :]
        key_rows = tl.load(keys_base + columns + key_index[:, None] * k.row, mask=columns < E, other=0.0)
        query_rows = tl.load(queries + columns, mask=(start + each < args.T)[:, None] & (columns < E), other=0.0)
        products = tl.dot(key_rows, tl.trans(query_rows), products, input_precision="ieee")
    products = tl.reshape(products, (QUERIES, SLOTS, DOT_QUERIES))
    is_same_query = tl.arange(0, QUERIES)[:, None, None] == each[None, None, :]
    scores = tl.sum(tl.where(is_same_query, products, 0.0), 2) * args.scale
    return tl.where((keys < args.S) & (scores > float("-inf")), scores, float("-inf"))


@triton.jit
def _ranks(scores, keys, SLOTS: tl.constexpr):
    """The rank of each key in its list: the number of higher scores, and of equal ones at an earlier key."""
    slots = tl.broadcast_to(tl.arange(0, SLOTS)[None, :], scores.shape)
    ranks = tl.zeros(scores.shape, tl.int32)
    for step in tl.static_range(1, SLOTS):
        other = (slots + step) % SLOTS
        score, key = tl.gather(scores, other, 1), tl.gather(keys, other, 1)
        ranks += ((score > scores) | ((score == scores) & (key < keys))).to(tl.int32)
    return ranks


@triton.jit
def _fill_missing(indices, weights, no_weight, k, keys, counts, S):
    """For a query with too few visible keys: store the first keys that are not in its list, with weight `no_weight`."""
    for key in range(tl.minimum(S, 2 * k)):
        is_new = tl.max((keys == key).to(tl.int32), 1) == 0
        tl.store(indices + counts, tl.cast(key, tl.int64), mask=is_new & (counts < k))
        tl.store(weights + counts, no_weight, mask=is_new & (counts < k))
        counts += is_new.to(tl.int32)


def rank(args: SecondPassArguments, q: Tensor, k: Tensor, candidates: Candidates, first: int, top: TopOutput) -> None:
    """Write the top keys of each query whose list did not overflow; `first` is the group's first head of all B · H."""
    assert args.cap is None
    assert candidates.keys.shape[2] == LIST_SIZE
    programs = len(candidates.counts) * triton.cdiv(args.T, QUERIES)
    constants = {"E": q.shape[3], "COLUMNS": COLUMNS, "QUERIES": QUERIES, "LIST_SIZE": LIST_SIZE}
    blocks = Blocks(QUERIES, LIST_SIZE, warps=1, stages=1)
    arguments = (args, StridedTensor.of(q), StridedTensor.of(k), candidates, first, top)
    launch(_rank, programs, blocks, q, *arguments, **constants, maxnreg=REGISTERS)


SLOTS_PER_LIST = tl.constexpr(LIST_SIZE)


class QueryStatistics(NamedTuple):
    """Statistics of each query, B H T first; those not requested are None."""

    top: Top | None
    entropy: Tensor | None
    max_score: Tensor | None


class OverflowedLists(NamedTuple):
    """Counts of candidates, heads T, for the heads from `first` on: only queries whose list overflowed are searched."""

    counts: Any
    first: int


@triton.jit
def _query_statistics_kernel(
    args,
    q,
    k,
    limits,
    top,
    entropies,
    max_scores,
    overflowed,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    SLOTS: tl.constexpr,
    FIRST_PART: tl.constexpr,
    LAST_PART: tl.constexpr,
    TMA: tl.constexpr,
):
    """SLOTS: keys kept for each query; `overflowed` is None to search all queries; others: see `kernel_arguments`."""
    T, S = args.T, args.S
    tiles = tl.cdiv(T, QUERIES)
    # The last queries first: with a causal mask they have the most work.
    tile, head = tiles - 1 - tl.program_id(0) % tiles, tl.cast(tl.program_id(0) // tiles, tl.int64)
    rows = tile * QUERIES + tl.arange(0, QUERIES)
    wanted = rows < T
    if overflowed is not None:
        wanted = tl.load(overflowed.counts + head * T + rows, mask=wanted, other=0) > SLOTS_PER_LIST
        if tl.max(wanted.to(tl.int32), 0) == 0:
            return
        head += overflowed.first
    sample, h = head // args.H, head % args.H
    own = load_rows(q, sample, h, tile * QUERIES, T, QUERIES, E, BLOCK_E, False, TMA)
    shift = load_shift(args.lse + head * T, rows, T)
    edges = visible_tiles(limits, sample, tile, T, S, QUERIES, KEYS)
    slots = tl.arange(0, SLOTS)[None, :]
    best = tl.full((QUERIES, SLOTS), float("-inf"), tl.float32)
    positions = tl.zeros((QUERIES, SLOTS), tl.int32) - 1 - slots  # distinct, as the positions of keys are
    entropy = tl.zeros((QUERIES,), tl.float32)
    largest = tl.full((QUERIES,), float("-inf"), tl.float32)
    if top is not None:
        best = tl.where(slots < top.k, best, float("inf"))  # surplus slots never hold the worst
    for part in tl.static_range(FIRST_PART, LAST_PART + 1):
        begin, end = loop_range(edges, part)
        for start in range(begin, end, KEYS):
            keys = start + tl.arange(0, KEYS)
            key_tile = load_rows(k, sample, h // args.group_size, start, S, KEYS, E, BLOCK_E, part == 1, TMA)
            scores = score_tile(own, tl.trans(key_tile), args.scale, args.cap, args.cap is not None)
            if part != 1:
                visible = mask_tile(limits, sample, rows[:, None], keys[None, :], T, S)
                scores = tl.where(visible, scores, float("-inf"))
            if entropies is not None:
                below = shift[:, None] - scores
                weights = tl.exp2(-below)
                entropy += tl.sum(weights * tl.where(weights == 0, 0.0, below), 1)  # 0 · inf would be NaN
            if max_scores is not None:
                largest = tl.maximum(largest, tl.max(scores, 1))
            if top is not None:
                best, positions = _update_top(scores, keys, best, positions, S, SLOTS)
    row_index = head * T + rows
    if entropies is not None:
        tl.store(entropies + row_index, tl.where(entropy < 0.0, 0.0, entropy) * 0.6931471805599453, mask=wanted)
    if max_scores is not None:
        tl.store(max_scores + row_index, largest * 0.6931471805599453, mask=wanted)
    if top is not None:
        positions = _missing_positions(best, positions, slots, tl.minimum(S, 2 * top.k), SLOTS)
        _store_top(top, row_index, wanted, best, positions, slots, shift, S)


@triton.jit
def _update_top(scores, keys, best, positions, S, SLOTS: tl.constexpr):
    """The best scores and their positions after a tile of scores: a query replaces at most SLOTS of them."""
    worst, highest = tl.min(best, 1), tl.max(scores, 1)
    improves = tl.max(tl.where(highest > worst, 1, 0), 0) > 0
    if SLOTS <= 8:
        # Not a loop: Triton does not prefetch tiles in a loop that contains another loop.
        for _ in tl.static_range(SLOTS):
            if improves:
                best, positions, scores, worst, highest, improves = _insert_best(
                    scores, keys, best, positions, worst, highest, S, SLOTS
                )
    else:
        while improves:
            best, positions, scores, worst, highest, improves = _insert_best(
                scores, keys, best, positions, worst, highest, S, SLOTS
            )
    return best, positions


@triton.jit
def _insert_best(scores, keys, best, positions, worst, highest, S, SLOTS: tl.constexpr):
    """Replace the worst kept key of each query by its best key in the tile if that is higher, and remove it from the
    tile; returns whether any query can improve further.
    """
    position = tl.min(tl.where(scores == highest[:, None], keys[None, :], S), 1)
    replaced = tl.max(tl.where(best == worst[:, None], positions, -1 - SLOTS), 1)  # the last of equal ones
    target = (highest > worst)[:, None] & (positions == replaced[:, None])
    best = tl.where(target, highest[:, None], best)
    positions = tl.where(target, position[:, None], positions)
    scores = tl.where(keys[None, :] == position[:, None], float("-inf"), scores)
    worst, highest = tl.min(best, 1), tl.max(scores, 1)
    return best, positions, scores, worst, highest, tl.max(tl.where(highest > worst, 1, 0), 0) > 0


@triton.jit
def _missing_positions(best, positions, slots, n_keys, SLOTS: tl.constexpr):
    """For a query with too few visible keys: add the first keys that it does not have yet, with weight 0."""
    if tl.min(tl.min(best, 1), 0) == float("-inf"):
        for key in range(n_keys):
            present = tl.max(tl.where(positions == key, 1, 0), 1) > 0
            slot = tl.min(tl.where((best == float("-inf")) & (positions < 0), slots, SLOTS), 1)
            positions = tl.where((present[:, None] == 0) & (slots == slot[:, None]), key, positions)
    return positions


@triton.jit
def _store_top(top, row_index, wanted, best, positions, slots, shift, S):
    """Store the top keys in order, the earlier of equal ones first."""
    best = tl.where(slots < top.k, best, float("-inf"))
    positions = tl.where(slots < top.k, positions, S)
    for i in range(top.k):
        highest = tl.max(best, 1)
        position = tl.min(tl.where(best == highest[:, None], positions, S), 1)
        at = row_index * top.k + i
        tl.store(top.indices + at, position.to(tl.int64), mask=wanted)
        tl.store(top.weights + at, tl.exp2(highest - shift), mask=wanted)
        stored = positions == position[:, None]
        best, positions = tl.where(stored, float("-inf"), best), tl.where(stored, S, positions)


@torch.no_grad()
def query_statistics(
    call: AttentionCall,
    lse: Tensor,
    *,
    top: int | None = None,
    entropy: bool = False,
    max_score: bool = False,
    threshold: Tensor | None = None,
    blocks: Blocks | None = None,
) -> QueryStatistics:
    """The `top` keys, at most `MAX_TOP`, entropy and max_score, if requested; lse is B H T, in nats. Ignores values.

    A `threshold`, B H T, is an unscaled score that `top` keys of each query reach if that many are visible; it may save
    a pass.
    """
    q, k = call.q, call.k
    (B, H, T, E), S = q.shape, k.shape[2]
    count = min(top or 0, S)
    assert count <= MAX_TOP
    top_output = TopOutput(lse.new_empty((B, H, T, count), dtype=torch.int64), lse.new_empty((B, H, T, count)), count)
    entropies = lse.new_zeros(B, H, T) if entropy else None
    max_scores = lse.new_full((B, H, T), -torch.inf) if max_score else None
    if not (q.numel() and k.numel()):
        top_output.indices.copy_(torch.arange(count, device=q.device))
        top_output.weights.zero_()
    else:
        args, bands = SecondPassArguments.of(call, lse), bands_of(call.bound)
        list_groups = None
        if 0 < count <= MAX_LISTED_TOP and blocks is None and not entropy and not max_score:
            list_groups = _candidate_lists(call, bands, count, threshold)
        blocks = blocks or blocks_for(q.dtype, E, T, S, table=SEARCH_BLOCKS)
        limits, slots = Limits.of(bands, blocks.rows), power_of_two(count, 2)
        kernel_args = kernel_arguments(
            args, q, k, limits, queries=blocks.rows, keys=blocks.keys, streamed=blocks.keys, length=S
        )
        arguments = (*kernel_args.arguments, top_output if count else None, entropies, max_scores)
        tiles = triton.cdiv(T, blocks.rows)
        if list_groups is None:
            launch(
                _query_statistics_kernel,
                B * H * tiles,
                blocks,
                q,
                *arguments,
                None,
                **kernel_args.constants,
                SLOTS=slots,
            )
        for first, lists in list_groups or ():
            rank(args, q, k, lists, first, top_output)
            overflowed, programs = OverflowedLists(lists.counts, first), len(lists.counts) * tiles
            launch(
                _query_statistics_kernel,
                programs,
                blocks,
                q,
                *arguments,
                overflowed,
                **kernel_args.constants,
                SLOTS=slots,
            )
    return QueryStatistics(Top(top_output.indices, top_output.weights) if top else None, entropies, max_scores)


def _candidate_lists(
    call: AttentionCall, bands: MaskBands, top: int, threshold: Tensor | None
) -> Iterable[tuple[int, Candidates]] | None:
    """The keys that reach the threshold, for heads in groups, each with its first head; None without Hopper kernels."""
    if not hopper.is_available(call.q.device):
        return None
    from regard.kernels.triton.hopper import launch as hopper_launch

    if not hopper_launch.supports(call, bands, None):
        return None
    if threshold is None:
        threshold = hopper_launch.thresholds_of(call, bands, top)
    return hopper_launch.candidates_of(call, bands, threshold)
