"""python -m benchmarks.profiled: the kernels of an attention call, and the cost of each.

Times come from `torch.profiler`; the device sleeps before each call until everything is launched, so that gaps between
kernels are the device's. Hardware counters come from `benchmarks.counters`, in a process of its own. Errors are
reported in the output: nothing here makes a run fail.
--widths, --mask, --tokens, --of NAME …, --seconds.
"""

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.attention_settings import MASKS, WIDTHS, Setting
from benchmarks.commit import with_commit
from benchmarks.counters import HEADINGS, NoCountersError, counted
from benchmarks.cuda_clock import LONGEST, cycles_per_second, warm_up
from benchmarks.dated import heading, table
from benchmarks.measure import Contender

CONTENDERS = ("plain", "map", "entropy", "received pass", "search pass")
CALLS = 10
MARK = "spin_kernel"
"""The kernel name of `torch.cuda._sleep`, which precedes each call."""
MAX_NAME = 60
"""Characters of a kernel's name that are shown; PyTorch's names contain all their types."""

T = TypeVar("T")


class KernelRun(NamedTuple):
    """A kernel or a copy on the device: name, start and end in microseconds."""

    name: str
    start: float
    end: float


def main() -> None:
    options = parse()
    settings = [Setting(E=E, causal=options.mask == "causal", n=options.tokens) for E in options.widths]
    if not torch.cuda.is_available():
        print("benchmarks.profiled needs a CUDA device, and PyTorch finds none.")
        return
    if options.bare:
        run_each_once(settings, options.of)
        return
    print("\n".join(heading(with_commit("Kernels of attention on a GPU"))))
    for part in (lambda: times(settings, options.of), lambda: counters(settings, options.of, options.seconds)):
        print("\n".join(lines_or_reason(part)), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiled", description=__doc__)
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS, help="of a head")
    parser.add_argument("--mask", choices=MASKS, default="full")
    parser.add_argument("--tokens", type=int, default=16_384)
    parser.add_argument("--of", nargs="+", default=CONTENDERS, metavar="NAME", help="contenders of gpu_attention")
    parser.add_argument("--seconds", type=float, default=150.0, help="time limit for the counters")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def lines_or_reason(part: Callable[[], list[str]]) -> list[str]:
    """The lines of a part of the report, or the reason why it is missing."""
    try:
        return part()
    except Exception as error:  # profiling must not make the run fail
        return [f"This part is missing: {type(error).__name__}: {error}", ""]


def runnable_contenders(setting: Setting, names: Sequence[str]) -> dict[str, Contender]:
    """The contenders that run, after warming up."""
    from benchmarks.attention_contenders import contenders

    all_contenders = contenders(setting, torch.device("cuda"))
    found, errors = warm_up({name: all_contenders[name] for name in names if name in all_contenders}, float("inf"))
    errors |= {name: "there is no such contender" for name in names if name not in all_contenders}
    for name, why in errors.items():
        print(f"{setting}: {name} failed: {why}", file=sys.stderr)
    return found


def separated(items: Iterable[T], is_mark: Callable[[T], bool]) -> list[list[T]]:
    """The items after each mark. Items before the first mark are left out: their mark was lost.

    >>> separated("bc|de||f", "|".__eq__)
    [['d', 'e'], [], ['f']]
    """
    found: list[list[T]] = []
    for item in items:
        if is_mark(item):
            found.append([])
        elif found:
            found[-1].append(item)
    return found


def short(name: str) -> str:
    """A kernel's name without return type, namespaces and arguments.

    >>> short("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, float*)")
    'vectorized_elementwise_kernel<4, FillFunctor<float> >'
    """
    name = re.sub(r"^void |\(anonymous namespace\)::|\b(?:at|native|cuda|c10)::", "", name).split("(")[0].strip()
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


# --- times -----------------------------------------------------------------------------------------------


