"""The top keys of each query, selected from a short list of candidates by their exact scores.

The lists contain every key that can be among the top ones, in any order. The result is deterministic: the higher score
first, the earlier of equal ones.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.triton.launch import launch
from regard.kernels.triton.second_pass import SecondPassArguments, load_shift
from regard.kernels.triton.tile_sizes import Blocks
from regard.kernels.triton.tiles import Heads, base_of

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
    arguments = (args, Heads.of(q), Heads.of(k), candidates, first, top)
    launch(_rank, programs, blocks, q, *arguments, **constants, maxnreg=REGISTERS)
