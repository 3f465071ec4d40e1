"""python -m benchmarks.gpu_attention: our attention on a CUDA device beside PyTorch's, and what it costs to see it.

One process times everybody, in turns (`attention_contenders`, `cuda_clock`); ceilings are measured in the same run. Our
kernels are compiled beforehand by processes side by side, which only fill Triton's cache. A ratio is one of medians.
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
from benchmarks.cuda_clock import ceilings, clocks, extra_bytes, race, seconds_of_host, warmed
from benchmarks.dated import RESULTS
from benchmarks.measure import Contender, Measured

ROOT = Path(__file__).parents[1]
QUICK = (4096, 16_384)
SECONDS = 240.0
A_SETTING, MOST = 3.0, 50
"""Seconds that the rounds of one setting may take, and how many there are at most."""
COMPILING = 120.0
MANY_HEADS = 32
"""Heads where the memory for the map of a long text is looked at."""


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
    for _ in measured_one_by_one(found, settings, torch.device("cuda"), begin + options.seconds):
        if options.report:  # again and again: a run that is stopped has told what it knew
            path.write_text(markdown(found), encoding="utf-8")
    print(markdown(found))
    print(f"all of it took {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_attention", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK[0]:,} and {QUICK[1]:,} tokens")
    parser.add_argument("--lengths", nargs="+", type=int)
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS, help="of a head")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="no longer than that, compiling included")
    parser.add_argument("--report", action="store_true", help="also write a dated report, as it grows")
    parser.add_argument("--into", type=Path, default=RESULTS, help="where to; default: benchmarks/results/")
    parser.add_argument("--compile", nargs=3, metavar=("E", "MASK", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lengths = in_order(options.lengths or (QUICK if options.quick else LENGTHS))
    return options


# --- compiling -------------------------------------------------------------------------------------------


def compile_ahead(settings: Sequence[Setting]) -> float:
    """Let a process for each setting compile our kernels, which differ with the heads that go together; how long."""
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
            process.kill()  # what it has not compiled is compiled when it is needed
            process.wait()
    return time.perf_counter() - begin


def compile_ours(setting: Setting, device: torch.device) -> None:
    """Run each of our kernels once, every length beginning with another one: many kernels they share."""
    everybody = contenders(setting, device)
    turn = 2 * LENGTHS.index(setting.n) if setting.n in LENGTHS else 0
    _, said = warmed({name: everybody[name] for name in (*OURS[turn:], *OURS[:turn])}, COMPILING)
    for name, why in said.items():
        print(f"{setting}: {name} cannot: {why}", file=sys.stderr)


# --- measuring -------------------------------------------------------------------------------------------


def measured_one_by_one(
    found: Found, settings: Sequence[Setting], device: torch.device, until: float
) -> Iterator[Setting]:
    """Measures into `found` until a moment of `perf_counter`, a setting at a time."""
    found.ceilings = ceilings(device)
    found.clocks["at the beginning"] = clocks()
    for setting in settings:
        begin, left = time.perf_counter(), until - time.perf_counter()
        if expected_seconds(found, setting) > left:
            found.missing.append(f"{setting}: not measured, {left:.0f} s were left")
            continue
        found.settings[setting] = one = measured(found, setting, device, left)
        found.clocks[f"after {setting.n:,} tokens"] = clocks()
        times = ", ".join(f"{name} {one.median(name) * 1e3:.3g}" for name in one.times)
        print(f"{setting}, in {time.perf_counter() - begin:.1f} s; ms: {times}", file=sys.stderr, flush=True)
        yield setting


def expected_seconds(found: Found, setting: Setting) -> float:
    """What warming up and the fewest rounds will take, by what the same took at the length before."""
    same = [(one, each) for one, each in found.settings.items() if (one.E, one.causal) == (setting.E, setting.causal)]
    if not same:
        return A_SETTING
    before, times = same[-1]
    names = [name for name in times.times if name not in ("eager", "attend")]
    return (1 + least_rounds(setting)) * sum(map(times.median, names)) * (setting.n / before.n) ** 2


def least_rounds(setting: Setting) -> int:
    return 20 if setting.n <= QUICK[-1] else 3


def measured(found: Found, setting: Setting, device: torch.device, left: float) -> Measured:
    """Times of all that can; beside them what only some settings are asked for."""
    able, said = warmed(contenders(setting, device), left)
    found.missing += [f"{setting}: {name}: {why}" for name, why in said.items()]
    result = race(able, seconds=A_SETTING, least=least_rounds(setting), most=MOST, device=device)
    if setting.n == ALL_WEIGHTS:
        result.facts = facts_beside_weights(setting, able)
    del able
    if setting.n == JUDGED[-1]:
        many = replace(setting, H=MANY_HEADS)
        result.facts["many heads, bytes"] = extra_bytes(contenders(many, device)["map"], many.output_bytes)
    torch.cuda.empty_cache()
    return result


def facts_beside_weights(setting: Setting, able: dict[str, Contender]) -> dict[str, float]:
    """Memory beyond inputs and output, what the host needs to start a call, and whether all say the same."""
    facts = agreement(able) if {"map", "cuDNN", "cuDNN + map"} <= able.keys() else {}
    for name in ("map", "eager"):
        if name in able:
            facts[f"{name}, bytes"] = extra_bytes(able[name], setting.output_bytes)
    for name in HOST:
        if name in able:
            facts[f"{name}, host"] = seconds_of_host(able[name])
    return facts


if __name__ == "__main__":
    main()
