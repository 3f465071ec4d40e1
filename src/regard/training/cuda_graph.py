"""Training steps as CUDA graphs, one per batch shape: one launch instead of about a thousand for a small model.

The first batches of a shape run normally, which warms up lazy initialisation. The next one is recorded, later ones
replay the graph. Batches are first padded so that all tensors are equally wide, which leaves few shapes. Padding is
neither a target nor a visible key.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.training.batches import IGNORED
from regard.training.step import MicroBatch, Update

WARM_UP = 2
"""Batches of a shape before it is recorded: the first one compiles, the second one runs the compiled code."""
MOST_GRAPHS = 256
"""Further shapes run without a graph."""


class _Graph(NamedTuple):
    """A recorded step: its input tensors, its output tensor, and the function that replays it."""

    micro: Sequence[MicroBatch]
    numbers: Tensor
    replay: Callable[[], None]


class GraphedUpdate:
    """Computes the same as `update`, with graphs for shapes that repeat."""

    def __init__(self, update: Update) -> None:
        self.update = update
        self.prepare = update.prepare
        self._counts: Counter[Any] = Counter()
        self._graphs: dict[Any, _Graph] = {}
        self._pool: Any = None

    def __call__(self, micro: Sequence[MicroBatch]) -> Tensor:
        micro = [padded_to_widest(*each) for each in micro]
        shapes = tuple(
            (tuple(targets.shape), *sorted((n, tuple(x.shape)) for n, x in ins.items())) for ins, targets in micro
        )
        if self._counts[shapes] < WARM_UP:
            if shapes in self._counts or len(self._counts) < MOST_GRAPHS:
                self._counts[shapes] += 1
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

    def _record(self, micro: Sequence[MicroBatch]) -> _Graph:
        """Record the update for this shape without running it. All graphs share one memory pool: one runs at a time."""
        own = [({name: each.clone() for name, each in inputs.items()}, targets.clone()) for inputs, targets in micro]
        graph = torch.cuda.CUDAGraph()
        # Another thread copies the next batch to the device meanwhile; its calls must not break the capture.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            numbers = self.update(own)
        self._pool = graph.pool()
        return _Graph(own, numbers, graph.replay)


def padded_to_widest(inputs: dict[str, Tensor], targets: Tensor) -> MicroBatch:
    """All tensors padded to the width of the widest: ids with 0, keep masks with False, targets with IGNORED."""
    width = max(each.shape[-1] for each in (*inputs.values(), targets))

    def padded(x: Tensor, value: int) -> Tensor:
        missing = width - x.shape[-1]
        return F.pad(x, (0, missing), value=value) if missing else x

    return {name: padded(each, 0) for name, each in inputs.items()}, padded(targets, IGNORED)
