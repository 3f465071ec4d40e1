"""benchmarks/cuda_clock: times are the device's alone. The device and the host's clock are simulated."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import cuda_clock
from benchmarks.cuda_clock import LONGEST, SHORTEST, cycles_per_second, race, sleep_seconds

SPEED = 2e9


class Machine:
    """A host whose clock advances when it launches, and a device that runs its work in order.

    `log` holds the device's work, in order.
    """

    def __init__(self, speeds: tuple[float, ...] = (SPEED,)) -> None:
        self.host = self.device = 0.0
        self.speeds = list(speeds)
        self.log: list[str] = []

    def perf_counter(self) -> float:
        return self.host

    def launch(self, seconds: float, host: float = 0.0, name: str = "kernel") -> None:
        self.host += host
        self.device = max(self.device, self.host) + seconds
        self.log.append(name)

    def sleep(self, cycles: int) -> None:
        speed = self.speeds[0] if len(self.speeds) == 1 else self.speeds.pop(0)
        self.launch(cycles / speed, name="sleep")

    def synchronize(self) -> None:
        self.host = max(self.host, self.device)

    def event(self, **_: Any) -> "Event":
        return Event(self)

    @classmethod
    def install(cls, patch: pytest.MonkeyPatch, **options: Any) -> "Machine":
        """Replace CUDA and the clock of the benchmark."""
        machine = cls(**options)
        patch.setattr(torch.cuda, "Event", machine.event)
        patch.setattr(torch.cuda, "_sleep", machine.sleep, raising=False)
        patch.setattr(torch.cuda, "synchronize", machine.synchronize)
        patch.setattr(cuda_clock, "time", SimpleNamespace(perf_counter=machine.perf_counter))
        patch.setattr(cuda_clock, "FLUSHED_BYTES", 1)
        return machine


class Event:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def record(self) -> None:
        self.machine.log.append("event")
        self.at = max(self.machine.device, self.machine.host)

    def elapsed_time(self, other: "Event") -> float:
        return (other.at - self.at) * 1e3


@given(launches=st.lists(st.tuples(st.floats(1e-6, 1e-3), st.floats(0, 2e-3)), min_size=1, max_size=4))
def test_a_time_excludes_the_host(launches: list[tuple[float, float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine.install(patch)

        def run() -> None:
            for seconds, host in launches:
                machine.launch(seconds, host)

        found = race({"slow": run}, seconds=9.0, least=3, most=3, device=torch.device("cpu"))
    assert found.times["slow"] == pytest.approx([sum(seconds for seconds, _ in launches)] * 3, abs=1e-9)


def test_without_sleeping_the_host_is_included(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine.install(monkeypatch)
    monkeypatch.setattr(cuda_clock, "sleep_seconds", lambda _: 0.0)

    def run() -> None:
        for _ in range(3):
            machine.launch(1e-4, host=1e-3)

    found = race({"slow": run}, seconds=9.0, least=1, most=1, device=torch.device("cpu"))
    assert found.times["slow"] == pytest.approx([3.1e-3])


def test_order_of_flush_sleep_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine.install(monkeypatch)
    cache: Any = SimpleNamespace(zero_=lambda: machine.launch(1e-4, name="flush"))
    timing = cuda_clock._timed_call(lambda: machine.launch(1e-3, host=2e-3), cache, 10**7)
    assert machine.log == ["flush", "sleep", "event", "kernel", "event"]
    assert timing.host == 2e-3


def test_the_sleep_follows_the_last_host_time(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, sleeps = Machine.install(monkeypatch), []

    def sleep(host: float) -> float:
        sleeps.append(host)
        return sleep_seconds(host)

    monkeypatch.setattr(cuda_clock, "sleep_seconds", sleep)
    race({"one": lambda: machine.launch(1e-4, 2e-3)}, seconds=9.0, least=3, most=3, device=torch.device("cpu"))
    assert sleeps == pytest.approx([LONGEST, 2e-3, 2e-3])


@given(host=st.floats(0, 1))
def test_limits_of_the_sleep(host: float) -> None:
    assert SHORTEST <= sleep_seconds(host) <= LONGEST
    assert sleep_seconds(host) >= min(host, LONGEST)


def test_every_contender_runs_once_per_round_until_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine.install(monkeypatch)
    runs = {name: lambda: machine.launch(0.1) for name in "abc"}
    found = race(runs, seconds=1.0, least=2, most=50, device=torch.device("cpu"))
    assert {len(times) for times in found.times.values()} == {4}
    found = race(runs, seconds=0.0, least=2, most=50, device=torch.device("cpu"))
    assert {len(times) for times in found.times.values()} == {2}


def test_the_clock_rate_is_the_fastest_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine.install(monkeypatch, speeds=(0.3e9, 1.9e9, SPEED, 1.9e9, SPEED))
    assert cycles_per_second() == pytest.approx(SPEED)
