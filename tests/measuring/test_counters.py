"""benchmarks/counters: how Nsight Compute is run and its log read. A script replaces it."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from benchmarks.counters import COLUMNS, HEADINGS, Counted, NoCountersError, counted, read

WIDE = """==PROF== Connected to process 7
"ID","Kernel Name","gpu__time_duration.sum","sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"
"","","ns","%"
"0","spin_kernel(long)","1,200","0"
"1","forward_kernel","2,010,000.0","61.25"
"""
LONG = """"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","spin_kernel(long)","gpu__time_duration.sum","ns","1200"
"1","forward_kernel","gpu__time_duration.sum","ns","2010000"
"1","forward_kernel","sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active","%","61.25"
"""


def stand_in(folder: Path, patch: pytest.MonkeyPatch, body: str) -> None:
    """A program named ncu, with its arguments as `argv` and the path of the log as `log`."""
    path = folder / "ncu"
    begin = "import os, sys, time; argv = sys.argv; log = argv[argv.index('--log-file') + 1]"
    path.write_text(f"#!{sys.executable}\n{begin}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    patch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.parametrize("text", [WIDE, LONG], ids=["wide", "long"])
def test_both_log_formats_are_read(text: str) -> None:
    first, second = read(text.splitlines())
    assert (first.name, second.name) == ("spin_kernel(long)", "forward_kernel")
    assert second.values["gpu__time_duration.sum"] == 2.01e6
    assert second.shown()[:4] == ["2010.0", "", "61.2", ""]


def test_a_line_shows_the_best_available_counters() -> None:
    values = {name: 7.0 for names in COLUMNS.values() for name in names[1:]}
    values |= {names[0]: 12.3456 for names in COLUMNS.values()}
    for reason, value in (
        ("wait", 0.5),
        ("math_pipe_throttle", 2.0),
        ("barrier", 0.1),
        ("selected", 1.0),
        ("gmma", 1.5),
    ):
        values[f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"] = value
    shown = Counted("kernel", values).shown()
    assert len(shown) == len(HEADINGS)
    assert shown[1:-1] == ["12.3"] * len(COLUMNS)
    assert shown[-1] == "math_pipe_throttle 2, gmma 1.5, wait 0.5"


def test_the_kernels_of_a_program_are_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"open(log, 'w').write({WIDE!r} if argv[-2:] == ['a', 'b'] and 'none' in argv else '')"
    stand_in(tmp_path, monkeypatch, body)
    assert [kernel.name for kernel in counted(["a", "b"], 60.0)] == ["spin_kernel(long)", "forward_kernel"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("print('hello'); print('==ERROR== ERR_NVGPUCTRPERM - no permission'); sys.exit(1)", "ERR_NVGPUCTRPERM"),
        ("open(log, 'w').write('==ERROR== LibraryNotLoaded'); print('bye')", "LibraryNotLoaded"),
        ("print('Traceback'); print('RuntimeError: out of memory')", "RuntimeError: out of memory"),
        ("", "nothing"),
    ],
)
def test_errors_are_reported(body: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, body)
    with pytest.raises(NoCountersError, match=why):
        counted(["program"], 60.0)


def test_without_nsight_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(NoCountersError, match="not installed"):
        counted(["program"], 1.0)


def test_a_time_limit_kills_child_processes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "os.fork(); time.sleep(60)")
    begin = time.perf_counter()
    with pytest.raises(NoCountersError, match="longer than 1 s"):
        counted(["program"], 1.0)
    assert time.perf_counter() - begin < 30  # the child holds the pipe open: as long as it lives, this would wait
