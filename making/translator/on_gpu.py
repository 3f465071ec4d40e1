"""python -m making.translator.on_gpu teachers|students --data DIR --out DIR: trains on one GPU within a time limit.

teachers   three runs of teacher.toml with different seeds; then they translate english.txt together (distilled.tsv)
students   two runs of student.toml, which differ in seed and in how often they read the pairs of Tatoeba

All runs share the GPU. Each measures its pace while the learning rate still rises, which is the same for any number of
steps, and then gets as many steps as fit before the limit. A run that is too slow all the same ends at the limit, with
the mean of its last checkpoints. One that fails starts again without CUDA graphs.

--out gets one small file per run, NAME.tar: the model as int8, its recipe, metrics and final figures, and how it
translates the held-out pairs, dev.tsv and benchmarks/sentences/*.txt (to be scored where sacreBLEU is installed).
The checkpoints stay in --runs; the same command continues what is there.
"""

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import torch

from benchmarks.translator import SENTENCES
from making.bundle import bundle
from regard.evaluation.translation import RECIPE, read_trained, translate_lines
from regard.models import Transformer
from regard.recipes import Recipe, read_recipe
from regard.recipes.recipe import to_toml
from regard.recipes.running import FINISHED, train
from regard.training.metrics import MetricsFile
from regard.training.run_reports import METRICS, Saved, Validated

HERE = Path(__file__).parent
OWN_TWICE = '["train.links.tsv", "own.links.tsv", "own.links.tsv", "distilled.links.tsv"]'
BOTH_TWICE = '["train.links.tsv", "train.links.tsv", "own.links.tsv", "own.links.tsv", "distilled.links.tsv"]'
STUDENT = {"training.steps": "7500", "model.dropout": "0.15"}
RUNS: dict[str, dict[str, dict[str, str]]] = {
    "teachers": {f"teacher-{seed}": {"training.seed": f"{seed}", "training.steps": "4500"} for seed in (11, 12, 13)},
    "students": {
        "student-1": {"training.seed": "1", "data.train": BOTH_TWICE, **STUDENT},
        "student-2": {"training.seed": "2", "data.train": OWN_TWICE, **STUDENT},
    },
}
"""The runs of each stage with their changes to the recipe; the steps are the most that a run takes.

Of at most 9,000 steps, two students together took 7,584 and 8,131 in nine minutes; with 7,500 the learning rate falls
to 0.
"""
PACE = 500
"""Steps before the pace is known: by then nearly every shape of batches has its CUDA graph."""
SPARE = 0.94
"""The share of the remaining time that the steps are planned for; validation is not in the pace."""
ENDING = 35.0
"""Seconds that a run needs after its last step: its model as files, its translations of test sets."""
SETS = ("valid.tsv", "valid-own.tsv", "dev.tsv")
"""The files of --data whose English each run translates, with beam 5 and the recipe's length penalty."""
DISTILLING = 90.0
PARTS = 10
"""Seconds for distilled.tsv, and the processes that write it."""
PLAIN = "-plain"
"""The end of the name of a run's folder if it captures no CUDA graphs."""


def main() -> None:
    options = parse()
    if options.stage == "run":
        run(options)
        return
    started = time.time()
    limit = started + 60 * options.minutes
    options.out.mkdir(parents=True, exist_ok=True)
    training_until = limit - (options.distilling if options.stage == "teachers" else 5)
    finished = train_all(options, training_until)
    if options.stage == "teachers" and finished:
        count = distil_all(options, finished, limit)
        tell(f"{count:,} pairs in {options.out / 'distilled.tsv'}")
    tell(f"{len(finished)} of {len(RUNS[options.stage])} runs, {time.time() - started:.0f} s")
    if not finished:
        raise SystemExit(1)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m making.translator.on_gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stage", choices=(*RUNS, "run"), help="run: one run of a stage, for this program's own use")
    parser.add_argument("--data", type=Path, required=True, help="the folder of making.translator.data and .align")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="checkpoints; a folder in memory is fastest")
    parser.add_argument("--minutes", type=float, default=9.0, help="the limit; default: 9")
    parser.add_argument("--distilling", type=float, default=DISTILLING, help=f"its seconds; default: {DISTILLING:g}")
    parser.add_argument("--pace", type=int, default=PACE, help=f"steps before the pace is known; default: {PACE}")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="changes every recipe")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--name", help="of one run")
    parser.add_argument("--until", type=float, help="of one run: seconds since 1970")
    return parser.parse_args(arguments)


