"""Measuring on a CUDA device: times by its own events, memory by PyTorch's own account, and what it can do at most.

Before each turn a buffer larger than the cache is zeroed, so that nobody finds the other's tensors there. Then the
device sleeps until the host has made its launches: twice as long as these took the host last time, and a bit. So a time
is the device's alone, unless a call waits for it in between; what the host needs to start a call is measured apart.
"""

import gc
import random
import subprocess
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.measure import Contender, Measured
from regard.training.journal import measured_peak

FLUSHED = 2**28
"""Bytes that are zeroed at once: five times the cache of an H200."""
SHORTEST, LONGEST, MARGIN = 1e-3, 10e-3, 0.5e-3
"""Seconds that the device sleeps at least and at most, and beyond twice what the host needs."""
CYCLES, TRIES = 10**7, 5
"""Slept through to learn how fast the clock is."""
CALLS = 20
"""So many calls in a row tell what the host needs for one."""


def warmed(contenders: dict[str, Contender], seconds: float) -> tuple[dict[str, Contender], dict[str, str]]:
    """Those that ran once, and what the others said; who has no more than so many seconds left says so too."""
    begin, able, said = time.perf_counter(), {}, {}
    for name, run in contenders.items():
        if time.perf_counter() - begin > seconds:
            said[name] = "no time left"
            continue
        try:
            run()
            torch.cuda.synchronize()
        except Exception as error:  # whatever stops one of them, the others are to be measured
            said[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        else:
            able[name] = run
    return able, said


def race(contenders: dict[str, Contender], *, seconds: float, least: int, most: int, device: torch.device) -> Measured:
    """Every contender once a round, in an order that changes: for so many seconds, within `least` and `most` rounds."""
    order = list(contenders.items())
    shuffle = random.Random(0).shuffle
    measured = Measured(times={name: [] for name in contenders})
    host = dict.fromkeys(contenders, LONGEST)  # nobody knows yet
    cache, rate = torch.empty(FLUSHED, dtype=torch.uint8, device=device), cycles_per_second()
    begin = time.perf_counter()
    for done in range(most):
        if done >= least and time.perf_counter() - begin > seconds:
            break
        shuffle(order)
        turns = {name: _turn(run, cache, int(nap(host[name]) * rate)) for name, run in order}
        torch.cuda.synchronize()
        for name, turn in turns.items():
            measured.times[name].append(turn.start.elapsed_time(turn.end) / 1e3)
            host[name] = turn.host
    return measured


class Turn(NamedTuple):
    """The events around a call, and the seconds that the host took for it."""

    start: torch.cuda.Event
    end: torch.cuda.Event
    host: float


def _turn(run: Contender, cache: Tensor, cycles: int) -> Turn:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    cache.zero_()
    torch.cuda._sleep(cycles)
    start.record()
    begin = time.perf_counter()
    run()
    host = time.perf_counter() - begin
    end.record()
    return Turn(start, end, host)


def nap(host: float) -> float:
    """Seconds to sleep before launches that take the host so long.

    >>> nap(0.0), nap(0.001), nap(0.1)
    (0.001, 0.0025, 0.01)
    """
    return min(LONGEST, max(SHORTEST, 2 * host + MARGIN))


def cycles_per_second() -> float:
    """Of the clock that `torch.cuda._sleep` counts by; the fastest of some tries, since an idle device runs slowly."""
    best = float("inf")
    for _ in range(TRIES):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.cuda._sleep(CYCLES)
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3)
    return CYCLES / best


def seconds_of_host(run: Contender) -> float:
    """What the host needs until a call is on its way."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        run()
    taken = time.perf_counter() - start
    torch.cuda.synchronize()
    return taken / CALLS


def extra_bytes(run: Callable[[], object], output: int) -> int:
    """The peak of memory while it runs, beyond what was there before and its output of so many bytes."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = run()
    torch.cuda.synchronize()
    del found
    return torch.cuda.max_memory_allocated() - before - output


def ceilings(device: torch.device) -> dict[str, float]:
    """Matrix products of bfloat16, 8192³, in operations a second; copies on the device in bytes a second, both ways."""
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
    """Clock, power and temperature as nvidia-smi tells them; nothing where it cannot be asked."""
    asked = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    try:
        command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else ""
