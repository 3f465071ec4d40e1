"""python -m benchmarks.watching_targets: what watching costs on a GPU beside its targets, in ten minutes.

It runs the parts of `watching_short` (short and long forwards, a generation, calls of `attend`), the case monitor-gpu
of `benchmarks.run` and, with the time that is left, the tests of watching on a GPU. Figures are printed as soon as they
are known, and at the end with their targets. A watched forward counts until its Trace was read. An error ends its part
alone; the exit status is 1 if a part failed, and 3 if all ran and a target was missed. --seconds: the time for all of
it; --only: these parts; --small: small sizes on the CPU, to check the command itself.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import watching_short
from benchmarks.cases.monitor import EVERY_100
from benchmarks.dated import table

ROOT = Path(__file__).parents[1]


class Target(NamedTuple):
    """The largest value that a figure may have."""

    figure: str
    most: float
    unit: str = "×"


SHORT = (128, 1024, 4096)
LONG = (16_384, 65_536)
TARGETS = (
    *(Target(f"watch, {length:,} tokens, over unwatched", 1.25) for length in SHORT),
    *(Target(f"watch, {length:,} tokens, over eager with weights", 1.15) for length in SHORT[:2]),
    *(Target(f"one layer, {length:,} tokens, over unwatched", 1.08) for length in SHORT),
    Target("watch, 64 generated, over unwatched", 1.3),
    # Those of 2026-11-16 and 2026-11-18: no slower.
    Target("watch, 16,384 tokens, over unwatched", 1.433),
    Target("fused, 16,384 tokens, over unwatched", 1.105),
    Target("watch, 65,536 tokens, over unwatched", 1.609),
    Target("fused, 65,536 tokens, over unwatched", 0.959),
    Target("attend, 4,096 tokens, host", 0.25, "ms"),
    Target("attend, 4,096 tokens, events over cuDNN", 1.4),
    Target("attend, 16,384 tokens, events over cuDNN", 1.08),
    Target("monitor every=1, over unmonitored", 1.10),
    Target("monitor every=100, over unmonitored", 1.01),
)
GPU_TESTS = ("tests/gpu/test_watching_short.py", "tests/gpu/test_watching.py", "tests/gpu/test_triton_dispatch.py")
CPU_TESTS = ("tests/unit/capture/test_deferred_calls.py",)

Figures = dict[str, float]
Rows = list[list[str]]


class Session:
    """One run of all parts: the model, the options, and when to stop."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        self.small = bool(options.small)
        self.end = time.monotonic() + options.seconds
        if not self.small and not torch.cuda.is_available():
            sys.exit("no CUDA device: --small checks the command on the CPU")
        torch.manual_seed(0)
        self.model = small_gpt2() if self.small else watching_short.llama()

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.end - time.monotonic()

    def short(self) -> Figures:
        """Forwards of short texts, and eager with all weights."""
        rows = [row for length in ((16, 32, 48) if self.small else SHORT) for row in self._forwards(length, 15)]
        return self._ratios(rows) | over_eager(rows)

    def generation(self) -> Figures:
        """Tokens that are generated one by one."""
        return self._ratios(watching_short.generations(self.model, self._options(9, steps=4 if self.small else 64)))

    def attend(self) -> Figures:
        """Single calls: the host's time, and the GPU's beside cuDNN's."""
        lengths = (64,) if self.small else (4096, 16_384)
        return of_calls(watching_short.single_calls(3 if self.small else 25, lengths))

    def long(self) -> Figures:
        """Forwards of long texts, which must not become slower."""
        rows: Rows = []
        for length in (96,) if self.small else LONG:
            rows += self._forwards(length, 3, methods=["watch", "fused", "one layer"])
        return self._ratios(rows)

    def monitor(self) -> Figures:
        """A training step with and without a monitor."""
        name = "monitor" if self.small else "monitor-gpu"
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "monitor.json"
            rounds = ["--rounds", "2"] if self.small else []
            command = ["-m", "benchmarks.run", name, "--json", str(written), *rounds]
            self._python([*command, *([] if self.small else ["--gpu"])])
            return of_monitor(json.loads(written.read_text(encoding="utf-8")), name)

    def tests(self) -> Figures:
        """The tests of watching on a GPU; an error if one fails."""
        self._python(["-m", "pytest", "-q", "-p", "no:cacheprovider", *(CPU_TESTS if self.small else GPU_TESTS)])
        return {}

    def _forwards(self, length: int, rounds: int, methods: list[str] | None = None) -> Rows:
        return watching_short.forwards(self.model, length, self._options(rounds, methods=methods))

    def _options(self, rounds: int, **more: Any) -> argparse.Namespace:
        chosen = {"clock": time.perf_counter, "methods": None, "steps": 0, "rounds": 3 if self.small else rounds} | more
        return argparse.Namespace(**chosen)

    def _ratios(self, rows: Rows) -> Figures:
        return {f"{row[1]}, {row[0]}, over unwatched": float(row[4]) for row in rows if row[1] != "unwatched"}

    def _python(self, command: list[str]) -> None:
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True, timeout=max(5, self.left))


