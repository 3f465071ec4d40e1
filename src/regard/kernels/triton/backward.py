"""The gradients of attention, in two walks: one that owns keys and sees queries pass by, one that owns queries.

The weights are made again, P = 2^(score − LSE) in base 2, and none is kept. With dO the gradient of the output, G that
of the map's sums spread over their bins, h that of the entropy H, and l that of the LSE:

    dV = Pᵀ dO,  dS = P ∘ (dO Vᵀ + G − h (S − LSE) − δ),  dQ = scale · dS K,  dK = scale · dSᵀ Q

δ is the same along a row, Σ dO ∘ O + Σ P ∘ G + h H − l, and a small kernel prepares it; only a map's Σ P ∘ G makes that
one walk too. No number is written by two programs, so the result is the same to the last bit every time.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from regard.kernels.triton.tiles import load_rows, load_tile, part_of_walk, score_tile, seen_tile, tiles_to_see


class Known(NamedTuple):
    """What all three kernels are given; what is None is compiled away. The tensors are float32, B H first.

    scale   holds the factor log2 e already, and so does `cap`
    shift   T: the LSE in base 2, 0 for a query that sees nothing; `delta` is δ, and `slope` is h in base 2
    sums    R C: the gradient of the map's sums; its bins are so `high` and so `wide`
    """

    H: int
    T: int
    S: int
    scale: float
    cap: float | None
    shift: Any
    delta: Any
    slope: Any
    sums: Any
    R: int
    C: int
    high: int
    wide: int


class Rows(NamedTuple):
    """What the forward told, and gradients of it: all that a row constant is made of. What there is none of is None.

    out  B H T Ev, its numbers one after another; the others are B H T in float32
    """

    out: Any
    lse: Any
    d_lse: Any
    entropy: Any
    d_entropy: Any


@triton.jit
def prepare_kernel(
    known,
    q,
    d_out,
    k,
    v,
    limits,
    told,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    OWN: tl.constexpr,
    PASSING: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    SERVED: tl.constexpr,
    TMA: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """`shift`, `delta` and `slope` of OWN queries, from Rows, `told`; only a map makes it look at keys.

    FIRST, LAST: parts of the walk over tiles of PASSING. SERVED: query heads to a key head. SPREAD: see `_spread`.
    """
    T, S = known.T, known.S
    head, tile = _own_tile(limits, T, OWN)
    sample, h = head // known.H, head % known.H
    rows = tile * OWN + tl.arange(0, OWN)
    here, there = tl.cast(head, tl.int64) * T + rows, rows < T
    lse = tl.load(told.lse + here, mask=there, other=float("-inf"))
    looking = lse > float("-inf")  # nothing comes back through a query that sees nothing, not even infinity
    shift = tl.where(looking, lse * 1.4426950408889634, 0.0)
    outputs = load_tile(told.out + tl.cast(head, tl.int64) * T * EV, tile * OWN, T, EV, OWN, EV, BLOCK_EV, False).to(
        tl.float32
    )
    upstream = load_rows(d_out, sample, h, tile * OWN, T, OWN, EV, BLOCK_EV, False, TMA).to(tl.float32)
    delta = tl.sum(outputs * upstream, 1)
    if told.d_lse is not None:
        delta -= tl.load(told.d_lse + here, mask=looking, other=0.0)
    if told.d_entropy is not None:
        slope = tl.load(told.d_entropy + here, mask=looking, other=0.0)
        delta += slope * tl.load(told.entropy + here, mask=looking, other=0.0)
        tl.store(known.slope + here, slope * 0.6931471805599453, mask=there)
    if SPREAD != "":
        own = load_rows(q, sample, h, tile * OWN, T, OWN, E, BLOCK_E, False, TMA)
        bins = _bins_of_map(known, head) + tl.minimum(rows, T - 1) // known.high * known.C
        edges = tiles_to_see(limits, sample, tile, T, S, OWN, PASSING)
        for part in tl.static_range(FIRST, LAST + 1):
            begin, end = part_of_walk(edges, part)
            for start in range(begin, end, PASSING):
                keys = load_rows(k, sample, h // SERVED, start, S, PASSING, E, BLOCK_E, part == 1, TMA)
                scores = score_tile(own, tl.trans(keys), known.scale, known.cap, known.cap is not None)
                weights = tl.exp2(scores - shift[:, None])
                if part != 1:
                    columns = start + tl.arange(0, PASSING)
                    weights = tl.where(seen_tile(limits, sample, rows[:, None], columns[None, :], T, S), weights, 0.0)
                delta += tl.sum(weights * _spread(bins, start, known.wide, 1, known.C, PASSING, SPREAD), 1)
    tl.store(known.shift + here, shift, mask=there)
    tl.store(known.delta + here, tl.where(looking, delta, 0.0), mask=there)


@triton.jit
def keys_kernel(
    known,
    k,
    v,
    q,
    d_out,
    limits,
    d_k,
    d_v,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    OWN: tl.constexpr,
    PASSING: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    SERVED: tl.constexpr,
    TMA: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """The gradients of OWN keys and values, from all query heads that they serve; `limits` are those of keys."""
    T, S = known.T, known.S
    head, tile = _own_tile(limits, S, OWN)
    groups = known.H // SERVED
    sample, g = head // groups, head % groups
    keys = tile * OWN + tl.arange(0, OWN)
    own_k = load_rows(k, sample, g, tile * OWN, S, OWN, E, BLOCK_E, False, TMA)
    own_v = load_rows(v, sample, g, tile * OWN, S, OWN, EV, BLOCK_EV, False, TMA)
    edges = tiles_to_see(limits, sample, tile, S, T, OWN, PASSING)
    to_keys = tl.zeros((OWN, BLOCK_E), tl.float32)
    to_values = tl.zeros((OWN, BLOCK_EV), tl.float32)
    for part in tl.static_range(FIRST, LAST + 1):
        begin, end = part_of_walk(edges, part)
        passing = (end - begin) // PASSING
        # One loop over query heads and their tiles: nested ones take more registers, and start anew for each head.
        for i in range(passing * SERVED):
            h, start = g, begin + i * PASSING
            if SERVED != 1:
                h = g * SERVED + i // tl.maximum(passing, 1)
                start = begin + i % tl.maximum(passing, 1) * PASSING
            at = sample * known.H + h
            rows = start + tl.arange(0, PASSING)
            shift = _load_row_numbers(known.shift, at, rows, T, part == 1)
            queries = load_rows(q, sample, h, start, T, PASSING, E, BLOCK_E, part == 1, TMA)
            upstream = load_rows(d_out, sample, h, start, T, PASSING, EV, BLOCK_EV, part == 1, TMA)
            # Keys × queries: what is added up over queries is a product's left side as it is.
            scores = score_tile(own_k, tl.trans(queries), known.scale, known.cap, known.cap is not None)
            x = scores - shift[None, :]
            weights = tl.exp2(x)
            if part != 1:
                seen = seen_tile(limits, sample, keys[:, None], rows[None, :], S, T)
                weights = tl.where(seen, weights, 0.0)
            d_weights = tl.dot(own_v, tl.trans(upstream), input_precision="ieee")
            to_values = tl.dot(weights.to(upstream.dtype), upstream, to_values, input_precision="ieee")
            d_weights -= _load_row_numbers(known.delta, at, rows, T, part == 1)[None, :]
            if known.slope is not None:
                d_weights -= _load_row_numbers(known.slope, at, rows, T, part == 1)[None, :] * x
            if SPREAD != "":
                bins = _bins_of_map(known, at) + tl.minimum(keys, S - 1) // known.wide
                d_weights += _spread(bins, start, known.high, known.C, known.R, PASSING, SPREAD)
            d_scores = _through_softcap(weights * d_weights, scores, known.cap, known.cap is not None)
            to_keys = tl.dot(d_scores.to(queries.dtype), queries, to_keys, input_precision="ieee")
    _store_rows(d_k, head, keys, S, to_keys * (known.scale * 0.6931471805599453), E, BLOCK_E)
    _store_rows(d_v, head, keys, S, to_values, EV, BLOCK_EV)


@triton.jit
def queries_kernel(
    known,
    q,
    d_out,
    k,
    v,
    limits,
    d_q,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    OWN: tl.constexpr,
    PASSING: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
    SERVED: tl.constexpr,
    TMA: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """The gradients of OWN queries."""
    T, S = known.T, known.S
    head, tile = _own_tile(limits, T, OWN)
    sample, h = head // known.H, head % known.H
    g = h // SERVED
    rows = tile * OWN + tl.arange(0, OWN)
    own = load_rows(q, sample, h, tile * OWN, T, OWN, E, BLOCK_E, False, TMA)
    upstream = load_rows(d_out, sample, h, tile * OWN, T, OWN, EV, BLOCK_EV, False, TMA)
    shift = _load_row_numbers(known.shift, head, rows, T, False)[:, None]
    delta = _load_row_numbers(known.delta, head, rows, T, False)[:, None]
    if known.slope is not None:
        slope = _load_row_numbers(known.slope, head, rows, T, False)[:, None]
    if SPREAD != "":
        bins = _bins_of_map(known, head) + tl.minimum(rows, T - 1) // known.high * known.C
    edges = tiles_to_see(limits, sample, tile, T, S, OWN, PASSING)
    to_queries = tl.zeros((OWN, BLOCK_E), tl.float32)
    for part in tl.static_range(FIRST, LAST + 1):
        begin, end = part_of_walk(edges, part)
        for start in range(begin, end, PASSING):
            keys = load_rows(k, sample, g, start, S, PASSING, E, BLOCK_E, part == 1, TMA)
            values = load_rows(v, sample, g, start, S, PASSING, EV, BLOCK_EV, part == 1, TMA)
            scores = score_tile(own, tl.trans(keys), known.scale, known.cap, known.cap is not None)
            d_weights = tl.dot(upstream, tl.trans(values), input_precision="ieee")
            x = scores - shift
            weights = tl.exp2(x)
            if part != 1:
                columns = start + tl.arange(0, PASSING)
                weights = tl.where(seen_tile(limits, sample, rows[:, None], columns[None, :], T, S), weights, 0.0)
            d_weights -= delta
            if known.slope is not None:
                d_weights -= slope * x
            if SPREAD != "":
                d_weights += _spread(bins, start, known.wide, 1, known.C, PASSING, SPREAD)
            d_scores = _through_softcap(weights * d_weights, scores, known.cap, known.cap is not None)
            to_queries = tl.dot(d_scores.to(keys.dtype), keys, to_queries, input_precision="ieee")
    _store_rows(d_q, head, rows, T, to_queries * (known.scale * 0.6931471805599453), E, BLOCK_E)


@triton.jit
def _own_tile(limits, length, OWN: tl.constexpr):
    """The head, counted through all samples, and the tile that this program owns."""
    tiles = tl.cdiv(length, OWN)
    tile = tl.program_id(0) % tiles
    if limits.right is not None:
        tile = tiles - 1 - tile  # the longest first
    return tl.program_id(0) // tiles, tile


@triton.jit
def _load_row_numbers(numbers, head, rows, T, WHOLE: tl.constexpr):
    """One number for each of these queries; WHOLE: none is beyond the end."""
    at = numbers + tl.cast(head, tl.int64) * T + rows
    if WHOLE:
        found = tl.load(at)
    else:
        found = tl.load(at, mask=rows < T, other=0.0)
    return found


@triton.jit
def _through_softcap(d_scores, scores, cap, SOFTCAP: tl.constexpr):
    """The gradient of scores before softcap: tanh' = 1 − tanh², and a capped score is cap · tanh."""
    if SOFTCAP:
        tanh = scores * (1.0 / cap)
        d_scores *= 1.0 - tanh * tanh
    return d_scores


