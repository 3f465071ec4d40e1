"""The reduction of a tile of scores in a second pass: bin sums, column sums, thresholds, keys that reach them."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.bins import (
    bin_indices,
    split_at_edges,
    store_bin,
    store_bins,
    store_finished_bins,
    sum_bin_rows,
)
from regard.kernels.triton.hopper.tiles import as_column, group_maxima, nth_largest, sum_by_lane, sync
from regard.kernels.triton.top_keys import LIST_SIZE as SLOTS_PER_LIST

LIST_SIZE = gl.constexpr(SLOTS_PER_LIST)


@gluon.jit
def _reaches(s, threshold):
    """1 where a score is at least its threshold, else 0: floating-point numbers."""
    return gl.inline_asm_elementwise(
        "set.ge.f32.f32 $0, $1, $2;", "=f,f,f", [s, threshold], dtype=gl.float32, is_pure=True, pack=1
    )


@gluon.jit
def append_candidates(args, s, threshold, n_listed, place, start):
    """Write the keys that reach their row's threshold to the lists, and count them.

    A row is in four lanes: two of each eight columns in each lane, 32 of a tile. Lanes exchange their counts, so that
    each knows where its own keys go.
    """
    ROWS: gl.constexpr = s.shape[0]
    s = s.reshape([ROWS, 2, 8, 4, 2]).permute((0, 3, 1, 2, 4)).reshape([ROWS, 4, 2, 16])
    layout: gl.constexpr = s.type.layout
    row_threshold = gl.convert_layout(threshold, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, layout))))
    bits = _pack_bits(_reaches(s, row_threshold[:, None, None, None]))
    lanes = gl.arange(0, 4, gl.SliceLayout(0, bits.type.layout))[None, :]
    counts = gl.inline_asm_elementwise(_POPCOUNT_ASM, "=r,r", [bits], dtype=gl.int32, is_pure=True, pack=1) << lanes * 8
    running_counts = gl.sum(counts, 1) * 0x01010101  # one byte per lane: its count plus those of the lanes before
    begin = as_column(n_listed, bits) + (as_column(running_counts << 8, bits) >> lanes * 8 & 255)
    head, row = place
    rows = (head - args.first).to(gl.int64) * args.T + row + gl.arange(0, ROWS, gl.SliceLayout(1, bits.type.layout))
    lists = (args.out + rows * LIST_SIZE).to(gl.int64)[:, None]
    arguments = [bits, begin, start + lanes * 2, lists]
    gl.inline_asm_elementwise(_WRITE_ASM, "=r,r,r,r,l", arguments, dtype=gl.int32, is_pure=False, pack=1)
    return n_listed + gl.convert_layout(running_counts >> 24 & 255, n_listed.type.layout)


@gluon.jit
def _pack_bits(reached):
    """The 32 bits of a tensor […, …, 2, 16] of ones and zeros; one lane has all of them."""
    layout: gl.constexpr = reached.type.layout
    # Summed as floating-point numbers: the integer unit is busy enough.
    powers = (1 << gl.arange(0, 16, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, layout))))).to(gl.float32)
    halves = gl.sum(reached * powers[None, None, None, :], 3).to(gl.int32)
    shifts = gl.arange(0, 2, gl.SliceLayout(0, gl.SliceLayout(1, halves.type.layout))) * 16
    return gl.sum(halves << shifts[None, None, :], 2)


_POPCOUNT_ASM = gl.constexpr("popc.b32 $0, $1;")
_WRITE_ASM = gl.constexpr(
    """{
    .reg .pred none, fits; .reg .b32 rest, next, bit, key, at; .reg .b64 there;
    mov.b32 rest, $1;
    mov.b32 at, $2;
    more:
    setp.eq.s32 none, rest, 0;
    @none bra done;
    brev.b32 next, rest;
    clz.b32 bit, next;
    add.s32 next, rest, -1;
    and.b32 rest, rest, next;
    and.b32 key, bit, 30;
    shl.b32 key, key, 2;
    and.b32 bit, bit, 1;
    add.s32 key, key, bit;
    add.s32 key, key, $3;
    setp.lt.s32 fits, at, LIST_SIZE;
    mad.wide.s32 there, at, 4, $4;
    @fits st.global.b32 [there], key;
    add.s32 at, at, 1;
    bra more;
    done:
    mov.b32 $0, at;
    }""".replace("LIST_SIZE", str(SLOTS_PER_LIST))
)
"""$0 the new end of the list of a row; $1 one bit per key, $2 where to begin, $3 the first key, $4 the list."""


@gluon.jit
def initial_state(buffers, last, ROWS: gl.constexpr, STREAMED: gl.constexpr, WORK: gl.constexpr):
    """The initial state: sums by rows and lanes, or group maxima; the number of listed keys of each row; for a map, the
    bin of the last key.
    """
    zeros = gl.zeros((ROWS, STREAMED), gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STREAMED, 16]))
    if WORK == "thresholds":
        sums = group_maxima(zeros) + float("-inf")
    else:
        sums = gl.zeros_like(gl.sum(sum_by_lane(zeros, 1), 1))
    return sums, gl.zeros((ROWS,), gl.int32, gl.SliceLayout(1, sums.type.layout)), last // buffers.bin_width


@gluon.jit
def bounds_for(args, place, start, ROWS: gl.constexpr, STREAMED: gl.constexpr, WORK: gl.constexpr):
    """The numbers that scores are compared with: the LSE of each query in base 2, of own rows or of a tile of columns;
    or the threshold of each own row.
    """
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STREAMED, 16])
    head, row = place
    if WORK == "received":
        lse = args.lse + head.to(gl.int64) * (gl.cdiv(args.T, STREAMED) * STREAMED)  # as in `padded_shifts`
        bound = gl.load(lse + start + gl.arange(0, STREAMED, gl.SliceLayout(0, scores)))
    else:
        rows = row + gl.arange(0, ROWS, gl.SliceLayout(1, scores))
        values = args.lse
        if WORK == "candidates":
            values = args.threshold
        bound = gl.load(values + head.to(gl.int64) * args.T + rows, mask=rows < args.T, other=float("inf"))
        if WORK == "candidates":
            bound = gl.maximum(bound, -3.4028234e38)  # masked keys are never candidates
        else:
            bound = gl.where(bound == float("-inf"), float("inf"), bound) * 1.4426950408889634
    return bound


@gluon.jit
def reduce_tile(
    args,
    buffers,
    state,
    s,
    bound,
    scratch,
    place,
    start,
    MASKED: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    BIN_UNIT: gl.constexpr,
):
    """Update the state with a tile of scores that begins at column `start`. MASKED: the tile is partly masked."""
    sums, n_listed, bin = state
    if MASKED:
        s = gl.where(_visible(args, s, place, start, WORK, CAUSAL), s, float("-inf"))
    if WORK == "thresholds":
        sums = gl.maximum(sums, group_maxima(s))
    elif WORK == "candidates":
        n_listed = append_candidates(args, s, bound, n_listed, place, start)
    else:
        if WORK == "received":
            x = s * args.scale - bound[None, :]
        else:
            x = s * args.scale - bound[:, None]
        p = gl.exp2(x)
        if BINS == "narrow":
            parts = sum_by_lane(p, p.shape[1] // BIN_UNIT)
            store_bins(buffers, scratch, parts, bound, start // BIN_UNIT, bin_indices(parts), False, False)
        elif BINS == "uneven":
            above, below, _ = split_at_edges(p, bin * buffers.bin_width, buffers.bin_width, start, BIN_UNIT)
            sums, bin = store_finished_bins(
                buffers, scratch, above, below, bound, sums, bin, start, BIN_UNIT, False, False
            )
        else:
            sums += gl.convert_layout(gl.sum(sum_by_lane(p, 1), 1), sums.type.layout)
        if BINS == "wide":  # noqa: SIM102 - known when compiled, unlike the next condition
            if start == bin * buffers.bin_width:
                store_bin(scratch, gl.sum(sums, 1), bound, bin, False)
                sums = gl.zeros_like(sums)
                bin -= 1
    return sums, n_listed, bin


@gluon.jit
def _visible(args, s, place, start, WORK: gl.constexpr, CAUSAL: gl.constexpr):
    """Which scores of a tile are visible."""
    layout: gl.constexpr = s.type.layout
    rows = place[1] + gl.arange(0, s.shape[0], gl.SliceLayout(1, layout))[:, None]
    columns = start + gl.arange(0, s.shape[1], gl.SliceLayout(0, layout))[None, :]
    if WORK == "received":
        return (rows <= columns + args.edge) & (columns < args.T)
    visible = columns + rows * 0 < args.S
    if CAUSAL:
        visible = visible & (columns <= rows + args.edge)
    return visible


@gluon.jit
def store_results(
    args, buffers, state, scratch, place, end, WORK: gl.constexpr, PIECES: gl.constexpr, TOP: gl.constexpr
):
    """Store the results. end: the end of the keys that were processed."""
    sums, n_listed, _ = state
    ROWS: gl.constexpr = sums.shape[0]
    head, row = place
    rows = row + gl.arange(0, ROWS, n_listed.type.layout)
    if WORK == "candidates":
        first_row = (head - args.first).to(gl.int64) * args.T
        gl.store(args.counts + first_row + rows, n_listed, mask=rows < args.T)
    elif WORK == "thresholds":
        row_threshold = gl.convert_layout(nth_largest(sums, TOP), n_listed.type.layout)
        gl.store(args.threshold + head.to(gl.int64) * args.T + rows, row_threshold, mask=rows < args.T)
    elif WORK == "received":
        total = gl.convert_layout(gl.sum(sums, 1), n_listed.type.layout)
        gl.store(args.out + head.to(gl.int64) * args.S + rows, total, mask=rows < args.S)
    else:
        sync()  # other threads load what this one stored
        sum_bin_rows(buffers, scratch, head - args.first, row, n_listed.to(gl.float32), end, args.T, False, PIECES)
        sync()  # before the scratch is overwritten