def small_gpt2() -> Any:
    """A model for the CPU whose forward takes milliseconds."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes: dict[str, Any] = {"n_layer": 4, "n_embd": 64, "n_head": 4, "n_positions": 128, "vocab_size": 1000}
    config = GPT2Config(**sizes, bos_token_id=0, eos_token_id=None)
    return GPT2LMHeadModel._from_config(config, attn_implementation="sdpa").eval()


def over_eager(rows: Rows) -> Figures:
    """The watched time over that of eager with weights, by length.

    >>> over_eager([["16 tokens", "watch", "2", "", "1.5"], ["16 tokens", "eager, output_attentions", "4", "", "3"]])
    {'watch, 16 tokens, over eager with weights': 0.5}
    """
    ratios = {(row[0], row[1]): float(row[4]) for row in rows}
    return {
        f"watch, {what}, over eager with weights": ratios[what, "watch"] / ratio
        for (what, method), ratio in ratios.items()
        if method == "eager, output_attentions"
    }


def of_calls(rows: Rows) -> Figures:
    """The host's milliseconds of `attend`, and its events over those of cuDNN.

    >>> [*of_calls([["attend, 64 tokens", "host", "0.2"]])]
    ['attend, 64 tokens, host']
    """
    host = {f"{row[0]}, host": float(row[2]) for row in rows if row[1] == "host" and row[0].startswith("attend")}
    events = {row[0]: float(row[-1]) for row in rows if row[1] == "events"}
    over = {
        f"{name}, events over cuDNN": time / events[name.replace("attend", "cuDNN")]
        for name, time in events.items()
        if name.startswith("attend")
    }
    return host | over


def of_monitor(found: dict[str, Any], name: str) -> Figures:
    """The ratios of the case `name` in the JSON that `benchmarks.run` wrote."""
    case = found["cases"][name]
    return {
        "monitor every=1, over unmonitored": case["ratios"]["every=1, time over unmonitored"],
        "monitor every=100, over unmonitored": case["facts"][EVERY_100],
    }


PARTS: dict[str, Callable[[Session], Figures]] = {
    "short": Session.short,
    "attend": Session.attend,
    "generation": Session.generation,
    "long": Session.long,
    "monitor": Session.monitor,
    "tests": Session.tests,
}


def verdicts(figures: Figures) -> tuple[Rows, bool]:
    """The table of figures with their targets, and whether a target was missed."""
    rows, is_missed = [], False
    for target in TARGETS:
        found = figures.get(target.figure)
        missed = found is not None and found > target.most
        is_missed |= missed
        verdict = "not measured" if found is None else "missed" if missed else "met"
        rows.append([target.figure, "" if found is None else f"{found:.3f}", f"{target.most:g} {target.unit}", verdict])
    return rows, is_missed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watching_targets", description=__doc__)
    parser.add_argument("--seconds", type=float, default=570)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="small sizes on the CPU")
    options = parser.parse_args()
    session, figures, failed = Session(options), Figures(), list[str]()
    import torch

    for name in options.only:
        print(f"--- {name}: {session.left:.0f} s left", flush=True)
        try:
            with torch.no_grad():
                figures |= PARTS[name](session)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    rows, is_missed = verdicts(figures)
    if session.small:  # no sizes with targets
        rows = [[name, f"{value:.3f}", "", ""] for name, value in figures.items()]
    print("\n".join(table(("figure", "measured", "target", "verdict"), rows)))
    if failed:
        sys.exit(f"parts that failed: {', '.join(failed)}")
    sys.exit(3 if is_missed else 0)


if __name__ == "__main__":
    main()