def tell(text: str) -> None:
    print(text, flush=True)


# --- all runs of a stage --------------------------------------------------------------------------------


class Process(NamedTuple):
    """A run in a process of its own."""

    name: str
    process: subprocess.Popen[bytes]
    changes: list[str]


def train_all(options: argparse.Namespace, until: float) -> list[Path]:
    """Run all trainings of the stage at the same time. Returns the folders of the finished ones."""
    running = [start(options, name, until, options.set) for name in RUNS[options.stage]]
    failed: list[str] = []
    while running:
        time.sleep(0.5)
        for each in [each for each in running if each.process.poll() is not None]:
            running.remove(each)
            if each.process.returncode and each.name not in failed and time.time() < until - 60:
                tell(f"{each.name} failed; once more without CUDA graphs")
                failed.append(each.name)
                running.append(start(options, each.name, until, [*each.changes, "training.capture=false"]))
        if time.time() > until + 60:
            for each in running:  # it neither ended nor stopped at its limit
                each.process.kill()
                each.process.wait()
    folders = [options.runs / f"{name}{plain}" for name in RUNS[options.stage] for plain in ("", PLAIN)]
    return [folder for folder in folders if (folder / FINISHED).is_file()]


def start(options: argparse.Namespace, name: str, until: float, changes: Sequence[str]) -> Process:
    """Start one run of a stage."""
    command = [sys.executable, "-m", "making.translator.on_gpu", "run", "--name", name, "--until", str(until)]
    command += ["--data", options.data, "--out", options.out, "--runs", options.runs, "--pace", str(options.pace)]
    command += ["--device", options.device, *(part for change in changes for part in ("--set", change))]
    return Process(name, subprocess.Popen([*map(os.fspath, command)]), list(changes))


# --- one run --------------------------------------------------------------------------------------------


class PaceKnown(Exception):  # noqa: N818 - not an error: it ends the first part of a run
    """The run has taken enough steps to measure its pace."""


def run(options: argparse.Namespace) -> None:
    """Train one run until it is finished or the time is over, and write its .tar."""
    stage = next(stage for stage, runs in RUNS.items() if options.name in runs)
    changes = RUNS[stage][options.name] | dict(change.split("=", 1) for change in options.set)
    recipe = read_recipe(HERE / f"{stage.removesuffix('s')}.toml", changes)
    folder = options.runs / f"{options.name}{'' if recipe.training.capture else PLAIN}"
    train_in_time(recipe, folder, options)
    small = folder / "small"
    small.mkdir(exist_ok=True)
    bundle(folder / "model", small)
    pack(folder, options.out / f"{options.name}.tar")  # first without translations, in case that the time is over
    write_translations(small, recipe, options)
    pack(folder, options.out / f"{options.name}.tar")
    figures = (folder / FINISHED).read_text(encoding="utf-8")
    tell(f"{options.name}: {' '.join(figures.split())[:200]} …")


def train_in_time(recipe: Recipe, folder: Path, options: argparse.Namespace) -> None:
    """Train with as many of the recipe's steps as fit before options.until."""
    watch = Watch(options.name, options.pace)
    most = recipe.training.steps
    given: dict[str, Any] = {"data": options.data, "out": folder, "device": options.device, "say_note": tell}
    if (folder / FINISHED).exists():
        return
    if (folder / RECIPE).exists():  # a second call: the number of steps is decided
        recipe = read_recipe(folder / RECIPE)
    else:
        try:
            train(recipe, listeners=[watch], **given)
        except PaceKnown:
            left = options.until - ENDING - time.time()
            steps = min(most, watch.step + max(0, int(SPARE * left / watch.pace)))
            recipe = with_steps(recipe, folder, steps)
            tell(f"{options.name}: {1000 * watch.pace:.1f} ms a step; {steps:,} steps")
    with stopping_at(options.until - ENDING):
        result = train(recipe, listeners=[Watch(options.name, None)], **given)
    if result.reason == "signal":  # too slow after all: the mean of the last checkpoints
        reached = max(int(line["step"]) for line in MetricsFile(folder / METRICS).read())
        tell(f"{options.name}: out of time at step {reached:,} of {recipe.training.steps:,}")
        train(with_steps(recipe, folder, reached), **given)


