"""One step made quick: compiled, and on a GPU captured as a graph, so that launching kernels costs nothing.

It knows only a function from ids to logits that does its work in memory that never moves.
"""

from collections.abc import Callable
from types import FunctionType

import torch
from torch import Tensor

Step = Callable[[Tensor], Tensor]


def quick(step: Step, device: torch.device) -> Step:
    """The step compiled without breaks; on a GPU its kernels are then launched as one graph."""
    compiled: Step = torch.compile(_of_its_own(step), fullgraph=True, dynamic=False)
    return Captured(compiled) if device.type == "cuda" else compiled


def _of_its_own(step: Step) -> Step:
    """The same function as a new piece of code: PyTorch gives up on one that it has compiled for eight shapes."""

    def once(ids: Tensor) -> Tensor:
        return step(ids)

    return FunctionType(once.__code__.replace(), once.__globals__, closure=once.__closure__)


class Captured:
    """A step on a GPU, recorded when it is called the third time and replayed from then on.

    The first two calls run as they are: compiling and choosing kernels must be over before a graph can be recorded,
    and what the first call makes once may lead to one more compilation.
    """

    WARM_UP = 2

    def __init__(self, step: Step) -> None:
        self._step = step
        self._calls = 0
        self._graph = torch.cuda.CUDAGraph()
        self._ids: Tensor
        self._logits: Tensor

    def __call__(self, ids: Tensor) -> Tensor:
        if self._calls == 0:
            self._ids = ids.contiguous().clone()  # one place and one layout, whatever callers cut their ids from
        self._ids.copy_(ids)
        self._calls += 1
        if self._calls <= self.WARM_UP:
            return self._step(self._ids)
        if self._calls == self.WARM_UP + 1:
            with torch.cuda.graph(self._graph):
                self._logits = self._step(self._ids)
        self._graph.replay()
        return self._logits.clone()  # the next replay writes into the same memory
