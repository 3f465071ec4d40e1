"""Training steps as CUDA graphs: everything that can be tested without a GPU. For real graphs see tests/gpu."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from regard.cuda_graph import WARM_UP
from regard.training import step as module
from regard.training.batches import IGNORED
from regard.training.step import GraphedUpdate, MicroBatch, padded_to_widest


def micro(B: int, T: int, S: int, fill: int = 1) -> MicroBatch:
    inputs = {
        "ids": torch.full((B, T), fill),
        "source": torch.full((B, S), fill),
        "source_keep": torch.ones(B, S, dtype=torch.bool),
    }
    return inputs, torch.full((B, T), fill)


def test_batch_is_padded_with_ignored_values() -> None:
    inputs, targets = padded_to_widest(*micro(2, 3, 5))
    assert {each.shape for each in (*inputs.values(), targets)} == {(2, 5)}
    assert targets[:, 3:].eq(IGNORED).all()
    assert inputs["ids"][:, 3:].eq(0).all()
    inputs, _ = padded_to_widest(*micro(2, 5, 3))
    assert not inputs["source_keep"][:, 3:].any()
    assert inputs["source_keep"].dtype == torch.bool


class Recorder:
    """A fake update for fake CUDA graphs: recording calls it once, a replay sums the content of its buffers."""

    def __init__(self) -> None:
        self.eager = 0

    def prepare(self, *, lr: float, n_targets: int) -> None:
        self.prepared = lr, n_targets

    def __call__(self, micro: Sequence[MicroBatch]) -> Tensor:
        self.eager += 1
        return sum((targets[targets != IGNORED].sum() for _, targets in micro), torch.zeros(())).float()


Graphs = Callable[[], tuple[GraphedUpdate, Recorder]]


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Graphs:
    def record(self: GraphedUpdate, micro: Sequence[MicroBatch]) -> module._CapturedStep:
        own = [({name: each.clone() for name, each in inputs.items()}, targets.clone()) for inputs, targets in micro]
        numbers = torch.zeros(())

        def replay() -> None:
            numbers.copy_(sum(targets[targets != IGNORED].sum() for _, targets in own))  # type: ignore[arg-type]

        return module._CapturedStep(own, numbers, replay)

    monkeypatch.setattr(GraphedUpdate, "_record", record)

    def made() -> tuple[GraphedUpdate, Recorder]:
        recorder = Recorder()
        return GraphedUpdate(recorder), recorder  # type: ignore[arg-type]

    return made


def test_shape_is_warmed_up_then_replayed_with_current_data(graphs: Graphs) -> None:
    step, recorder = graphs()
    step.prepare(lr=0.5, n_targets=6)
    assert recorder.prepared == (0.5, 6)
    for fill in (1, 2, 3, 4):
        assert step([micro(2, 3, 5, fill)]).item() == 6 * fill
    assert recorder.eager == WARM_UP
    assert step([micro(2, 3, 6, 1)]).item() == 6  # another shape
    assert recorder.eager == WARM_UP + 1


def test_shapes_beyond_the_limit_run_without_a_graph(graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GRAPHS", 1)
    step, recorder = graphs()
    for _ in range(4):
        step([micro(2, 3, 5)])
        step([micro(2, 3, 7)])
    assert recorder.eager == WARM_UP + 4


def test_graphs_share_memory_and_tolerate_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[dict[str, object]] = []

    class Graph:
        def pool(self) -> str:
            return "pool"

        def replay(self) -> None:
            pass

    @contextmanager
    def graph(made: Graph, **how: object) -> Iterator[None]:
        recorded.append(how)
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    step = GraphedUpdate(Recorder())  # type: ignore[arg-type]
    for width in (5, 5, 5, 6, 6, 6):
        step([micro(2, 3, width)])
    mode = {"capture_error_mode": "thread_local"}
    assert recorded == [{"pool": None, **mode}, {"pool": "pool", **mode}]
