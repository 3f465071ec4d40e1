"""Tiles in shared memory: a ring of stages, each with a "full" and an "empty" barrier.

A barrier alternates between two phases: a wait selects one by the parity of the number of uses of the stage.
`sync` and `copy_in` are Gluon functions whose names changed between Triton 3.6 and 3.9.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

sync = getattr(gl, "barrier", None) or gl.thread_barrier
"""Barrier among the warps of one role."""

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
"""TMA load of a tile into shared memory, which signals a barrier."""


@gluon.jit
def barriers_for(STAGES: gl.constexpr, CONSUMERS: gl.constexpr):
    """Barriers for each stage: full, and emptied by all consumers."""
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    return full, empty


@gluon.jit
def load_stage(x, stages, full, empty, n, sample, h, row, STAGES: gl.constexpr):
    """Load the n-th tile once its stage is empty: rows from `row` on of one head of the descriptor `x`."""
    i = n % STAGES
    mbarrier.wait(empty.index(i), (n // STAGES & 1) ^ 1)
    mbarrier.expect(full.index(i), x.block_type.nbytes)
    copy_in(x, [sample, h, row, 0], full.index(i), stages.index(i))


@gluon.jit
def wait_stage(full, n, STAGES: gl.constexpr):
    """Wait until the n-th tile is loaded; returns its stage."""
    i = n % STAGES
    mbarrier.wait(full.index(i), n // STAGES & 1)
    return i
