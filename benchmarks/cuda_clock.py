"""Measurements on a CUDA device: times by its events, memory by PyTorch's statistics, and its peak rates.

Before each call a buffer larger than the cache is zeroed, so that no contender finds another's tensors there. Then the
device sleeps until the host has made its launches: twice as long as these took the host last time, plus a margin. So a
time is the device's alone, unless a call waits for the device in between; the host time to start a call is measured
separately.
"""

import gc
import random
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.measure import Contender, Measured
from regard.training.run_reports import measured_peak

FLUSHED_BYTES = 2**28
"""Bytes that are zeroed: five times the cache of an H200."""
SHORTEST, LONGEST, MARGIN = 1e-3, 10e-3, 0.5e-3
"""Seconds that the device sleeps at least and at most, and the margin beyond twice the host time."""
CYCLES, TRIES = 10**7, 5
"""Cycles to sleep, and number of tries, to measure the clock rate."""
HOST_CALLS = 20
"""Consecutive calls to measure the host time of one."""


def warm_up(contenders: dict[str, Contender], seconds: float) -> tuple[dict[str, Contender], dict[str, str]]:
    """The contenders that ran once, and the errors of the others; after `seconds` the rest are skipped."""
    begin, runnable, errors = time.perf_counter(), {}, {}
    for name, run in contenders.items():
        if time.perf_counter() - begin > seconds:
            errors[name] = "no time left"
            continue
        try:
            run()
            torch.cuda.synchronize()
        except Exception as error:  # if one fails, the others are still measured
            errors[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        else:
            runnable[name] = run
    return runnable, errors


def race(
    contenders: Mapping[str, Contender], *, seconds: float, least: int, most: int, device: torch.device
) -> Measured:
    """Time every contender once per round, in varying order, for `seconds` and between `least` and `most` rounds."""
    order = list(contenders.items())
    shuffle = random.Random(0).shuffle
    measured = Measured(times={name: [] for name in contenders})
    host = dict.fromkeys(contenders, LONGEST)  # not known yet
    cache, rate = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device=device), cycles_per_second()
    begin = time.perf_counter()
    for done in range(most):
        if done >= least and time.perf_counter() - begin > seconds:
            break
        shuffle(order)
        timings = {name: _timed_call(run, cache, int(sleep_seconds(host[name]) * rate)) for name, run in order}
        torch.cuda.synchronize()
        for name, timing in timings.items():
            measured.times[name].append(timing.start.elapsed_time(timing.end) / 1e3)
            host[name] = timing.host
    return measured


class Timing(NamedTuple):
    """The events around a call, and the seconds that the host took for it."""

    start: torch.cuda.Event
    end: torch.cuda.Event
    host: float


def _timed_call(run: Contender, cache: Tensor, cycles: int) -> Timing:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    cache.zero_()
    torch.cuda._sleep(cycles)
    start.record()
    begin = time.perf_counter()
    run()
    host = time.perf_counter() - begin
    end.record()
    return Timing(start, end, host)


def sleep_seconds(host: float) -> float:
    """Seconds to sleep before launches that take the host `host` seconds.

    >>> sleep_seconds(0.0), sleep_seconds(0.001), sleep_seconds(0.1)
    (0.001, 0.0025, 0.01)
    """
    return min(LONGEST, max(SHORTEST, 2 * host + MARGIN))


def cycles_per_second() -> float:
    """The rate of the clock of `torch.cuda._sleep`; the fastest of some tries, since an idle device runs slowly."""
    best = float("inf")
    for _ in range(TRIES):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.cuda._sleep(CYCLES)
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3)
    return CYCLES / best


def host_seconds(run: Contender) -> float:
    """Host time to launch a call."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(HOST_CALLS):
        run()
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / HOST_CALLS


def extra_bytes(run: Callable[[], object], output: int) -> int:
    """Peak memory during a call, beyond what was allocated before and its output of `output` bytes."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = run()
    torch.cuda.synchronize()
    del found
    return torch.cuda.max_memory_allocated() - before - output


def ceilings(device: torch.device) -> dict[str, float]:
    """Rates of bfloat16 matrix products, 8192³, in operations per second, and of copies (read and written) in bytes."""
    return {"products": measured_peak(device, torch.bfloat16), "copy": _copy_rate(device)}


def _copy_rate(device: torch.device, size: int = 2**31) -> float:
    source, target = (torch.zeros(size, dtype=torch.uint8, device=device) for _ in range(2))
    best = float("inf")
    for _ in range(10):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3)
    return 2 * size / best


def clocks() -> str:
    """Clocks, power and temperature from nvidia-smi; an empty string where it is not available."""
    fields = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    try:
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else ""
