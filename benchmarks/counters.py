"""What the device's own counters say of a kernel, read by Nsight Compute (`ncu`); where it may not, why not.

Not by `torch.profiler`, which could: built for CUDA 13 it ignores the counters it is asked for
(github.com/pytorch/kineto/pull/1412). Sections are asked for instead of single counters, so that no name can be wrong;
of what they hold, COLUMNS are shown where they are found.
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
"""What is shown, and the counters that may tell it, the best first; cycles and warps are those of one scheduler."""
STALLED = re.compile(r"smsp__average_warps_issue_stalled_(?!selected)(\w+)_per_issue_active\.ratio")
REASONS = 3


class Counted(NamedTuple):
    """A kernel that ran, and its counters."""

    name: str
    values: dict[str, float]

    def shown(self) -> list[str]:
        """What stands under HEADINGS."""
        cells = [f"{self.values.get('gpu__time_duration.sum', 0.0) / 1e3:.1f}"]
        for names in COLUMNS.values():
            found = [self.values[name] for name in names if name in self.values]
            cells.append(f"{found[0]:.3g}" if found else "")
        stalled = {match[1]: value for name, value in self.values.items() if (match := STALLED.fullmatch(name))}
        most = sorted(stalled, key=stalled.__getitem__, reverse=True)[:REASONS]
        return [*cells, ", ".join(f"{reason} {stalled[reason]:.2g}" for reason in most)]


HEADINGS = ("µs", *COLUMNS, "warps that wait, for each instruction, for")


class NoCountersError(Exception):
    """Why there are no counters, in a few words."""


def counted(program: Sequence[str], seconds: float) -> list[Counted]:
    """The kernels that a program runs between `torch.cuda.profiler.start` and `stop`, in order; or NoCountersError."""
    ncu = shutil.which("ncu", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))
    if ncu is None:
        raise NoCountersError("Nsight Compute (ncu) is not installed")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        sections = [word for section in SECTIONS for word in ("--section", section)]
        # The card's clocks are left alone: others use it too, and times shall be those of the benchmark.
        how = ["--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "raw"]
        base = ["--print-units", "base", "--log-file", str(log)]
        said = _run([ncu, *sections, *how, *base, *program], seconds)
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    if found := read(lines):
        return found
    raise NoCountersError(_why_not([*lines, *said.splitlines()]))


def _why_not(lines: Sequence[str]) -> str:
    """The first error that Nsight Compute names, or the last thing that was said at all."""
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    last = [line.strip() for line in lines if line.strip()][-1:]
    return " ".join(["Nsight Compute says:", *(errors[:1] or last or ["nothing"])])


def _run(command: Sequence[str], seconds: float) -> str:
    """What it said; it and all that it started end in time."""
    environment = {**os.environ, "LC_ALL": "C"}  # numbers with a point
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
    """The kernels in a log of Nsight Compute: a line for each, after one with the counters' names.

    >>> read(['==PROF== Connected', '"ID","Kernel Name","a.sum","b"', '"","","ns","%"', '"0","f(int)","1,000","n/a"'])
    [Counted(name='f(int)', values={'a.sum': 1000.0})]
    """
    found: dict[str, Counted] = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        if row["ID"]:  # the line of units has none
            kernel = found.setdefault(row["ID"], Counted(row["Kernel Name"], {}))
            # Some versions write a line for each counter.
            told = {row["Metric Name"]: row["Metric Value"]} if "Metric Name" in row else row
            numbers = {name: _number(text) for name, text in told.items() if name != "ID"}
            kernel.values.update((name, number) for name, number in numbers.items() if number is not None)
    return list(found.values())


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None
