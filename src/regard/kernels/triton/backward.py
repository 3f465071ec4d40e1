"""The gradients of attention in two passes: one whose programs own keys and stream queries, one the other way round.

The weights are recomputed, P = 2^(score − LSE) in base 2, and never stored. With dO the gradient of the output, G that
of the map's sums spread over their bins, h that of the entropy H, and l that of the LSE:

    dV = Pᵀ dO,  dS = P ∘ (dO Vᵀ + G − h (S − LSE) − δ),  dQ = scale · dS K,  dK = scale · dSᵀ Q

δ is constant along a row, Σ dO ∘ O + Σ P ∘ G + h H − l, and is computed by a small kernel first; only Σ P ∘ G, for a
map, makes that kernel loop over keys. No number is written by two programs, so the result is bitwise reproducible.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from regard.kernels.triton.tiles import load_rows, load_tile, loop_range, mask_tile, score_tile, visible_tiles


class BackwardArguments(NamedTuple):
    """The arguments of all three kernels; fields that are None are compiled away. The tensors are float32, B H first.

    scale   includes the factor log2 e, and so does `cap`
    shift   T: the LSE in base 2, 0 for a fully masked query; `delta` is δ, and `slope` is h in base 2
    sums    R C: the gradient of the map's sums; its bins are `bin_height` × `bin_width`
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
    bin_height: int
    bin_width: int


class ForwardOutputs(NamedTuple):
    """The forward's outputs and their gradients, from which the values per row are computed. Absent ones are None.

    out  B H T Ev, contiguous along Ev; the others are B H T in float32
    """

    out: Any
    lse: Any
    d_lse: Any
    entropy: Any
    d_entropy: Any