def times(settings: Sequence[Setting], names: Sequence[str]) -> list[str]:
    """The kernels of each contender, the longest first, and the time between them."""
    rows, cycles = [], int(LONGEST * cycles_per_second())
    for setting in settings:
        for name, run in runnable_contenders(setting, names).items():
            calls = calls_of(run, cycles)
            rows += [[str(setting.E), name, *cells] for cells in (kernels_of(calls) if calls else [NO_KERNELS])]
    return [
        f"Kernels of a call, {settings[0].mask}, {settings[0].n:,} tokens, by torch.profiler: medians of {CALLS} "
        "calls, or of those that it recorded.",
        "",
        *table(["E", "requested", "kernel", "launches", "µs", "share"], rows),
        "",
    ]


NO_KERNELS = ["the profiler recorded nothing", "", "", ""]


def calls_of(run: Contender, cycles: int) -> list[list[KernelRun]]:
    """The kernel runs on the device, by call."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(CALLS):
            torch.cuda._sleep(cycles)
            run()
            torch.cuda.synchronize()
    kernel_runs = [
        KernelRun(event.name, event.time_range.start, event.time_range.end)
        for event in profiler.events() or ()
        if event.device_type.name == "CUDA"
    ]
    calls = separated(sorted(kernel_runs, key=lambda one: one.start), lambda one: MARK in one.name)
    return [call for call in calls if call]


def kernels_of(calls: Sequence[Sequence[KernelRun]]) -> Iterator[list[str]]:
    """Lines of the table: kernel, launches, microseconds, share of the time from the start of the first to the end."""
    whole = statistics.median(max(one.end for one in call) - call[0].start for call in calls)
    took: dict[str, list[float]] = {}
    for name in dict.fromkeys(short(one.name) for call in calls for one in call):
        took[name] = [sum(one.end - one.start for one in call if short(one.name) == name) for call in calls]
    for name in sorted(took, key=lambda one: -statistics.median(took[one])):
        launches = statistics.median(sum(short(one.name) == name for one in call) for call in calls)
        yield [name, f"{launches:g}", *_part(statistics.median(took[name]), whole)]
    yield ["between kernels", "", *_part(whole - sum(map(statistics.median, took.values())), whole)]
    yield [f"all, in {len(calls)} calls", f"{statistics.median(map(len, calls)):g}", *_part(whole, whole)]


def _part(microseconds: float, whole: float) -> list[str]:
    return [f"{microseconds:.1f}", f"{microseconds / whole:.1%}"]


# --- counters --------------------------------------------------------------------------------------------


def counters(settings: Sequence[Setting], names: Sequence[str], seconds: float) -> list[str]:
    """A line for each kernel that one call of each contender launches."""
    widths = [str(setting.E) for setting in settings]
    one = settings[0]
    options = ["--bare", "--widths", *widths, "--mask", one.mask, "--tokens", str(one.n), "--of", *names]
    try:
        kernels = counted([sys.executable, "-m", "benchmarks.profiled", *options], seconds)
    except NoCountersError as error:
        return [f"No counters: {error}.", ""]
    requests = [(E, name) for E in widths for name in names]
    calls = separated(kernels, lambda kernel: MARK in kernel.name)
    rows = [
        [*request, short(kernel.name), *kernel.shown()]
        for request, call in zip(requests, calls, strict=False)
        for kernel in call
    ]
    return [
        "The same by the device's counters, one call each, each kernel alone and with an empty cache (Nsight Compute).",
        "",
        *table(["E", "requested", "kernel", *HEADINGS], rows),
        "",
    ]


def run_each_once(settings: Sequence[Setting], names: Sequence[str]) -> None:
    """The program that Nsight Compute profiles: a mark for each contender, followed by one call of those that run."""
    for setting in settings:
        ready = runnable_contenders(setting, names)
        torch.cuda.profiler.start()
        for name in names:
            torch.cuda._sleep(1)
            if name in ready:
                ready[name]()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
