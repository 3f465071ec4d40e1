"""benchmarks/cuda_clock: a time is the device's alone. Here the device is made up, and so is the host's clock."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import cuda_clock
from benchmarks.cuda_clock import LONGEST, SHORTEST, cycles_per_second, nap, race

SPEED = 2e9


class Machine:
    """A host whose clock goes on when it launches, and a device that does things one after the other, when it has them.

    `log` holds what the device was given, in order.
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
    def instead(cls, patch: pytest.MonkeyPatch, **options: Any) -> "Machine":
        """Of CUDA and of the clock, for the benchmark."""
        made = cls(**options)
        patch.setattr(torch.cuda, "Event", made.event)
        patch.setattr(torch.cuda, "_sleep", made.sleep, raising=False)
        patch.setattr(torch.cuda, "synchronize", made.synchronize)
        patch.setattr(cuda_clock, "time", SimpleNamespace(perf_counter=made.perf_counter))
        patch.setattr(cuda_clock, "FLUSHED", 1)
        return made


class Event:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def record(self) -> None:
        self.machine.log.append("event")
        self.at = max(self.machine.device, self.machine.host)

    def elapsed_time(self, other: "Event") -> float:
        return (other.at - self.at) * 1e3


@given(launches=st.lists(st.tuples(st.floats(1e-6, 1e-3), st.floats(0, 2e-3)), min_size=1, max_size=4))
def test_a_time_is_the_devices_however_slow_the_host(launches: list[tuple[float, float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine.instead(patch)

        def run() -> None:
            for seconds, host in launches:
                machine.launch(seconds, host)

        found = race({"slow": run}, seconds=9.0, least=3, most=3, device=torch.device("cpu"))
    assert found.times["slow"] == pytest.approx([sum(seconds for seconds, _ in launches)] * 3, abs=1e-9)


def test_without_a_nap_the_host_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine.instead(monkeypatch)
    monkeypatch.setattr(cuda_clock, "nap", lambda _: 0.0)
    run = {"slow": lambda: [machine.launch(1e-4, host=1e-3) for _ in range(3)]}
    found = race(run, seconds=9.0, least=1, most=1, device=torch.device("cpu"))
    assert found.times["slow"] == pytest.approx([3.1e-3])


def test_the_cache_is_flushed_then_the_device_sleeps_then_the_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine.instead(monkeypatch)
    cache: Any = SimpleNamespace(zero_=lambda: machine.launch(1e-4, name="flush"))
    turn = cuda_clock._turn(lambda: machine.launch(1e-3, host=2e-3), cache, 10**7)
    assert machine.log == ["flush", "sleep", "event", "kernel", "event"]
    assert turn.host == 2e-3


def test_a_nap_follows_what_the_host_took_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, naps = Machine.instead(monkeypatch), []
    monkeypatch.setattr(cuda_clock, "nap", lambda host: naps.append(host) or nap(host))
    race({"one": lambda: machine.launch(1e-4, 2e-3)}, seconds=9.0, least=3, most=3, device=torch.device("cpu"))
    assert naps == pytest.approx([LONGEST, 2e-3, 2e-3])


@given(host=st.floats(0, 1))
def test_a_nap_is_long_enough_and_never_too_long(host: float) -> None:
    assert SHORTEST <= nap(host) <= LONGEST
    assert nap(host) >= min(host, LONGEST)


def test_everybody_has_a_turn_each_round_and_time_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine.instead(monkeypatch)
    runs = {name: lambda: machine.launch(0.1) for name in "abc"}
    found = race(runs, seconds=1.0, least=2, most=50, device=torch.device("cpu"))
    assert {len(times) for times in found.times.values()} == {4}
    found = race(runs, seconds=0.0, least=2, most=50, device=torch.device("cpu"))
    assert {len(times) for times in found.times.values()} == {2}


def test_the_clocks_speed_is_the_fastest_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine.instead(monkeypatch, speeds=(0.3e9, 1.9e9, SPEED, 1.9e9, SPEED))
    assert cycles_per_second() == pytest.approx(SPEED)
