"""A step as one CUDA graph for each shape of batch: a small model's step is a thousand launches, and then it is one.

The first batch of a shape is computed as usual, which also warms up whatever is set up lazily; the second is recorded
and from then on replayed. A batch is filled up to squares first (every tensor as wide as the widest), so that there
are few shapes. What is filled in is nobody's target and nobody's key.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.training.batches import IGNORED
from regard.training.update import Micro

MOST_GRAPHS = 256
"""Shapes beyond these are computed without a graph."""


class _Graph(NamedTuple):
    """A recorded step: what it reads, what it gives, and how it is run again."""

    micro: Sequence[Micro]
    numbers: Tensor
    replay: Callable[[], None]


class Captured:
    """Gives what `update` gives, from graphs where a shape comes again."""

    def __init__(self, update: Callable[[Sequence[Micro]], Tensor]) -> None:
        self.update = update
        self._seen: set[Any] = set()
        self._graphs: dict[Any, _Graph] = {}
        self._pool: Any = None

    def __call__(self, micro: Sequence[Micro]) -> Tensor:
        micro = [squared(*each) for each in micro]
        shapes = tuple(
            (tuple(targets.shape), *sorted((n, tuple(x.shape)) for n, x in ins.items())) for ins, targets in micro
        )
        if shapes not in self._seen:
            if len(self._seen) < MOST_GRAPHS:
                self._seen.add(shapes)
            return self.update(micro)
        if shapes not in self._graphs:
            self._graphs[shapes] = self._record(micro)
        graph = self._graphs[shapes]
        for (inputs, targets), (own_inputs, own_targets) in zip(micro, graph.micro, strict=True):
            own_targets.copy_(targets, non_blocking=True)
            for name, each in inputs.items():
                own_inputs[name].copy_(each, non_blocking=True)
        graph.replay()
        return graph.numbers

    def _record(self, micro: Sequence[Micro]) -> _Graph:
        """The update of batches of this shape, recorded but not run. All graphs share memory: one runs at a time."""
        own = [({name: each.clone() for name, each in inputs.items()}, targets.clone()) for inputs, targets in micro]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            numbers = self.update(own)
        self._pool = graph.pool()
        return _Graph(own, numbers, graph.replay)


def squared(inputs: dict[str, Tensor], targets: Tensor) -> Micro:
    """Everything as wide as the widest: ids by 0, what is kept by False, targets by IGNORED."""
    width = max(each.shape[-1] for each in (*inputs.values(), targets))

    def filled(x: Tensor, value: int) -> Tensor:
        missing = width - x.shape[-1]
        return F.pad(x, (0, missing), value=value) if missing else x

    return {name: filled(each, 0) for name, each in inputs.items()}, filled(targets, IGNORED)
