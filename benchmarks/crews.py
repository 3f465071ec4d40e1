"""python -m benchmarks.crews: which crew makes a forward on a Hopper quickest, to choose those in hopper/crew.py by.

A crew is called by its consumers, when it counts (w waiting, b before), and then h where it holds the weighing before
the wait for the product with values, s where each lane stores a bin of its own: 2whs. Kernels are compiled beforehand
by processes side by side; then all crews take turns with the plain forward. A ratio is time over that of plain; the
crew that is taken without this page is marked.
--tokens, --widths, --masks, --of NAME …, --crews NAME …, --seconds.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import NamedTuple
from unittest.mock import patch

import torch

from benchmarks.attention_settings import FORWARDS, LENGTHS, MASKS, WIDTHS, Setting
from benchmarks.commit import with_commit
from benchmarks.cuda_clock import race, warmed
from benchmarks.dated import heading, table
from benchmarks.measure import Contender
from regard import Mask
from regard.kernels.tiles import cores
from regard.kernels.triton.forward_launch import forward
from regard.kernels.triton.hopper import launch
from regard.kernels.triton.hopper.config import Crew, crew_for
from regard.kernels.triton.mask_bands import sight_of
from regard.kernels.triton.support import Asked

CREWS = {64: ("2w", "2ws", "2whs", "3w", "3ws", "3bs"), 128: ("2w", "2wh", "2ws", "2whs", "2b")}
STAGES = {(64, 2): 3, (64, 3): 2, (128, 2): 2}
"""By width and consumers: as many as shared memory holds."""
REGISTERS = {2: 240, 3: 160}
COMPILING = 180.0


class Trial(NamedTuple):
    setting: Setting
    asked: str

    def __str__(self) -> str:
        return f"{self.asked}, {self.setting}"


def main() -> None:
    options = parse()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.crews needs a CUDA device, and PyTorch finds none")
    trials = [
        Trial(Setting(E=E, causal=mask == "causal", n=n), asked)
        for n, E, mask, asked in product(options.tokens, options.widths, options.masks, options.of)
    ]
    if options.compile:
        for trial in trials:
            report(warmed(contenders(trial, options.crews), COMPILING)[1], trial)
        return
    compile_ahead(trials, options.crews)
    print("\n".join(heading(with_commit("Crews of a forward on a Hopper"))))
    print("\n".join(table(("asked", "plain, ms", "time over plain"), rows(trials, options))))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crews", description=__doc__)
    parser.add_argument("--tokens", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--widths", nargs="+", type=int, choices=WIDTHS, default=WIDTHS, help="of a head")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--of", nargs="+", choices=tuple(FORWARDS), default=["map"])
    parser.add_argument("--crews", nargs="+", help=f"default: by width, {CREWS}")
    parser.add_argument("--seconds", type=float, default=1.5, help="for the rounds of one line")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def crew_called(name: str, E: int) -> Crew:
    """The crew of this name for heads so wide.

    >>> crew_called("2whs", 128).holding, crew_called("3b", 64).stages
    (True, 2)
    """
    parts = re.fullmatch(r"([23])([wb])(h?)(s?)", name)
    if parts is None or (E, int(parts[1])) not in STAGES:
        raise SystemExit(f"no crew is called {name!r} for heads {E} wide; such as 2whs, or 3bs for 64")
    consumers = int(parts[1])
    return Crew(
        consumers=consumers,
        stages=STAGES[E, consumers],
        registers=REGISTERS[consumers],
        counting="waiting" if parts[2] == "w" else "before",
        holding=bool(parts[3]),
        scatter=bool(parts[4]),
    )


def contenders(trial: Trial, crews: Sequence[str] | None) -> dict[str, Contender]:
    """The plain forward as it is, and what is asked for by each crew."""
    setting = trial.setting
    q, k, v = setting.tensors(torch.device("cuda"))
    mask = Mask.causal().bind((1, setting.H), setting.n, setting.n, q) if setting.causal else None
    asked = setting.asked(trial.asked)

    def by(crew: Crew | None, asked: Asked) -> Contender:
        def run() -> object:
            choose = crew_for if crew is None else lambda *_, **__: crew
            with patch.object(launch, "crew_for", choose):
                return forward(q, k, v, sight_of(mask), scale=setting.E**-0.5, asked=asked)

        return run

    found = {name: by(crew_called(name, setting.E), asked) for name in crews or CREWS[setting.E]}
    return {"plain": by(None, Asked()), **found}


def compile_ahead(trials: Sequence[Trial], crews: Sequence[str] | None) -> None:
    """A process for each trial and crew, which only fills Triton's cache; what it does not is compiled when needed."""
    commands = []
    for setting, asked in trials:
        of_trial = ["--tokens", str(setting.n), "--widths", str(setting.E), "--masks", setting.mask, "--of", asked]
        command = [sys.executable, "-m", "benchmarks.crews", "--compile", *of_trial, "--crews"]
        commands += [[*command, name] for name in crews or CREWS[setting.E]]

    def run(command: list[str]) -> None:
        try:
            subprocess.run(command, timeout=COMPILING)
        except subprocess.TimeoutExpired:
            print(f"{' '.join(command[4:])}: not compiled within {COMPILING:.0f} s", file=sys.stderr)

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(run, commands))


def rows(trials: Sequence[Trial], options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    for trial in trials:
        able, said = warmed(contenders(trial, options.crews), COMPILING)
        report(said, trial)
        device = torch.device("cuda")
        found = race(able, seconds=options.seconds, least=5, most=30, device=device)
        setting, plain = trial.setting, found.median("plain")
        taken = crew_for(setting.E, setting.asked(trial.asked), is_causal=setting.causal)
        ratios = []
        for name in found.times:
            if name != "plain":
                mark = " (taken)" if crew_called(name, setting.E) == taken else ""
                ratios.append(f"{name} {found.median(name) / plain:.2f}{mark}")
        yield str(trial), f"{plain * 1e3:.3g}", ", ".join(ratios)
        torch.cuda.empty_cache()


def report(said: dict[str, str], trial: Trial) -> None:
    for name, why in said.items():
        print(f"{trial}: {name} cannot: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
