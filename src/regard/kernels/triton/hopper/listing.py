"""The keys of each query that reach its threshold, written down by whoever owns the query."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from regard.kernels.triton.hopper.lanes import beside
from regard.kernels.triton.survivors import ROOM as ROOM_OF_A_LIST

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
