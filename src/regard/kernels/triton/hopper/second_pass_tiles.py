"""What a second pass computes from a tile of scores: bin sums, column sums, thresholds, keys that reach them."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.candidates import ROOM as ROOM_OF_A_LIST
from regard.kernels.triton.hopper.bins import bins_of, pool_rows, store_bin, store_bins
from regard.kernels.triton.hopper.gluon_names import sync
from regard.kernels.triton.hopper.lanes import beside, by_lanes, group_maxima, least_of
from regard.kernels.triton.hopper.unaligned_bins import close_bins, on_either_side

ROOM = gl.constexpr(ROOM_OF_A_LIST)


@gluon.jit
def _reaches(s, threshold):
    """1 where a score is no less than its threshold, else 0: floating-point numbers."""
    return gl.inline_asm_elementwise(
        "set.ge.f32.f32 $0, $1, $2;", "=f,f,f", [s, threshold], dtype=gl.float32, is_pure=True, pack=1
    )


@gluon.jit
def append(task, s, threshold, survived, place, start):
    """Write down the keys that reach their row's threshold, and count them.

    A row lies in four lanes: of each eight columns two in each lane, 32 of a tile. Lanes tell each other how many of
    theirs there are, so that each knows where its own begin.
    """
    ROWS: gl.constexpr = s.shape[0]
    s = s.reshape([ROWS, 2, 8, 4, 2]).permute((0, 3, 1, 2, 4)).reshape([ROWS, 4, 2, 16])
    layout: gl.constexpr = s.type.layout
    least = gl.convert_layout(threshold, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, layout))))
    hits = _bits_of(_reaches(s, least[:, None, None, None]))
    lanes = gl.arange(0, 4, gl.SliceLayout(0, hits.type.layout))[None, :]
    counts = gl.inline_asm_elementwise(_POPULATION, "=r,r", [hits], dtype=gl.int32, is_pure=True, pack=1) << lanes * 8
    up_to = gl.sum(counts, 1) * 0x01010101  # a byte for each lane: how many it has, and those before it
    begin = beside(survived, hits) + (beside(up_to << 8, hits) >> lanes * 8 & 255)
    head, row = place
    rows = (head - task.first).to(gl.int64) * task.T + row + gl.arange(0, ROWS, gl.SliceLayout(1, hits.type.layout))
    lists = (task.out + rows * ROOM).to(gl.int64)[:, None]
    arguments = [hits, begin, start + lanes * 2, lists]
    gl.inline_asm_elementwise(_WRITE, "=r,r,r,r,l", arguments, dtype=gl.int32, is_pure=False, pack=1)
    return survived + gl.convert_layout(up_to >> 24 & 255, survived.type.layout)


@gluon.jit
def _bits_of(reached):
    """Of a tensor […, …, 2, 16] of ones and zeros the 32 bits; one lane has all of them."""
    layout: gl.constexpr = reached.type.layout
    # Added up as floating-point numbers: the unit for integers is busy enough.
    bits = (1 << gl.arange(0, 16, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, layout))))).to(gl.float32)
    halves = gl.sum(reached * bits[None, None, None, :], 3).to(gl.int32)
    shifts = gl.arange(0, 2, gl.SliceLayout(0, gl.SliceLayout(1, halves.type.layout))) * 16
    return gl.sum(halves << shifts[None, None, :], 2)


_POPULATION = gl.constexpr("popc.b32 $0, $1;")
_WRITE = gl.constexpr(
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
    setp.lt.s32 fits, at, ROOM;
    mad.wide.s32 there, at, 4, $4;
    @fits st.global.b32 [there], key;
    add.s32 at, at, 1;
    bra more;
    done:
    mov.b32 $0, at;
    }""".replace("ROOM", str(ROOM_OF_A_LIST))
)
"""$0 where the list of a row ends then; $1 a bit for each key, $2 where they begin, $3 the first key, $4 the list."""


@gluon.jit
def begin_with(pool, last, ROWS: gl.constexpr, PASSING: gl.constexpr, WORK: gl.constexpr):
    """Nothing found yet: sums by rows and lanes, or maxima of groups; how many survived of each row; for a map, the bin
    of the last key.
    """
    nothing = gl.zeros((ROWS, PASSING), gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, PASSING, 16]))
    if WORK == "thresholds":
        sums = group_maxima(nothing) + float("-inf")
    else:
        sums = gl.zeros_like(gl.sum(by_lanes(nothing, 1), 1))
    return sums, gl.zeros((ROWS,), gl.int32, gl.SliceLayout(1, sums.type.layout)), last // pool.wide


