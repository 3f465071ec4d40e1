"""Names of Gluon functions that changed between Triton 3.6 and 3.9."""

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import tma

sync = getattr(gl, "barrier", None) or gl.thread_barrier
"""Barrier among the warps of one role."""

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
"""TMA load of a tile into shared memory, which signals a barrier."""
