"""Hardware counters of a kernel, read by Nsight Compute (`ncu`), or the reason why they are not available.

Not by `torch.profiler`: built for CUDA 13 it ignores the requested counters (github.com/pytorch/kineto/pull/1412).
Sections are requested instead of single counters, so that no name can be wrong; the COLUMNS found in them are shown.
"""

import csv
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "SchedulerStats", "WarpStateStats", "LaunchStats")
ACTIVE, ELAPSED = "avg.pct_of_peak_sustained_active", "avg.pct_of_peak_sustained_elapsed"
COLUMNS = {
    "tensor cores %": (
        f"sm__pipe_tensor_cycles_active.{ACTIVE}",
        f"sm__pipe_tensor_op_hmma_cycles_active.{ACTIVE}",
        f"sm__inst_executed_pipe_tensor_op_gmma.{ACTIVE}",
        f"sm__inst_executed_pipe_tensor.{ACTIVE}",
    ),
    "exponentials (XU) %": (f"sm__inst_executed_pipe_xu.{ACTIVE}", f"sm__pipe_xu_cycles_active.{ACTIVE}"),
    "FMA %": (f"sm__pipe_fma_cycles_active.{ACTIVE}", f"sm__inst_executed_pipe_fma.{ACTIVE}"),
    "ALU %": (f"sm__pipe_alu_cycles_active.{ACTIVE}", f"sm__inst_executed_pipe_alu.{ACTIVE}"),
    "LSU %": (f"sm__inst_executed_pipe_lsu.{ACTIVE}",),
    "DRAM %": (f"gpu__dram_throughput.{ELAPSED}",),
    "issued a cycle": ("smsp__issue_active.avg.per_cycle_active", "smsp__inst_issued.avg.per_cycle_active"),
    "warps": ("smsp__warps_active.avg.per_cycle_active",),
    "of them eligible": ("smsp__warps_eligible.avg.per_cycle_active",),
    "registers": ("launch__registers_per_thread",),
}
"""The columns, and the counters that provide them, the best first; cycles and warps are those of one scheduler."""
STALLED = re.compile(r"smsp__average_warps_issue_stalled_(?!selected)(\w+)_per_issue_active\.ratio")
REASONS = 3


class Counted(NamedTuple):
    """A kernel that ran, and its counters."""

    name: str
    values: dict[str, float]

    def shown(self) -> list[str]:
        """The cells under HEADINGS."""
        cells = [f"{self.values.get('gpu__time_duration.sum', 0.0) / 1e3:.1f}"]
        for names in COLUMNS.values():
            found = [self.values[name] for name in names if name in self.values]
            cells.append(f"{found[0]:.3g}" if found else "")
        stalled = {match[1]: value for name, value in self.values.items() if (match := STALLED.fullmatch(name))}
        most = sorted(stalled, key=stalled.__getitem__, reverse=True)[:REASONS]
        return [*cells, ", ".join(f"{reason} {stalled[reason]:.2g}" for reason in most)]


HEADINGS = ("µs", *COLUMNS, "warps that wait, for each instruction, for")


class NoCountersError(Exception):
    """The reason why there are no counters."""


def counted(program: Sequence[str], seconds: float) -> list[Counted]:
    """The kernels that a program runs between `torch.cuda.profiler.start` and `stop`, in order; or NoCountersError."""
    ncu = shutil.which("ncu", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))
    if ncu is None:
        raise NoCountersError("Nsight Compute (ncu) is not installed")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        sections = [word for section in SECTIONS for word in ("--section", section)]
        # Clocks are not locked: others use the GPU too, and times must match those of the benchmark.
        options = ["--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "raw"]
        base = ["--print-units", "base", "--log-file", str(log)]
        output = _run([ncu, *sections, *options, *base, *program], seconds)
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    if found := read(lines):
        return found
    raise NoCountersError(_error_message([*lines, *output.splitlines()]))


def _error_message(lines: Sequence[str]) -> str:
    """The first error of Nsight Compute, or the last line of output."""
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    last = [line.strip() for line in lines if line.strip()][-1:]
    return " ".join(["Nsight Compute reports:", *(errors[:1] or last or ["nothing"])])


def _run(command: Sequence[str], seconds: float) -> str:
    """The output of a command; it and its child processes are killed at the time limit."""
    environment = {**os.environ, "LC_ALL": "C"}  # decimal points in numbers
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise NoCountersError(f"Nsight Compute took longer than {seconds:.0f} s") from None


def read(lines: Iterable[str]) -> list[Counted]:
    """The kernels in a log of Nsight Compute: one line each, after one with the counters' names.

    >>> read(['==PROF== Connected', '"ID","Kernel Name","a.sum","b"', '"","","ns","%"', '"0","f(int)","1,000","n/a"'])
    [Counted(name='f(int)', values={'a.sum': 1000.0})]
    """
    found: dict[str, Counted] = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        if row["ID"]:  # the line of units has no ID
            kernel = found.setdefault(row["ID"], Counted(row["Kernel Name"], {}))
            # Some versions write one line per counter.
            cells_by_name = {row["Metric Name"]: row["Metric Value"]} if "Metric Name" in row else row
            numbers = {name: _number(text) for name, text in cells_by_name.items() if name != "ID"}
            kernel.values.update((name, number) for name, number in numbers.items() if number is not None)
    return list(found.values())


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None
