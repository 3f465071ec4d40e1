"""CUDA graphs: a computation on a GPU captured once and replayed with one launch. Decoding and training use it."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

WARM_UP = 2
"""Calls before a computation is captured: the first one compiles and selects kernels. What it allocates may cause one
more compilation, in the second call. All of this must be finished before.
"""


class CudaGraph:
    """A computation captured as a CUDA graph, without running it.

    It reads its inputs from the same memory in every replay, and writes its result into the same tensor.

    pool     the memory pool of another graph, to share if only one of them runs at a time
    errors   "thread_local" if other threads use the GPU during the capture; their calls then do not break it
    """

    def __init__(
        self,
        compute: Callable[[], Tensor],
        *,
        pool: Any = None,
        errors: Literal["global", "thread_local"] = "global",
    ) -> None:
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool, capture_error_mode=errors):
            self.result = compute()
        self.replay: Callable[[], None] = self._graph.replay

    @property
    def pool(self) -> Any:
        """The memory pool of the graph."""
        return self._graph.pool()