@gluon.jit
def bound_of(task, place, start, ROWS: gl.constexpr, PASSING: gl.constexpr, WORK: gl.constexpr):
    """What scores are held against: the LSE of each query in base 2, of own rows or of a tile of columns; or the
    threshold of each own row.
    """
    scores: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, PASSING, 16])
    head, row = place
    if WORK == "received":
        lse = task.lse + head.to(gl.int64) * (gl.cdiv(task.T, PASSING) * PASSING)  # as `in_whole_tiles` has it
        bound = gl.load(lse + start + gl.arange(0, PASSING, gl.SliceLayout(0, scores)))
    else:
        rows = row + gl.arange(0, ROWS, gl.SliceLayout(1, scores))
        given = task.lse
        if WORK == "survivors":
            given = task.threshold
        bound = gl.load(given + head.to(gl.int64) * task.T + rows, mask=rows < task.T, other=float("inf"))
        if WORK == "survivors":
            bound = gl.maximum(bound, -3.4028234e38)  # what is hidden never survives
        else:
            bound = gl.where(bound == float("-inf"), float("inf"), bound) * 1.4426950408889634
    return bound


@gluon.jit
def read(
    task,
    pool,
    found,
    s,
    bound,
    scratch,
    place,
    start,
    MASKED: gl.constexpr,
    WORK: gl.constexpr,
    CAUSAL: gl.constexpr,
    BINS: gl.constexpr,
    SHARE: gl.constexpr,
):
    """What was found, with a tile of scores added that begins at column `start`. MASKED: not everybody sees it."""
    sums, survived, bin = found
    if MASKED:
        s = gl.where(_seen(task, s, place, start, WORK, CAUSAL), s, float("-inf"))
    if WORK == "thresholds":
        sums = gl.maximum(sums, group_maxima(s))
    elif WORK == "survivors":
        survived = append(task, s, bound, survived, place, start)
    else:
        if WORK == "received":
            x = s * task.scale - bound[None, :]
        else:
            x = s * task.scale - bound[:, None]
        p = gl.exp2(x)
        if BINS == "narrow":
            parts = by_lanes(p, p.shape[1] // SHARE)
            store_bins(pool, scratch, parts, bound, start // SHARE, bins_of(parts), False, False)
        elif BINS == "uneven":
            above, below, _ = on_either_side(p, bin * pool.wide, pool.wide, start, SHARE)
            sums, bin = close_bins(pool, scratch, above, below, bound, sums, bin, start, SHARE, False, False)
        else:
            sums += gl.convert_layout(gl.sum(by_lanes(p, 1), 1), sums.type.layout)
        if BINS == "wide":  # noqa: SIM102 - known when it is compiled, unlike what follows
            if start == bin * pool.wide:
                store_bin(scratch, gl.sum(sums, 1), bound, bin, False)
                sums = gl.zeros_like(sums)
                bin -= 1
    return sums, survived, bin


@gluon.jit
def _seen(task, s, place, start, WORK: gl.constexpr, CAUSAL: gl.constexpr):
    """Which scores of a tile count."""
    layout: gl.constexpr = s.type.layout
    rows = place[1] + gl.arange(0, s.shape[0], gl.SliceLayout(1, layout))[:, None]
    columns = start + gl.arange(0, s.shape[1], gl.SliceLayout(0, layout))[None, :]
    if WORK == "received":
        return (rows <= columns + task.edge) & (columns < task.T)
    seen = columns + rows * 0 < task.S
    if CAUSAL:
        seen = seen & (columns <= rows + task.edge)
    return seen


@gluon.jit
def conclude(task, pool, found, scratch, place, end, WORK: gl.constexpr, PIECES: gl.constexpr, TOP: gl.constexpr):
    """Store what was found. end: of the keys that were looked at."""
    sums, survived, _ = found
    ROWS: gl.constexpr = sums.shape[0]
    head, row = place
    rows = row + gl.arange(0, ROWS, survived.type.layout)
    if WORK == "survivors":
        here = (head - task.first).to(gl.int64) * task.T
        gl.store(task.counts + here + rows, survived, mask=rows < task.T)
    elif WORK == "thresholds":
        least = gl.convert_layout(least_of(sums, TOP), survived.type.layout)
        gl.store(task.threshold + head.to(gl.int64) * task.T + rows, least, mask=rows < task.T)
    elif WORK == "received":
        total = gl.convert_layout(gl.sum(sums, 1), survived.type.layout)
        gl.store(task.out + head.to(gl.int64) * task.S + rows, total, mask=rows < task.S)
    else:
        sync()  # what one thread has stored another will load
        pool_rows(pool, scratch, head - task.first, row, survived.to(gl.float32), end, task.T, False, PIECES)
        sync()  # before the scratch is written again
