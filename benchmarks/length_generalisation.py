"""python -m benchmarks.length_generalisation [--report]: five kinds of positions, at lengths never seen in training.

The task: small and capital letters at random; after each small letter, which was the last capital? The distance to it
does not grow with the length of the text, so only the positions are new. Each model, two layers with eight heads, is
trained from scratch on texts of 32 letters and evaluated at every position of texts of 128. Less than ten minutes
on one core. --report also writes the data of the picture in lesson 6.
"""

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.commit import with_commit
from benchmarks.dated import finish, heading, table
from regard.config import Alibi, Learned, Rotary, Sinusoidal, TransformerConfig
from regard.config.styles import Embeddings, Positions
from regard.models import Transformer
from regard.training.batches import IGNORED, Batch
from regard.training.loop import Task, fit
from regard.training.plan import Plan
from regard.training.processes import joined

PICTURE = Path(__file__).parents[1] / "src/regard/course/drawings/measured/length-generalisation.json"
KINDS: dict[str, Positions | None] = {
    "none": None,
    "learned": Learned(),
    "sinusoidal": Sinusoidal(),
    "rotary": Rotary(),
    "alibi": Alibi(),
}
LENGTH, TIMES = 32, 4
"""Letters of a training text; the evaluation goes up to this many times as far."""
LETTERS, CAPITALS = 8, 0.25
"""Different letters, and the share of capitals."""
BATCH, TESTED, BIN = 32, 512, 8
"""Texts of a training batch and of the evaluation; positions per point of the picture."""


@dataclass(frozen=True)
class Result:
    """Shares of right answers, means over the seeds: up to 1 ×, from there to 2 ×, from there to 4 × the length."""

    ranges: list[float]
    lowest: list[float]
    highest: list[float]
    bins: list[float]


@dataclass(frozen=True)
class LastCapital:
    """Texts as `training.batches.Data`. Ids: small letters first, then capitals."""

    seed: int
    batches_per_epoch: int = 1000

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def batch(self, epoch: int, index: int) -> Batch:
        random = torch.Generator().manual_seed(10**9 * self.seed + self.batches_per_epoch * epoch + index)
        ids, targets = texts(random, BATCH, LENGTH)
        return Batch({"ids": ids}, targets, tuple(range(BATCH)))


def texts(random: torch.Generator, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Ids and targets, each (B, T): after a small letter the last capital; after a capital nothing is asked."""
    letters = torch.randint(LETTERS, (count, length), generator=random)
    capital = torch.rand(count, length, generator=random) < CAPITALS
    capital[:, 0] = True
    last = torch.where(capital, torch.arange(length), 0).cummax(1).values  # B T, the position of the last capital
    return letters + LETTERS * capital, torch.where(capital, IGNORED, letters.gather(1, last))


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    start, found = time.perf_counter(), {}
    for kind in KINDS:
        found[kind] = summary([shares(trained(kind, seed, options.steps)) for seed in options.seeds])
        print(kind, *(f"{share:.1%}" for share in found[kind].ranges), flush=True)
    finish("length-generalisation", markdown(options, found, time.perf_counter() - start), report=options.report)
    if options.report:
        about = {"length": LENGTH, "bin": BIN, "seeds": len(options.seeds), "chance": 1 / LETTERS}
        data = about | {"kinds": {kind: asdict(result) for kind, result in found.items()}}
        PICTURE.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.length_generalisation", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    return parser.parse_args()


def trained(kind: str, seed: int, steps: int) -> Transformer:
    """A model with this kind of positions, trained on texts of LENGTH letters."""
    torch.manual_seed(seed)
    config = TransformerConfig.gpt2(
        vocab_size=2 * LETTERS,
        d_model=64,
        n_heads=8,
        d_ff=128,
        n_layers=2,
        max_len=TIMES * LENGTH,
        positions=KINDS[kind],
        embeddings=Embeddings(scaled=True),
        dropout=0.0,
    )
    model = Transformer(config)
    task = Task(model, forward=lambda model, ids: model(ids), data=LastCapital(seed))
    plan = Plan(steps=steps, lr=3e-3, schedule="cosine", warmup=30, lr_end=1.5e-4, save_every=steps, seed=seed)
    with tempfile.TemporaryDirectory() as folder, joined("cpu") as ranks:
        outcome = fit(task, plan, Path(folder), ranks)
    assert outcome.weights is not None
    model.load_state_dict(outcome.weights)
    return model.eval()


@torch.no_grad()
def shares(model: Transformer) -> list[tuple[int, int]]:
    """Right answers and questions at each position of TESTED texts that no training saw."""
    ids, targets = texts(torch.Generator().manual_seed(10**12), TESTED, TIMES * LENGTH)
    asked, right = targets != IGNORED, model(ids).argmax(-1) == targets
    return list(zip(right.sum(0).tolist(), asked.sum(0).tolist(), strict=True))


def summary(seeds: list[list[tuple[int, int]]]) -> Result:
    """The mean, the lowest and the highest share of several seeds."""
    spans = [(0, LENGTH), (LENGTH, 2 * LENGTH), (2 * LENGTH, TIMES * LENGTH)]
    ranges = [[share(counts[start:end]) for counts in seeds] for start, end in spans]
    bins = [statistics.fmean(share(counts[at : at + BIN]) for counts in seeds) for at in range(0, TIMES * LENGTH, BIN)]
    means, lowest, highest = ([f(each) for each in ranges] for f in (statistics.fmean, min, max))
    return Result(rounded(means), rounded(lowest), rounded(highest), rounded(bins))


def share(counts: list[tuple[int, int]]) -> float:
    right, asked = map(sum, zip(*counts, strict=True))
    return right / asked


def rounded(values: list[float]) -> list[float]:
    return [round(value, 4) for value in values]


def markdown(options: argparse.Namespace, found: dict[str, Result], seconds: float) -> str:
    """The report."""
    headings = ["positions", f"1 to {LENGTH}", f"{LENGTH + 1} to {2 * LENGTH}", f"{2 * LENGTH + 1} to {4 * LENGTH}"]
    seeds = " ".join(map(str, options.seeds))
    lines = [
        *heading(with_commit("Length generalisation of five kinds of positions")),
        "```",
        f"python -m benchmarks.length_generalisation --seeds {seeds} --steps {options.steps}",
        "```",
        "",
        f"{seconds:.0f} s in all, one thread. Trained on texts of {LENGTH} letters, evaluated on {TESTED} texts of "
        f"{TIMES * LENGTH}; the share of right answers by position, the mean of {len(options.seeds)} seeds, and the "
        f"lowest and highest. Chance is {1 / LETTERS:.1%}. Two layers, d_model 64, 8 heads, pre-norm, "
        f"{options.steps} steps of {BATCH} texts.",
        "",
        *table(headings, ([kind, *cells(result)] for kind, result in found.items())),
        "",
    ]
    return "\n".join(lines)


def cells(result: Result) -> list[str]:
    """The three shares of a row."""
    both = zip(result.ranges, result.lowest, result.highest, strict=True)
    return [f"{mean:.1%} ({low:.1%}–{high:.1%})" for mean, low, high in both]


if __name__ == "__main__":
    main()
