"""python -m benchmarks.recipes RECIPE --data DIR --out DIR [--seeds 1 2 3]: scores compared with published ones.

Every seed is a run of `regard train`, in OUT/RECIPE-SEED, so that finished runs are not repeated, and interrupted ones
continue; with --jobs, several in parallel. Scores come from `regard evaluate`. The output is mean and spread over the
seeds, with the published figure if there is one.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.dated import finish, heading, table


class Published(NamedTuple):
    """A published figure and its source."""

    value: float
    higher_is_better: bool
    source: str


WU = "Wu et al. 2021, Transformer-Tiny"
PUBLISHED = {
    ("multi30k-en-de", "test_2016_flickr", "bleu"): Published(41.02, True, WU),
    ("multi30k-en-de", "test_2017_flickr", "bleu"): Published(33.36, True, WU),
    ("multi30k-en-fr", "test_2016_flickr", "bleu"): Published(61.80, True, WU),
    ("multi30k-en-fr", "test_2017_flickr", "bleu"): Published(53.46, True, WU),
    ("shakespeare-char", "held out", "loss"): Published(1.4697, False, "nanoGPT's README"),
}


class Row(NamedTuple):
    """One score over all seeds."""

    set: str
    metric: str
    values: list[float]
    signature: str | None
    published: Published | None

    @property
    def mean(self) -> float:
        return statistics.mean(self.values)

    @property
    def spread(self) -> str:
        """Minimum to maximum, and the standard deviation."""
        if len(self.values) == 1:
            return "one seed"
        return f"{min(self.values):.4g}–{max(self.values):.4g}, s = {statistics.stdev(self.values):.2g}"

    @property
    def ratio(self) -> str:
        """The mean relative to the published figure: above 1 is better."""
        if self.published is None:
            return "–"
        ratio = self.mean / self.published.value
        return f"{ratio if self.published.higher_is_better else 1 / ratio:.3f}"

    def cells(self) -> list[str]:
        published = "–" if self.published is None else f"{self.published.value} ({self.published.source})"
        return [self.set, self.metric, f"{self.mean:.4g}", self.spread, published, self.ratio, self.signature or "–"]


HEADINGS = ["set", "metric", "mean", "spread", "published", "better by", "signature"]


def main() -> None:
    options = parse()
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda seed: outcome(options, seed), options.seeds))
    scores: dict[tuple[str, str], list[tuple[float, str | None]]] = defaultdict(list)
    for _, sets in outcomes:
        for each in sets:
            for metric, score in each["scores"].items():
                scores[each["set"], metric].append((score["value"], score["signature"]))
    rows = [
        Row(name, metric, [value for value, _ in found], found[0][1], PUBLISHED.get((options.recipe, name, metric)))
        for (name, metric), found in scores.items()
    ]
    text = markdown(options, rows, [finished for finished, _ in outcomes])
    finish(options.recipe, text, report=options.report)


def outcome(options: argparse.Namespace, seed: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train and evaluate one seed: its finished.json, and its scores on every set."""
    out = options.out / f"{options.recipe}-{seed}"
    changes = [word for change in options.set for word in ("--set", change)]
    regard("train", options.recipe, "--data", options.data, "--out", out, "--seed", seed, *changes)
    splits = [word for split in options.split for word in ("--split", split)]
    found = json.loads(regard("evaluate", out, "--data", options.data, *splits, "--json"))
    return json.loads((out / "finished.json").read_text(encoding="utf-8")), found["sets"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("recipe")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", default=["1", "2", "3"])
    parser.add_argument("--jobs", type=int, default=1, help="seeds in parallel, if they fit on the GPU; default: 1")
    parser.add_argument("--split", action="append", default=[], help="sets to evaluate on; default: the recipe's tests")
    parser.add_argument(
        "--set", action="append", default=[], help="a change to the recipe, such as training.compile=true"
    )
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    return parser.parse_args()


def regard(*arguments: Any) -> str:
    """Run a command of ours; returns its output."""
    command = [sys.executable, "-m", "regard", "--lang", "en", *map(str, arguments)]
    print("$ regard " + " ".join(map(str, arguments)), file=sys.stderr)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def markdown(options: argparse.Namespace, rows: list[Row], figures: list[dict[str, Any]]) -> str:
    """The report: the commands, the results of each seed, and the table."""
    changed = "".join(f" --set {change}" for change in options.set)
    splits = "".join(f" --split {split}" for split in options.split)
    lines = [
        *heading(options.recipe),
        "```",
        f"regard train {options.recipe} --data DATA --out OUT --seed SEED{changed}",
        f"regard evaluate OUT --data DATA{splits}",
        "```",
        "",
        f"Seeds {', '.join(options.seeds)}; {figures[0]['parameters']:,} parameters; {figures[0]['step']:,} steps; "
        f"validation loss {', '.join(format(each['valid_loss'], '.4f') for each in figures)}.",
        "",
        *table(HEADINGS, (row.cells() for row in rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
