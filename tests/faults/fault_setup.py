"""Setup and assertions of fault tests: a recipe, the fork server, and what must hold after any fault.

The reference is an undisturbed run: another run must equal it bit for bit in the end, or fail with one error message.
Independent of the faults.
"""

import json
import re
import time
from pathlib import Path
from typing import NamedTuple

from faults.fork_server import EVERY, Child, ChildResult, ForkServer, wait_until
from regard.training.checkpoint_store import CheckpointStore
from regard.training.metrics import MetricsFile

CHINESE = re.compile("[\u4e00-\u9fff]")
ZH = {"REGARD_LANG": "zh"}


class Setup(NamedTuple):
    """A folder with the recipe, the fork server, and the undisturbed reference run with its duration."""

    folder: Path
    server: ForkServer
    reference: Path
    seconds: float

    def start(self, out: Path, *more: str | Path, **options: object) -> Child:
        return self.server.start("train", self.folder / "tiny.toml", "--out", out, *more, **options)

    def train(self, out: Path, *more: str | Path, **options: object) -> ChildResult:
        return self.start(out, *more, **options).end()


def wait_until_between_saves(out: Path) -> None:
    """Wait until a run with slow steps is within a step that is not followed by a save, after its first checkpoint."""
    wait_until(lambda: (out / "checkpoints" / f"step-{EVERY:08d}").exists())
    time.sleep(0.1)


def assert_same_run(out: Path, reference: Path) -> None:
    """Assert equal weights bit for bit, each step once with the same metrics, and no leftover files."""
    assert (out / "model" / "model.safetensors").read_bytes() == (
        reference / "model" / "model.safetensors"
    ).read_bytes()
    assert numbers(out) == numbers(reference)
    assert [line["step"] for line in numbers(out)] == list(range(1, len(numbers(reference)) + 1))
    assert names(out) == names(reference)


def numbers(out: Path) -> list[dict[str, float]]:
    lines = MetricsFile(out / "metrics.jsonl").read()
    return [{name: value for name, value in line.items() if name != "tokens_per_second"} for line in lines]


def names(out: Path) -> list[str]:
    """The names of all files, without those of an old checkpoint that the next save would remove."""
    found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*"))
    old = {f"step-{step:08d}" for step in CheckpointStore(out / "checkpoints").steps()[:-2]}
    return [name for name in found if not old & set(name.split("/"))]


def contents(out: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in out.rglob("*") if path.is_file()}


def newest(out: Path) -> int:
    """The newest checkpoint. Asserts that all checkpoints are complete and that at most one interval is missing."""
    store = CheckpointStore(out / "checkpoints")
    for step in store.steps():
        store.load(step)
    step = max(store.steps(), default=0)
    lines = (out / "metrics.jsonl").read_bytes().split(b"\n")[:-1] if (out / "metrics.jsonl").exists() else []
    done = json.loads(lines[-1])["step"] if lines else 0
    assert done - step <= EVERY, f"step {done} was done, and {step} is the newest checkpoint"
    return step


def assert_error(result: ChildResult, code: int, *pieces: str) -> None:
    """Assert a one-line error message, the exit code, and no traceback."""
    assert result.code == code, result
    message = result.output.splitlines()[-1]
    assert message.startswith("regard: "), result.output
    assert "Traceback" not in result.output
    for piece in pieces:
        assert piece in message, result.output


def assert_error_in_chinese(result: ChildResult, code: int) -> None:
    assert_error(result, code)
    assert CHINESE.search(result.output.splitlines()[-1]), result.output
