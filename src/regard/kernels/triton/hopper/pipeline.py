"""Tiles on their way through shared memory: stages in a ring, each with a barrier that says full, one that says empty.

A barrier's two phases take turns: whoever waits says which one by the parity of how often the stage was used.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from regard.kernels.triton.hopper.gluon_names import copy_in


@gluon.jit
def barriers_for(STAGES: gl.constexpr, CONSUMERS: gl.constexpr):
    """Barriers that say of each stage that it is full, and that all consumers have emptied it."""
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    return full, empty


@gluon.jit
def bring(x, stages, full, empty, n, sample, h, row, STAGES: gl.constexpr):
    """The n-th tile, as soon as its stage is empty: rows `row` and on of one head of the descriptor `x`."""
    i = n % STAGES
    mbarrier.wait(empty.index(i), (n // STAGES & 1) ^ 1)
    mbarrier.expect(full.index(i), x.block_type.nbytes)
    copy_in(x, [sample, h, row, 0], full.index(i), stages.index(i))


@gluon.jit
def wait_for(full, n, STAGES: gl.constexpr):
    """Until the n-th tile is there; its stage."""
    i = n % STAGES
    mbarrier.wait(full.index(i), n // STAGES & 1)
    return i
