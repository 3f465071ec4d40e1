"""Where runs are put under fire: a recipe, the program that trains, and what must hold whatever was done to a run.

The judge is a run that nothing happened to: in the end another must be equal to it, bit for bit, or say in one sentence
why not. Which faults there are is not known here.
"""

import json
import re
import time
from pathlib import Path
from typing import NamedTuple

from faults.lives import EVERY, Ended, Life, Lives, until
from regard.training.checkpoint_store import Store
from regard.training.metrics import MetricsFile

CHINESE = re.compile("[\u4e00-\u9fff]")
ZH = {"REGARD_LANG": "zh"}


class Stage(NamedTuple):
    """A folder with the recipe in it, the program that trains, and the run to which nothing happens."""

    folder: Path
    lives: Lives
    whole: Path
    seconds: float

    def start(self, out: Path, *more: str | Path, **ways: object) -> Life:
        return self.lives.start("train", self.folder / "tiny.toml", "--out", out, *more, **ways)

    def train(self, out: Path, *more: str | Path, **ways: object) -> Ended:
        return self.start(out, *more, **ways).end()


def until_between_saves(out: Path) -> None:
    """Until a run with slow steps is in the middle of one, with a checkpoint behind it and none due."""
    until(lambda: (out / "checkpoints" / f"step-{EVERY:08d}").exists())
    time.sleep(0.1)


def assert_same_run(out: Path, whole: Path) -> None:
    """The weights to the last bit, each step once with the same numbers, and nothing left lying about."""
    assert (out / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()
    assert numbers(out) == numbers(whole)
    assert [line["step"] for line in numbers(out)] == list(range(1, len(numbers(whole)) + 1))
    assert names(out) == names(whole)


def numbers(out: Path) -> list[dict[str, float]]:
    lines = MetricsFile(out / "metrics.jsonl").read()
    return [{name: value for name, value in line.items() if name != "tokens_per_second"} for line in lines]


def names(out: Path) -> list[str]:
    """Of all files, but those of a checkpoint that a kill has left for the next save to remove."""
    found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*"))
    old = {f"step-{step:08d}" for step in Store(out / "checkpoints").steps()[:-2]}
    return [name for name in found if not old & set(name.split("/"))]


def contents(out: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in out.rglob("*") if path.is_file()}


def newest(out: Path) -> int:
    """The newest checkpoint; every one that can be seen is whole, and no more than an interval is missing."""
    store = Store(out / "checkpoints")
    for step in store.steps():
        store.load(step)
    step = max(store.steps(), default=0)
    lines = (out / "metrics.jsonl").read_bytes().split(b"\n")[:-1] if (out / "metrics.jsonl").exists() else []
    done = json.loads(lines[-1])["step"] if lines else 0
    assert done - step <= EVERY, f"step {done} was done, and {step} is the newest checkpoint"
    return step


def assert_told(ended: Ended, code: int, *pieces: str) -> None:
    """One sentence, the right exit code, no traceback."""
    assert ended.code == code, ended
    sentence = ended.said.splitlines()[-1]
    assert sentence.startswith("regard: "), ended.said
    assert "Traceback" not in ended.said
    for piece in pieces:
        assert piece in sentence, ended.said


def assert_told_in_chinese(ended: Ended, code: int) -> None:
    assert_told(ended, code)
    assert CHINESE.search(ended.said.splitlines()[-1]), ended.said