def with_steps(recipe: Recipe, folder: Path, steps: int) -> Recipe:
    """The recipe with another number of steps, also in the run's folder.

    The rates of warm-up do not depend on that number, and neither does the mean of checkpoints that exist.
    """
    changed = replace(recipe, training=replace(recipe.training, steps=steps))
    (folder / RECIPE).write_text(to_toml(changed), encoding="utf-8")
    return changed


class Watch:
    """A listener: measures seconds per step between checkpoints, and reports validation losses."""

    def __init__(self, name: str, enough: int | None) -> None:
        self.name, self.enough = name, enough
        self.step, self.pace, self._at = 0, 0.0, time.time()

    def __call__(self, event: Any) -> None:
        if isinstance(event, Saved):
            now = time.time()
            self.pace = (now - self._at) / max(1, event.step - self.step)
            self.step, self._at = event.step, now
            if self.enough is not None and event.step >= self.enough:
                raise PaceKnown
        elif isinstance(event, Validated):
            tell(f"{self.name}: step {event.step}, validation loss {event.loss:.3f}")


@contextmanager
def stopping_at(moment: float) -> Iterator[None]:
    """Send this process a stop request at that moment: training saves and ends. Between trainings it has no effect."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    timer = Timer(max(0.0, moment - time.time()), os.kill, (os.getpid(), signal.SIGTERM))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        signal.signal(signal.SIGTERM, before)


def write_translations(model: Path, recipe: Recipe, options: argparse.Namespace) -> None:
    """Translate the test sets with the model as it would be bundled, one line per English sentence, into its folder."""
    trained = read_trained(model)
    sets = [options.data / name for name in SETS if (options.data / name).is_file()]
    for path in (*sets, *sorted(SENTENCES.glob("*.txt"))):
        lines = [line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines()]
        english = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
        how: dict[str, Any] = {"beams": recipe.evaluation.beams, "length_penalty": recipe.evaluation.length_penalty}
        assert isinstance(trained.model, Transformer)
        chinese = translate_lines(trained.model, trained.tokenizer, english, device=options.device, **how)
        text = "".join(f"{one}\t{other}\n" for one, other in zip(english, chinese, strict=True))
        (model / f"translated-{path.stem}.tsv").write_text(text, encoding="utf-8")


def pack(folder: Path, target: Path) -> None:
    """Write the run as one small .tar: everything in its folder `small`, recipe, metrics and final figures."""
    with tarfile.open(target, "w") as file:
        for path in (*sorted((folder / "small").iterdir()), folder / RECIPE, folder / METRICS, folder / FINISHED):
            file.add(path, f"{target.stem}/{path.name}")


# --- distillation ---------------------------------------------------------------------------------------


def distil_all(options: argparse.Namespace, teachers: Sequence[Path], limit: float) -> int:
    """Translate english.txt with all teachers, in several processes, until the limit. Returns the number of pairs."""
    command = [sys.executable, "-m", "making.translator.distil", *teachers, "--english", options.data / "english.txt"]
    command += ["--device", options.device]
    parts = [options.runs / f"distilled-{part}.tsv" for part in range(1, PARTS + 1)]
    running = [
        subprocess.Popen([*map(os.fspath, command), "--out", os.fspath(out), "--part", f"{part}/{PARTS}"])
        for part, out in enumerate(parts, 1)
    ]
    for each in running:
        try:
            each.wait(max(1.0, limit - time.time()))
        except subprocess.TimeoutExpired:  # what it has written so far is used
            each.terminate()
            each.wait()
    lines = [line for path in parts if path.exists() for line in path.read_text(encoding="utf-8").split("\n")]
    whole = sorted(line for line in lines if line.count("\t") == 1)
    (options.out / "distilled.tsv").write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
    return len(whole)


if __name__ == "__main__":
    main()