@triton.jit
def _bins_of_map(known, head):
    """Where the map's gradient of one head begins."""
    return known.sums + tl.cast(head, tl.int64) * known.R * known.C


@triton.jit
def _spread(own, start, size, step, count, PASSING: tl.constexpr, SPREAD: tl.constexpr):
    """The map's gradient at each score of a tile, own × passing.

    own   where the bin of each of one's own positions begins; those that pass by are `step` apart, `size` wide, `count`
    SPREAD  "one" bin to a tile of what passes by, at most "two", or "any" number
    """
    passing = start + tl.arange(0, PASSING)
    first = start // size
    if SPREAD == "any":
        bins = tl.minimum(passing // size, count - 1)
        found = tl.load(own[:, None] + bins[None, :] * step)
    else:
        found = tl.load(own + first * step)[:, None]
        if SPREAD == "two":
            following = tl.load(own + tl.minimum(first + 1, count - 1) * step)[:, None]
            found = tl.where((passing < (first + 1) * size)[None, :], found, following)
    return found


@triton.jit
def _store_rows(base, head, rows, length, numbers, E: tl.constexpr, BLOCK_E: tl.constexpr):
    """Rows of a tensor whose heads, rows and numbers lie one after another."""
    columns = tl.arange(0, BLOCK_E)[None, :]
    at = base + (tl.cast(head, tl.int64) * length + rows)[:, None] * E + columns
    tl.store(at, numbers.to(base.dtype.element_ty), mask=(rows < length)[:, None] & (columns < E))
