"""Numbers read off the device in order, one late where it is a GPU; and how fast it goes."""

from typing import Any

import pytest
import torch

from regard.training import journal
from regard.training.journal import Pace, Reports


def put(into: Reports, step: int, loss: float = 2.0, *, good: bool = True, stop: float = 0.0) -> None:
    numbers = torch.tensor([loss, 0.5, float(good), stop], dtype=torch.float64)
    into.put(step, 0.1 * step, numbers, 10 * step, (step,))


def test_on_the_cpu_every_step_comes_out_at_once() -> None:
    found = Reports()
    assert found.take() == []
    put(found, 1, 1.5)
    (report,) = found.take()
    assert report == (1, 0.1, 1.5, 0.5, False, 10, (1,))
    assert found.take(everything=True) == []


def test_a_step_that_was_left_out_has_neither_loss_nor_norm() -> None:
    found = Reports()
    put(found, 1, float("nan"), good=False)
    put(found, 2, 3.0, good=False)  # a finite loss whose gradient was not
    assert [(report.loss, report.norm) for report in found.take()] == [(None, None)] * 2


def test_one_process_that_was_asked_to_stop_is_enough() -> None:
    found = Reports()
    for step, stop in ((1, 0.0), (2, 1.0), (3, 4.0)):
        put(found, step, stop=stop)
    assert [report.stop for report in found.take()] == [False, True, True]


class Arrival:
    """An event of a GPU, of which it is known when it was waited for."""

    def __init__(self, log: list[int], step: int) -> None:
        self.log, self.step = log, step

    def synchronize(self) -> None:
        self.log.append(self.step)


def test_on_a_gpu_the_newest_step_is_not_waited_for() -> None:
    waited: list[int] = []
    found = Reports()

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
    """perf_counter, turned by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(journal.time, "perf_counter", made)
    return made


def test_before_the_first_step_nobody_can_tell(clock: Clock) -> None:
    pace = Pace()
    clock.now += 5
    pace.again()
    assert pace.seconds_per_step is None
    assert pace.tokens_per_second is None


def test_speed_is_that_of_the_work_and_time_left_is_all_of_it(clock: Clock) -> None:
    pace = Pace()
    clock.now += 60  # getting ready
    pace.again()
    for _ in range(4):
        clock.now += 0.5
        pace.add(100)
    assert pace.tokens_per_second == pytest.approx(200)
    assert pace.seconds_per_step == pytest.approx(0.5)
    clock.now += 2  # a validation
    pace.again()
    clock.now += 0.5
    pace.add(100)
    assert pace.tokens_per_second == pytest.approx(200)
    assert pace.seconds_per_step == pytest.approx(0.5 + 2 / 5)


def test_only_the_last_seconds_count(clock: Clock) -> None:
    pace = Pace()
    clock.now += 60
    pace.add(10)  # the first step, which had to be compiled
    for _ in range(3):
        clock.now += 1
        pace.add(10)
    assert pace.tokens_per_second == pytest.approx(10)
    for _ in range(30):
        clock.now += 2
        pace.add(10)
    assert pace.tokens_per_second == pytest.approx(5)
    assert len(pace._steps) == 5


def test_a_clock_that_stands_still_divides_by_nothing(clock: Clock) -> None:
    pace = Pace()
    pace.add(10)
    assert pace.tokens_per_second is None
    assert pace.seconds_per_step == 0.0
