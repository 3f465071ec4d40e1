"""Step results read from the device in order, one step late on a GPU; and throughput."""

import time
from typing import Any

import pytest
import torch

from regard.training.run_reports import StepResults, Throughput


def put(into: StepResults, step: int, loss: float = 2.0, *, good: bool = True, stop: float = 0.0) -> None:
    numbers = torch.tensor([loss, 0.5, float(good), stop], dtype=torch.float64)
    into.put(step, 0.1 * step, numbers, 10 * step, (step,))


def test_cpu_steps_are_reported_at_once() -> None:
    found = StepResults()
    assert found.take() == []
    put(found, 1, 1.5)
    (report,) = found.take()
    assert report == (1, 0.1, 1.5, 0.5, False, 10, (1,))
    assert found.take(everything=True) == []


def test_skipped_step_has_no_loss_and_norm() -> None:
    found = StepResults()
    put(found, 1, float("nan"), good=False)
    put(found, 2, 3.0, good=False)  # finite loss, non-finite gradient
    assert [(report.loss, report.norm) for report in found.take()] == [(None, None)] * 2


def test_stop_request_of_one_process_is_enough() -> None:
    found = StepResults()
    for step, stop in ((1, 0.0), (2, 1.0), (3, 4.0)):
        put(found, step, stop=stop)
    assert [report.stop for report in found.take()] == [False, True, True]


class Arrival:
    """A fake CUDA event that records when it was waited for."""

    def __init__(self, log: list[int], step: int) -> None:
        self.log, self.step = log, step

    def synchronize(self) -> None:
        self.log.append(self.step)


def test_newest_gpu_step_is_not_waited_for() -> None:
    waited: list[int] = []
    found = StepResults()

    def launch(step: int) -> None:
        put(found, step)
        arrival: Any = Arrival(waited, step)
        found._pending[-1] = found._pending[-1]._replace(arrived=arrival)

    launch(1)
    assert found.take() == []
    launch(2)
    assert [report.step for report in found.take()] == [1]
    assert waited == [1]
    launch(3)
    assert [report.step for report in found.take(everything=True)] == [2, 3]
    assert waited == [1, 2, 3]


class Clock:
    """A manual `perf_counter`."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", made)
    return made


def test_unknown_before_the_first_step(clock: Clock) -> None:
    throughput = Throughput()
    clock.now += 5
    throughput.end_pause()
    assert throughput.seconds_per_step is None
    assert throughput.tokens_per_second is None


def test_speed_excludes_pauses_and_time_per_step_includes_them(clock: Clock) -> None:
    throughput = Throughput()
    clock.now += 60  # preparation
    throughput.end_pause()
    for _ in range(4):
        clock.now += 0.5
        throughput.add(100)
    assert throughput.tokens_per_second == pytest.approx(200)
    assert throughput.seconds_per_step == pytest.approx(0.5)
    clock.now += 2  # a validation
    throughput.end_pause()
    clock.now += 0.5
    throughput.add(100)
    assert throughput.tokens_per_second == pytest.approx(200)
    assert throughput.seconds_per_step == pytest.approx(0.5 + 2 / 5)


def test_only_the_last_seconds_count(clock: Clock) -> None:
    throughput = Throughput()
    clock.now += 60
    throughput.add(10)  # the first step, with compilation
    for _ in range(3):
        clock.now += 1
        throughput.add(10)
    assert throughput.tokens_per_second == pytest.approx(10)
    for _ in range(30):
        clock.now += 2
        throughput.add(10)
    assert throughput.tokens_per_second == pytest.approx(5)
    assert len(throughput._steps) == 5


def test_zero_elapsed_time(clock: Clock) -> None:
    throughput = Throughput()
    throughput.add(10)
    assert throughput.tokens_per_second is None
    assert throughput.seconds_per_step == 0.0
