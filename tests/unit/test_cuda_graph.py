"""Capture of CUDA graphs, with a graph that records its calls. For real graphs see tests/gpu."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from regard.cuda_graph import WARM_UP, CudaGraph
from regard.models.decoding import CudaGraphStep


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The options of every capture; a replay computes nothing."""
    options_of_captures: list[dict[str, object]] = []

    class Graph:
        def pool(self) -> str:
            return "pool"

        def replay(self) -> None:
            pass

    @contextmanager
    def graph(made: Graph, **options: object) -> Iterator[None]:
        options_of_captures.append(options)
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    return options_of_captures


def test_graph_has_the_result_and_the_pool_of_its_capture(captures: list[dict[str, object]]) -> None:
    result = torch.ones(2)
    graph = CudaGraph(lambda: result)
    assert graph.result is result
    other = CudaGraph(lambda: result, pool=graph.pool, errors="thread_local")
    other.replay()
    assert captures == [
        {"pool": None, "capture_error_mode": "global"},
        {"pool": "pool", "capture_error_mode": "thread_local"},
    ]


def counted(calls: list[int]) -> Callable[[Tensor], Tensor]:
    def step(ids: Tensor) -> Tensor:
        calls.append(ids.data_ptr())
        return ids * 2

    return step


def test_decoding_step_is_warmed_up_then_captured_once(captures: list[dict[str, object]]) -> None:
    calls: list[int] = []
    step = CudaGraphStep(counted(calls))
    for value in range(WARM_UP):
        assert step(torch.tensor([[value]])).item() == 2 * value
        assert not captures
    results = [step(torch.tensor([[5]])) for _ in range(3)]
    assert len(captures) == 1
    assert len(calls) == WARM_UP + 1, "replays do not call the step"
    assert len(set(calls)) == 1, "the same memory in every call"
    assert len({result.data_ptr() for result in results}) == 3, "the caller owns its result"
