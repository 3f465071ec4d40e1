"""benchmarks/profiled: kernels by call, the time between them, and error handling; with a simulated profiler."""

import doctest
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import attention_settings, attention_table, counters, cuda_clock, profiled
from benchmarks.attention_settings import Setting
from benchmarks.counters import Counted, NoCountersError
from benchmarks.profiled import MARK, KernelRun, calls_of, kernels_of, lines_or_reason, main, short

SETTING = Setting(E=64, causal=False, n=64)


@pytest.mark.parametrize("module", [attention_settings, attention_table, counters, cuda_clock, profiled])
def test_doctests(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


# --- times -----------------------------------------------------------------------------------------------


def call(start: float, longer: float = 0.0) -> list[KernelRun]:
    """Zeros, our kernel 1 µs after them, and a sum 2 µs after that."""
    return [
        KernelRun("void at::native::fill<float>(float*)", start, start + 10),
        KernelRun("forward_kernel", start + 11, start + 91 + longer),
        KernelRun("void at::native::fill<float>(float*)", start + 93 + longer, start + 98 + longer),
    ]


def test_the_table_of_kernels_and_gaps() -> None:
    assert list(kernels_of([call(0), call(1000, longer=50), call(2000)])) == [
        ["forward_kernel", "1", "80.0", "81.6%"],
        ["fill<float>", "2", "15.0", "15.3%"],
        ["between kernels", "", "3.0", "3.1%"],
        ["all, in 3 calls", "3", "98.0", "100.0%"],
    ]


def as_events(kernel_runs: list[KernelRun], kind: str = "CUDA") -> Iterator[SimpleNamespace]:
    for name, start, end in kernel_runs:
        time_range = SimpleNamespace(start=start, end=end)
        yield SimpleNamespace(name=name, time_range=time_range, device_type=SimpleNamespace(name=kind))


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """The recorded events of a simulated profiler, without a device."""
    recorded: list[SimpleNamespace] = []

    class Profile:
        def __init__(self, **_: Any) -> None: ...
        def __enter__(self) -> "Profile":
            return self

        def __exit__(self, *_: object) -> None: ...
        def events(self) -> list[SimpleNamespace]:
            return recorded

    monkeypatch.setattr(profiled, "profile", Profile)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda _: None, raising=False)
    return recorded


def test_calls_begin_at_the_sleep_mark(events: list[SimpleNamespace]) -> None:
    mark = f"at::cuda::(anonymous namespace)::{MARK}(long)"
    events += as_events([*call(500), KernelRun(mark, 400, 499), *call(0)])  # the mark of the first call is missing
    events += as_events([KernelRun("cudaLaunchKernel", 390, 395)], kind="CPU")
    assert calls_of(lambda: None, 1) == [call(500)]


def test_an_empty_profile_is_no_error(events: list[SimpleNamespace], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiled, "cycles_per_second", lambda: 1.0)
    monkeypatch.setattr(profiled, "runnable_contenders", lambda *_: {"plain": lambda: None})
    assert not events
    assert "| 64 | plain | the profiler recorded nothing |  |  |  |" in profiled.times([SETTING], ["plain"])


def test_kernel_names_are_shortened() -> None:
    assert short("forward_kernel") == "forward_kernel"
    assert short("Memset (Device)") == "Memset"
    assert short(f"at::cuda::(anonymous namespace)::{MARK}(long)") == MARK
    assert len(short("void at::native::reduce_kernel<" + "float, " * 40 + ">(float)")) == profiled.MAX_NAME


# --- counters --------------------------------------------------------------------------------------------


def test_counters_are_assigned_to_their_contenders(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(program: list[str], _: float) -> list[Counted]:
        assert " ".join(program[3:]) == "--bare --widths 64 --mask full --tokens 64 --of plain gone map"
        names = [MARK, "forward_kernel", MARK, MARK, "fill", "forward_kernel"]
        return [Counted(name, {"gpu__time_duration.sum": 2000.0}) for name in names]

    monkeypatch.setattr(profiled, "counted", counted)
    lines = profiled.counters([SETTING], ["plain", "gone", "map"], 1.0)
    begin = [line.split(" |")[:4] for line in lines if line.startswith("| 64")]
    assert begin == [
        ["| 64", " plain", " forward_kernel", " 2.0"],
        ["| 64", " map", " fill", " 2.0"],
        ["| 64", " map", " forward_kernel", " 2.0"],
    ]


def test_a_contender_that_fails_still_has_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    monkeypatch.setattr(profiled, "runnable_contenders", lambda *_: {"map": lambda: log.append("map")})
    monkeypatch.setattr(torch.cuda, "_sleep", lambda _: log.append(MARK), raising=False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    for name in ("start", "stop"):
        monkeypatch.setattr(torch.cuda.profiler, name, lambda name=name: log.append(name))
    profiled.run_each_once([SETTING], ["plain", "map"])
    assert log == ["start", MARK, MARK, "map", "stop"]


# --- errors ----------------------------------------------------------------------------------------------


def test_missing_counters_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[Counted]:
        raise NoCountersError("ERR_NVGPUCTRPERM")

    monkeypatch.setattr(profiled, "counted", refuse)
    assert profiled.counters([SETTING], ["plain"], 1.0) == ["No counters: ERR_NVGPUCTRPERM.", ""]


def test_if_one_part_fails_the_other_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> list[str]:
        raise RuntimeError("no CUPTI")

    monkeypatch.setattr(sys, "argv", ["profiled"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(profiled, "heading", lambda title: [title])
    monkeypatch.setattr(profiled, "times", fail)
    monkeypatch.setattr(profiled, "counters", lambda *_: ["counted"])
    main()
    assert capsys.readouterr().out.splitlines()[1:] == ["This part is missing: RuntimeError: no CUPTI", "", "counted"]
    assert lines_or_reason(lambda: ["fine"]) == ["fine"]


def test_without_a_device(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["profiled"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    main()
    assert capsys.readouterr().out == "benchmarks.profiled needs a CUDA device, and PyTorch finds none.\n"
