"""The strongest keys of each query out of a few that may be: weighed once more, ranked, and the first of them kept.

Whoever made the lists has left no key out that could be among the strongest. They lie in any order; what is made of
them is the same every time: the stronger key first, of equal ones the earlier.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from regard.kernels.triton.launch import launch
from regard.kernels.triton.second_pass import Given, load_shift
from regard.kernels.triton.tile_sizes import Blocks
from regard.kernels.triton.tiles import Heads, base_of

FEW = 8
"""So many strongest keys of a query are found this way at most; for more of them too many others would pass."""

ROOM = 32
"""So many keys a list has room for. Where scores follow no pattern, about 11 pass for the 8 strongest."""

QUERIES = 8
"""Of a program: fewer at a time the tensor cores do not take."""

COLUMNS = 32
"""Of a head, at a time: so that the rows of all keys fit into registers."""

REGISTERS = 168
"""Of a thread at most: more would only serve lists that are more than half full, and let fewer programs run at once."""


class Survivors(NamedTuple):
    """The keys that may be the strongest, for the queries of a group of heads.

    counts  heads T, int32: how many there are, maybe more than there is room for
    keys    heads T ROOM, int32: the first of them, in any order
    """

    counts: Any
    keys: Any


class Kept(NamedTuple):
    """Where the strongest keys go, B H T k."""

    indices: Any
    weights: Any
    k: int


@triton.jit
def _rank(
    given,
    q,
    k,
    survivors,
    first,
    kept,
    E: tl.constexpr,
    COLUMNS: tl.constexpr,
    QUERIES: tl.constexpr,
    ROOM: tl.constexpr,
):
    """Of a list mostly half is enough; where it is not, half of the queries at a time: as many keys either way."""
    tiles = tl.cdiv(given.T, QUERIES)
    some, start = tl.program_id(0) // tiles, tl.program_id(0) % tiles * QUERIES
    rows = start + tl.arange(0, QUERIES)
    counts = tl.load(survivors.counts + tl.cast(some, tl.int64) * given.T + rows, mask=rows < given.T, other=0)
    if tl.max(tl.where(counts <= ROOM, counts, 0), 0) <= ROOM // 2:
        _settle(given, q, k, survivors, first, kept, some, start, E, COLUMNS, QUERIES, QUERIES, ROOM // 2, ROOM)
    else:
        for part in range(2):
            begin = start + part * (QUERIES // 2)
            _settle(given, q, k, survivors, first, kept, some, begin, E, COLUMNS, QUERIES, QUERIES // 2, ROOM, ROOM)


@triton.jit
def _settle(
    given,
    q,
    k,
    survivors,
    first,
    kept,
    some,
    start,
    E: tl.constexpr,
    COLUMNS: tl.constexpr,
    TOGETHER: tl.constexpr,
    QUERIES: tl.constexpr,
    SLOTS: tl.constexpr,
    ROOM: tl.constexpr,
):
    """QUERIES from `start` on of head `some` of the group, and so many SLOTS of their lists. TOGETHER: see `_score`."""
    T, S = given.T, given.S
    own, slots = tl.arange(0, QUERIES), tl.arange(0, SLOTS)[None, :]
    rows = start + own
    of_group, of_all = tl.cast(some, tl.int64) * T + start, tl.cast(first + some, tl.int64) * T + start
    counts = tl.load(survivors.counts + of_group + own, mask=rows < T, other=ROOM + 1)
    settled = counts <= ROOM
    lists = survivors.keys + of_group * ROOM + own[:, None] * ROOM
    keys = tl.load(lists + slots, mask=settled[:, None] & (slots < counts[:, None]), other=S)
    scores = _score(given, q, k, keys, first + some, start, E, COLUMNS, TOGETHER, QUERIES, SLOTS)
    shift = load_shift(given.lse + (of_all - start), rows, T)
    ranks = _ranks(scores, keys, SLOTS)
    indices, weights = kept.indices + of_all * kept.k + own * kept.k, kept.weights + of_all * kept.k + own * kept.k
    there = (keys < S) & (ranks < kept.k)
    tl.store(indices[:, None] + ranks, keys.to(tl.int64), mask=there)
    tl.store(weights[:, None] + ranks, tl.exp2(scores - shift[:, None]), mask=there)
    if tl.min(tl.where(settled, counts, kept.k), 0) < kept.k:
        nothing = tl.where(shift == shift, 0.0, shift)  # where the LSE is no number, no weight is one
        _fill(indices, weights, nothing, kept.k, keys, tl.where(settled, counts, kept.k), S)


@triton.jit
def _score(
    given,
    q,
    k,
    keys,
    head,
    start,
    E: tl.constexpr,
    COLUMNS: tl.constexpr,
    TOGETHER: tl.constexpr,
    QUERIES: tl.constexpr,
    SLOTS: tl.constexpr,
):
    """The scores of each query's own keys, in base 2; -inf where there is none, or where it is no number.

    TOGETHER: with so many queries every key is multiplied, since tensor cores take no fewer.
    """
    sample, h = head // given.H, head % given.H
    each = tl.arange(0, TOGETHER)
    queries = base_of(q, sample, h) + tl.cast(start, tl.int64) * q.row + each[:, None] * q.row
    # Where there is no key the first one is taken: that costs less than asking for every piece of a row.
    places = tl.cast(tl.reshape(tl.where(keys < given.S, keys, 0), (QUERIES * SLOTS,)), tl.int64)
    others = base_of(k, sample, h // given.served)
    products = tl.zeros((QUERIES * SLOTS, TOGETHER), tl.float32)
    for begin in tl.static_range(0, E, COLUMNS):
        columns = begin + tl.arange(0, COLUMNS)[None, :]
        some = tl.load(others + columns + places[:, None] * k.row, mask=columns < E, other=0.0)
        own = tl.load(queries + columns, mask=(start + each < given.T)[:, None] & (columns < E), other=0.0)
        products = tl.dot(some, tl.trans(own), products, input_precision="ieee")
    products = tl.reshape(products, (QUERIES, SLOTS, TOGETHER))
    is_own = tl.arange(0, QUERIES)[:, None, None] == each[None, None, :]
    scores = tl.sum(tl.where(is_own, products, 0.0), 2) * given.scale
    return tl.where((keys < given.S) & (scores > float("-inf")), scores, float("-inf"))


@triton.jit
def _ranks(scores, keys, SLOTS: tl.constexpr):
    """How many of its list come before each key: those that are stronger, and of equal ones the earlier."""
    slots = tl.broadcast_to(tl.arange(0, SLOTS)[None, :], scores.shape)
    ranks = tl.zeros(scores.shape, tl.int32)
    for step in tl.static_range(1, SLOTS):
        other = (slots + step) % SLOTS
        score, key = tl.gather(scores, other, 1), tl.gather(keys, other, 1)
        ranks += ((score > scores) | ((score == scores) & (key < keys))).to(tl.int32)
    return ranks


@triton.jit
def _fill(indices, weights, nothing, k, keys, counts, S):
    """For a query that sees too few keys: the first ones that are not on its list, with a weight of `nothing`."""
    for key in range(tl.minimum(S, 2 * k)):
        is_new = tl.max((keys == key).to(tl.int32), 1) == 0
        tl.store(indices + counts, tl.cast(key, tl.int64), mask=is_new & (counts < k))
        tl.store(weights + counts, nothing, mask=is_new & (counts < k))
        counts += is_new.to(tl.int32)


def rank(given: Given, q: Tensor, k: Tensor, survivors: Survivors, first: int, kept: Kept) -> None:
    """Writes the strongest keys of each query whose list had room; `first` is the group's first head of all B · H."""
    assert given.cap is None
    assert survivors.keys.shape[2] == ROOM
    programs = len(survivors.counts) * triton.cdiv(given.T, QUERIES)
    constants = {"E": q.shape[3], "COLUMNS": COLUMNS, "QUERIES": QUERIES, "ROOM": ROOM}
    blocks = Blocks(QUERIES, ROOM, warps=1, stages=1)
    arguments = (given, Heads.of(q), Heads.of(k), survivors, first, kept)
    launch(_rank, programs, blocks, q, *arguments, **constants, maxnreg=REGISTERS)