@triton.jit
def row_terms_kernel(
    args,
    q,
    d_out,
    k,
    v,
    limits,
    outputs,
    E: tl.constexpr,
    EV: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_EV: tl.constexpr,
    OWN: tl.constexpr,
    STREAMED: tl.constexpr,
    FIRST_PART: tl.constexpr,
    LAST_PART: tl.constexpr,
    GROUP_SIZE: tl.constexpr,
    TMA: tl.constexpr,
    BINS_TOUCHED: tl.constexpr,
):
    """Compute `shift`, `delta` and `slope` of OWN queries from `outputs`; loops over keys only for a map.

    FIRST_PART, LAST_PART: parts of the loop over tiles of STREAMED. GROUP_SIZE: query heads per key head. BINS_TOUCHED:
    see `_bins_touched`.
    """
    T, S = args.T, args.S
    head, tile = _program_tile(limits, T, OWN)
    sample, h = head // args.H, head % args.H
    rows = tile * OWN + tl.arange(0, OWN)
    row_index, in_range = tl.cast(head, tl.int64) * T + rows, rows < T
    lse = tl.load(outputs.lse + row_index, mask=in_range, other=float("-inf"))
    attending = lse > float("-inf")  # no gradient passes through a fully masked query, not even infinity
    shift = tl.where(attending, lse * 1.4426950408889634, 0.0)
    out = load_tile(outputs.out + tl.cast(head, tl.int64) * T * EV, tile * OWN, T, EV, OWN, EV, BLOCK_EV, False).to(
        tl.float32
    )
    upstream = load_rows(d_out, sample, h, tile * OWN, T, OWN, EV, BLOCK_EV, False, TMA).to(tl.float32)
    delta = tl.sum(out * upstream, 1)
    if outputs.d_lse is not None:
        delta -= tl.load(outputs.d_lse + row_index, mask=attending, other=0.0)
    if outputs.d_entropy is not None:
        slope = tl.load(outputs.d_entropy + row_index, mask=attending, other=0.0)
        delta += slope * tl.load(outputs.entropy + row_index, mask=attending, other=0.0)
        tl.store(args.slope + row_index, slope * 0.6931471805599453, mask=in_range)
    if BINS_TOUCHED != "":
        own = load_rows(q, sample, h, tile * OWN, T, OWN, E, BLOCK_E, False, TMA)
        bins = _map_of_head(args, head) + tl.minimum(rows, T - 1) // args.bin_height * args.C
        edges = visible_tiles(limits, sample, tile, T, S, OWN, STREAMED)
        for part in tl.static_range(FIRST_PART, LAST_PART + 1):
            begin, end = loop_range(edges, part)
            for start in range(begin, end, STREAMED):
                keys = load_rows(k, sample, h // GROUP_SIZE, start, S, STREAMED, E, BLOCK_E, part == 1, TMA)
                scores = score_tile(own, tl.trans(keys), args.scale, args.cap, args.cap is not None)
                weights = tl.exp2(scores - shift[:, None])
                if part != 1:
                    columns = start + tl.arange(0, STREAMED)
                    weights = tl.where(mask_tile(limits, sample, rows[:, None], columns[None, :], T, S), weights, 0.0)
                delta += tl.sum(
                    weights * _map_gradient(bins, start, args.bin_width, 1, args.C, STREAMED, BINS_TOUCHED), 1
                )
    tl.store(args.shift + row_index, shift, mask=in_range)
    tl.store(args.delta + row_index, tl.where(attending, delta, 0.0), mask=in_range)


@triton.jit
def key_gradients_kernel(
    args,
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
    STREAMED: tl.constexpr,
    FIRST_PART: tl.constexpr,
    LAST_PART: tl.constexpr,
    GROUP_SIZE: tl.constexpr,
    TMA: tl.constexpr,
    BINS_TOUCHED: tl.constexpr,
):
    """The gradients of OWN keys and values, from all query heads that use them; `limits` are those of keys."""
    T, S = args.T, args.S
    head, tile = _program_tile(limits, S, OWN)
    n_kv_heads = args.H // GROUP_SIZE
    sample, g = head // n_kv_heads, head % n_kv_heads
    keys = tile * OWN + tl.arange(0, OWN)
    own_k = load_rows(k, sample, g, tile * OWN, S, OWN, E, BLOCK_E, False, TMA)
    own_v = load_rows(v, sample, g, tile * OWN, S, OWN, EV, BLOCK_EV, False, TMA)
    edges = visible_tiles(limits, sample, tile, S, T, OWN, STREAMED)
    d_key_tile = tl.zeros((OWN, BLOCK_E), tl.float32)
    d_value_tile = tl.zeros((OWN, BLOCK_EV), tl.float32)
    for part in tl.static_range(FIRST_PART, LAST_PART + 1):
        begin, end = loop_range(edges, part)
        streamed = (end - begin) // STREAMED
        # One loop over query heads and their tiles: nested loops take more registers, and restart for each head.
        for i in range(streamed * GROUP_SIZE):
            h, start = g, begin + i * STREAMED
            if GROUP_SIZE != 1:
                h = g * GROUP_SIZE + i // tl.maximum(streamed, 1)
                start = begin + i % tl.maximum(streamed, 1) * STREAMED
            at = sample * args.H + h
            rows = start + tl.arange(0, STREAMED)
            shift = _load_row_values(args.shift, at, rows, T, part == 1)
            queries = load_rows(q, sample, h, start, T, STREAMED, E, BLOCK_E, part == 1, TMA)
            upstream = load_rows(d_out, sample, h, start, T, STREAMED, EV, BLOCK_EV, part == 1, TMA)
            # Keys × queries: the left operand of the sum over queries, without a transpose.
            scores = score_tile(own_k, tl.trans(queries), args.scale, args.cap, args.cap is not None)
            x = scores - shift[None, :]
            weights = tl.exp2(x)
            if part != 1:
                visible = mask_tile(limits, sample, keys[:, None], rows[None, :], S, T)
                weights = tl.where(visible, weights, 0.0)
            d_weights = tl.dot(own_v, tl.trans(upstream), input_precision="ieee")
            d_value_tile = tl.dot(weights.to(upstream.dtype), upstream, d_value_tile, input_precision="ieee")
            d_weights -= _load_row_values(args.delta, at, rows, T, part == 1)[None, :]
            if args.slope is not None:
                d_weights -= _load_row_values(args.slope, at, rows, T, part == 1)[None, :] * x
            if BINS_TOUCHED != "":
                bins = _map_of_head(args, at) + tl.minimum(keys, S - 1) // args.bin_width
                d_weights += _map_gradient(bins, start, args.bin_height, args.C, args.R, STREAMED, BINS_TOUCHED)
            d_scores = _softcap_gradient(weights * d_weights, scores, args.cap, args.cap is not None)
            d_key_tile = tl.dot(d_scores.to(queries.dtype), queries, d_key_tile, input_precision="ieee")
    _store_rows(d_k, head, keys, S, d_key_tile * (args.scale * 0.6931471805599453), E, BLOCK_E)
    _store_rows(d_v, head, keys, S, d_value_tile, EV, BLOCK_EV)


@triton.jit
def query_gradients_kernel(
    args,
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
    STREAMED: tl.constexpr,
    FIRST_PART: tl.constexpr,
    LAST_PART: tl.constexpr,
    GROUP_SIZE: tl.constexpr,
    TMA: tl.constexpr,
    BINS_TOUCHED: tl.constexpr,
):
    """The gradients of OWN queries."""
    T, S = args.T, args.S
    head, tile = _program_tile(limits, T, OWN)
    sample, h = head // args.H, head % args.H
    g = h // GROUP_SIZE
    rows = tile * OWN + tl.arange(0, OWN)
    own = load_rows(q, sample, h, tile * OWN, T, OWN, E, BLOCK_E, False, TMA)
    upstream = load_rows(d_out, sample, h, tile * OWN, T, OWN, EV, BLOCK_EV, False, TMA)
    shift = _load_row_values(args.shift, head, rows, T, False)[:, None]
    delta = _load_row_values(args.delta, head, rows, T, False)[:, None]
    if args.slope is not None:
        slope = _load_row_values(args.slope, head, rows, T, False)[:, None]
    if BINS_TOUCHED != "":
        bins = _map_of_head(args, head) + tl.minimum(rows, T - 1) // args.bin_height * args.C
    edges = visible_tiles(limits, sample, tile, T, S, OWN, STREAMED)
    d_query_tile = tl.zeros((OWN, BLOCK_E), tl.float32)
    for part in tl.static_range(FIRST_PART, LAST_PART + 1):
        begin, end = loop_range(edges, part)
        for start in range(begin, end, STREAMED):
            keys = load_rows(k, sample, g, start, S, STREAMED, E, BLOCK_E, part == 1, TMA)
            values = load_rows(v, sample, g, start, S, STREAMED, EV, BLOCK_EV, part == 1, TMA)
            scores = score_tile(own, tl.trans(keys), args.scale, args.cap, args.cap is not None)
            d_weights = tl.dot(upstream, tl.trans(values), input_precision="ieee")
            x = scores - shift
            weights = tl.exp2(x)
            if part != 1:
                columns = start + tl.arange(0, STREAMED)
                weights = tl.where(mask_tile(limits, sample, rows[:, None], columns[None, :], T, S), weights, 0.0)
            d_weights -= delta
            if args.slope is not None:
                d_weights -= slope * x
            if BINS_TOUCHED != "":
                d_weights += _map_gradient(bins, start, args.bin_width, 1, args.C, STREAMED, BINS_TOUCHED)
            d_scores = _softcap_gradient(weights * d_weights, scores, args.cap, args.cap is not None)
            d_query_tile = tl.dot(d_scores.to(keys.dtype), keys, d_query_tile, input_precision="ieee")
    _store_rows(d_q, head, rows, T, d_query_tile * (args.scale * 0.6931471805599453), E, BLOCK_E)


@triton.jit
def _program_tile(limits, length, OWN: tl.constexpr):
    """The head, counted over all samples, and the tile of this program."""
    tiles = tl.cdiv(length, OWN)
    tile = tl.program_id(0) % tiles
    if limits.right is not None:
        tile = tiles - 1 - tile  # longest first
    return tl.program_id(0) // tiles, tile


@triton.jit
def _load_row_values(values, head, rows, T, IN_BOUNDS: tl.constexpr):
    """One number for each of these queries; IN_BOUNDS: none is beyond the end."""
    at = values + tl.cast(head, tl.int64) * T + rows
    if IN_BOUNDS:
        loaded = tl.load(at)
    else:
        loaded = tl.load(at, mask=rows < T, other=0.0)
    return loaded


@triton.jit
def _softcap_gradient(d_scores, scores, cap, SOFTCAP: tl.constexpr):
    """The gradient of scores before softcap: tanh' = 1 − tanh², and a capped score is cap · tanh."""
    if SOFTCAP:
        tanh = scores * (1.0 / cap)
        d_scores *= 1.0 - tanh * tanh
    return d_scores


@triton.jit
def _map_of_head(args, head):
    """Address of the map's gradient of one head."""
    return args.sums + tl.cast(head, tl.int64) * args.R * args.C


@triton.jit
def _map_gradient(own, start, size, step, count, STREAMED: tl.constexpr, BINS_TOUCHED: tl.constexpr):
    """The map's gradient at each score of a tile, own × streamed.

    own           address of the bin of each own position; streamed bins are `step` apart, `size` wide, `count` of them
    BINS_TOUCHED  by a tile of streamed positions: "one", at most "two", or "any" number
    """
    streamed = start + tl.arange(0, STREAMED)
    first = start // size
    if BINS_TOUCHED == "any":
        bins = tl.minimum(streamed // size, count - 1)
        loaded = tl.load(own[:, None] + bins[None, :] * step)
    else:
        loaded = tl.load(own + first * step)[:, None]
        if BINS_TOUCHED == "two":
            next_bin = tl.load(own + tl.minimum(first + 1, count - 1) * step)[:, None]
            loaded = tl.where((streamed < (first + 1) * size)[None, :], loaded, next_bin)
    return loaded


@triton.jit
def _store_rows(base, head, rows, length, values, E: tl.constexpr, BLOCK_E: tl.constexpr):
    """Store rows of a contiguous tensor."""
    columns = tl.arange(0, BLOCK_E)[None, :]
    at = base + (tl.cast(head, tl.int64) * length + rows)[:, None] * E + columns
    tl.store(at, values.to(base.dtype.element_ty), mask=(rows < length)[:, None] & (columns < E))
