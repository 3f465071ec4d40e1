"""What Gluon calls what we need: names that changed between Triton 3.6 and 3.9."""

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import tma

sync = getattr(gl, "barrier", None) or gl.thread_barrier
"""The warps that share a job wait for each other."""

copy_in = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
"""The copy engine brings a tile into shared memory, and says so at a barrier."""
