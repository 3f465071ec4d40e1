"""python -m benchmarks.gpu_attention: our attention on a CUDA device compared with PyTorch's; cost of statistics.

One process times all contenders in turns (`attention_contenders`, `cuda_clock`); peak rates are measured in the same
run. Our kernels are compiled in advance by parallel processes, which only fill Triton's cache. Ratios are those of
medians.
--quick, --lengths, --widths, --masks, --seconds, --report, --into FOLDER.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks.attention_contenders import ALL_WEIGHTS, OURS, agreement, contenders
from benchmarks.attention_settings import JUDGED, LENGTHS, MASKS, WIDTHS, Setting, in_order
from benchmarks.attention_table import HOST, Found, markdown
from benchmarks.cuda_clock import ceilings, clocks, extra_bytes, host_seconds, race, warm_up
from benchmarks.dated import RESULTS
from benchmarks.measure import Contender, Measured

ROOT = Path(__file__).parents[1]
QUICK = (4096, 16_384)
SECONDS = 240.0
SECONDS_PER_SETTING, MAX_ROUNDS = 3.0, 50
"""Seconds for the rounds of one setting, and the largest number of rounds."""
COMPILING = 120.0
MANY_HEADS = 32
"""Heads for which the memory of the map of a long text is measured."""


def main() -> None:
    options = parse()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.gpu_attention needs a CUDA device, and PyTorch finds none")
    if options.compile:
        E, mask, n = options.compile
        compile_ours(Setting(E=int(E), causal=mask == "causal", n=int(n)), torch.device("cuda"))
        return
    settings = [
        Setting(E=E, causal=mask == "causal", n=n)
        for n, E, mask in itertools.product(options.lengths, options.widths, options.masks)
    ]
    path = options.into / f"gpu-attention_{datetime.now(UTC).date()}.md"
    begin = time.perf_counter()
    found = Found(compiling=compile_ahead(settings))
    for _ in measure_settings(found, settings, torch.device("cuda"), begin + options.seconds):
        if options.report:  # after every setting, so that an interrupted run has reported what it measured
            path.write_text(markdown(found), encoding="utf-8")
    print(markdown(found))
    print(f"all of it took {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_attention", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK[0]:,} and {QUICK[1]:,} tokens")
    parser.add_argument("--lengths", nargs="+", type=int)
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS, help="of a head")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit, compiling included")
    parser.add_argument("--report", action="store_true", help="also write a dated report, updated after every setting")
    parser.add_argument("--into", type=Path, default=RESULTS, help="folder of the report; default: benchmarks/results/")
    parser.add_argument("--compile", nargs=3, metavar=("E", "MASK", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lengths = in_order(options.lengths or (QUICK if options.quick else LENGTHS))
    return options


# --- compiling -------------------------------------------------------------------------------------------


def compile_ahead(settings: Sequence[Setting]) -> float:
    """Compile our kernels, one process per setting, since they depend on the heads per launch; returns the seconds."""
    begin = time.perf_counter()
    print(f"compiling for {len(settings)} settings …", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.gpu_attention", "--compile"]
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    running = [
        subprocess.Popen([*command, str(one.E), one.mask, str(one.n)], cwd=ROOT, env={**os.environ, "PYTHONPATH": path})
        for one in settings
    ]
    for process in running:
        try:
            process.wait(max(1.0, COMPILING - (time.perf_counter() - begin)))
        except subprocess.TimeoutExpired:
            process.kill()  # the rest is compiled when needed
            process.wait()
    return time.perf_counter() - begin


def compile_ours(setting: Setting, device: torch.device) -> None:
    """Run each of our kernels once, beginning with another one at every length, because lengths share kernels."""
    all_contenders = contenders(setting, device)
    offset = 2 * LENGTHS.index(setting.n) if setting.n in LENGTHS else 0
    _, errors = warm_up({name: all_contenders[name] for name in (*OURS[offset:], *OURS[:offset])}, COMPILING)
    for name, why in errors.items():
        print(f"{setting}: {name} failed: {why}", file=sys.stderr)


# --- measuring -------------------------------------------------------------------------------------------


def measure_settings(
    found: Found, settings: Sequence[Setting], device: torch.device, deadline: float
) -> Iterator[Setting]:
    """Measure into `found`, one setting at a time, until the `deadline` of `perf_counter`."""
    found.ceilings = ceilings(device)
    found.clocks["at the beginning"] = clocks()
    for setting in settings:
        begin, seconds_left = time.perf_counter(), deadline - time.perf_counter()
        if expected_seconds(found, setting) > seconds_left:
            found.missing.append(f"{setting}: not measured, {seconds_left:.0f} s were left")
            continue
        found.settings[setting] = one = measured(found, setting, device, seconds_left)
        found.clocks[f"after {setting.n:,} tokens"] = clocks()
        times = ", ".join(f"{name} {one.median(name) * 1e3:.3g}" for name in one.times)
        print(f"{setting}, in {time.perf_counter() - begin:.1f} s; ms: {times}", file=sys.stderr, flush=True)
        yield setting


def expected_seconds(found: Found, setting: Setting) -> float:
    """The expected time of warming up and of the fewest rounds, from the times at the previous length."""
    same = [(one, each) for one, each in found.settings.items() if (one.E, one.causal) == (setting.E, setting.causal)]
    if not same:
        return SECONDS_PER_SETTING
    before, times = same[-1]
    names = [name for name in times.times if name not in ("eager", "attend")]
    return (1 + min_rounds(setting)) * sum(map(times.median, names)) * (setting.n / before.n) ** 2


def min_rounds(setting: Setting) -> int:
    return 20 if setting.n <= QUICK[-1] else 3


def measured(found: Found, setting: Setting, device: torch.device, seconds_left: float) -> Measured:
    """Times of all contenders that run; and the facts measured only at some settings."""
    runnable, errors = warm_up(contenders(setting, device), seconds_left)
    found.missing += [f"{setting}: {name}: {why}" for name, why in errors.items()]
    result = race(runnable, seconds=SECONDS_PER_SETTING, least=min_rounds(setting), most=MAX_ROUNDS, device=device)
    if setting.n == ALL_WEIGHTS:
        result.facts = facts_at_all_weights(setting, runnable)
    del runnable
    if setting.n == JUDGED[-1]:
        many = replace(setting, H=MANY_HEADS)
        result.facts["many heads, bytes"] = extra_bytes(contenders(many, device)["map"], many.output_bytes)
    torch.cuda.empty_cache()
    return result


def facts_at_all_weights(setting: Setting, runnable: dict[str, Contender]) -> dict[str, float]:
    """Memory beyond inputs and output, host time to start a call, and differences between results."""
    facts = agreement(runnable) if {"map", "cuDNN", "cuDNN + map"} <= runnable.keys() else {}
    for name in ("map", "eager"):
        if name in runnable:
            facts[f"{name}, bytes"] = extra_bytes(runnable[name], setting.output_bytes)
    for name in HOST:
        if name in runnable:
            facts[f"{name}, host"] = host_seconds(runnable[name])
    return facts


if __name__ == "__main__":
    main()
