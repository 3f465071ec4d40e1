"""A step as one CUDA graph for each shape of batch: a small model's step is a thousand launches, and then it is one.

The first batches of a shape are computed as usual, which also warms up whatever is set up lazily; the next is recorded
and from then on replayed. A batch is filled up to squares first (every tensor as wide as the widest), so that there
are few shapes. What is filled in is nobody's target and nobody's key.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.training.batches import IGNORED
from regard.training.step import Micro, Update

WARM_UP = 2
"""Batches of a shape before it is recorded: the first compiles what is compiled, the second runs it as it will be."""
MOST_GRAPHS = 256
"""Shapes beyond these are computed without a graph."""


class _Graph(NamedTuple):
    """A recorded step: what it reads, what it gives, and how it is run again."""

    micro: Sequence[Micro]
    numbers: Tensor
    replay: Callable[[], None]


class Captured:
    """Gives what `update` gives, from graphs where a shape comes again."""

    def __init__(self, update: Update) -> None:
        self.update = update
        self.prepare = update.prepare
        self._seen: Counter[Any] = Counter()
        self._graphs: dict[Any, _Graph] = {}
        self._pool: Any = None

    def __call__(self, micro: Sequence[Micro]) -> Tensor:
        micro = [squared(*each) for each in micro]
        shapes = tuple(
            (tuple(targets.shape), *sorted((n, tuple(x.shape)) for n, x in ins.items())) for ins, targets in micro
        )
        if self._seen[shapes] < WARM_UP:
            if shapes in self._seen or len(self._seen) < MOST_GRAPHS:
                self._seen[shapes] += 1
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
        # Another thread is sending the next batch meanwhile: what it asks of the device must not spoil the recording.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
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
