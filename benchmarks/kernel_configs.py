"""python -m benchmarks.kernel_configs: the fastest config of a forward on a Hopper GPU, for hopper/config.py.

The name of a config is its number of consumers, when it accumulates (w waiting, b before), then h for softmax_first and
s for scatter: 2whs. Kernels are compiled in advance by parallel processes; then all configs are timed in turns with the
plain forward. A ratio is the time over that of plain; the default config is marked.
--tokens, --widths, --masks, --of NAME …, --configs NAME …, --seconds.
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
from benchmarks.cuda_clock import race, warm_up
from benchmarks.dated import heading, table
from benchmarks.measure import Contender
from regard import Mask
from regard.attention_call import AttentionCall
from regard.kernels.division import cores
from regard.kernels.triton.forward import forward
from regard.kernels.triton.hopper import launch
from regard.kernels.triton.hopper.config import KernelConfig, config_for
from regard.kernels.triton.support import ForwardRequest, bands_of

CONFIGS = {64: ("2w", "2ws", "2whs", "3w", "3ws", "3bs"), 128: ("2w", "2wh", "2ws", "2whs", "2b")}
STAGES = {(64, 2): 3, (64, 3): 2, (128, 2): 2}
"""By width and consumers: as many as shared memory holds."""
REGISTERS = {2: 240, 3: 160}
COMPILING = 180.0


class Trial(NamedTuple):
    setting: Setting
    request: str

    def __str__(self) -> str:
        return f"{self.request}, {self.setting}"


def main() -> None:
    options = parse()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.kernel_configs needs a CUDA device, and PyTorch finds none")
    trials = [
        Trial(Setting(E=E, causal=mask == "causal", n=n), request)
        for n, E, mask, request in product(options.tokens, options.widths, options.masks, options.of)
    ]
    if options.compile:
        for trial in trials:
            report(warm_up(contenders(trial, options.configs), COMPILING)[1], trial)
        return
    compile_ahead(trials, options.configs)
    print("\n".join(heading(with_commit("Configs of a forward on a Hopper"))))
    print("\n".join(table(("requested", "plain, ms", "time over plain"), rows(trials, options))))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_configs", description=__doc__)
    parser.add_argument("--tokens", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--widths", nargs="+", type=int, choices=WIDTHS, default=WIDTHS, help="of a head")
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    parser.add_argument("--of", nargs="+", choices=tuple(FORWARDS), default=["map"])
    parser.add_argument("--configs", nargs="+", help=f"default: by width, {CONFIGS}")
    parser.add_argument("--seconds", type=float, default=1.5, help="for the rounds of one line")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def config_named(name: str, E: int) -> KernelConfig:
    """The config with this name for heads of width E.

    >>> config_named("2whs", 128).softmax_first, config_named("3b", 64).stages
    (True, 2)
    """
    parts = re.fullmatch(r"([23])([wb])(h?)(s?)", name)
    if parts is None or (E, int(parts[1])) not in STAGES:
        raise SystemExit(f"no config {name!r} for head width {E}; examples: 2whs, or 3bs for 64")
    consumers = int(parts[1])
    return KernelConfig(
        consumers=consumers,
        stages=STAGES[E, consumers],
        registers=REGISTERS[consumers],
        accumulate="waiting" if parts[2] == "w" else "before",
        softmax_first=bool(parts[3]),
        scatter=bool(parts[4]),
    )


def contenders(trial: Trial, configs: Sequence[str] | None) -> dict[str, Contender]:
    """The plain forward with its default config, and the request with each config."""
    setting = trial.setting
    q, k, v = setting.tensors(torch.device("cuda"))
    mask = Mask.causal().bind((1, setting.H), setting.n, setting.n, q) if setting.causal else None
    request = setting.request(trial.request)

    def by(config: KernelConfig | None, request: ForwardRequest) -> Contender:
        def run() -> object:
            choose = config_for if config is None else lambda *_, **__: config
            with patch.object(launch, "config_for", choose):
                return forward(AttentionCall(q, k, v, setting.E**-0.5), bands_of(mask), request)

        return run

    found = {name: by(config_named(name, setting.E), request) for name in configs or CONFIGS[setting.E]}
    return {"plain": by(None, ForwardRequest()), **found}


def compile_ahead(trials: Sequence[Trial], configs: Sequence[str] | None) -> None:
    """One process per trial and config fills Triton's cache; the rest is compiled when needed."""
    commands = []
    for setting, request in trials:
        of_trial = ["--tokens", str(setting.n), "--widths", str(setting.E), "--masks", setting.mask, "--of", request]
        command = [sys.executable, "-m", "benchmarks.kernel_configs", "--compile", *of_trial, "--configs"]
        commands += [[*command, name] for name in configs or CONFIGS[setting.E]]

    def run(command: list[str]) -> None:
        try:
            subprocess.run(command, timeout=COMPILING)
        except subprocess.TimeoutExpired:
            print(f"{' '.join(command[4:])}: not compiled within {COMPILING:.0f} s", file=sys.stderr)

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(run, commands))


def rows(trials: Sequence[Trial], options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    for trial in trials:
        runnable, errors = warm_up(contenders(trial, options.configs), COMPILING)
        report(errors, trial)
        device = torch.device("cuda")
        found = race(runnable, seconds=options.seconds, least=5, most=30, device=device)
        setting, plain = trial.setting, found.median("plain")
        default = config_for(setting.E, setting.request(trial.request), is_causal=setting.causal)
        ratios = []
        for name in found.times:
            if name != "plain":
                mark = " (default)" if config_named(name, setting.E) == default else ""
                ratios.append(f"{name} {found.median(name) / plain:.2f}{mark}")
        yield str(trial), f"{plain * 1e3:.3g}", ", ".join(ratios)
        torch.cuda.empty_cache()


def report(errors: dict[str, str], trial: Trial) -> None:
    for name, why in errors.items():
        print(f"{trial}: {name} failed: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
