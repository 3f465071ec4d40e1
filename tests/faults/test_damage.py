"""Damaged files of a run: an older checkpoint is used or an error is raised, and nothing is lost.

REGARD_FAULTS_FLIPS sets the number of flipped bits.
"""

import os
import random
import shutil
from pathlib import Path

import pytest

from faults.fault_setup import (
    ZH,
    Setup,
    assert_error,
    assert_error_in_chinese,
    assert_same_run,
    contents,
    newest,
    numbers,
)

pytestmark = pytest.mark.long  # whole runs that are killed: `make test-long` and `make test-faults`

FLIPS = int(os.environ.get("REGARD_FAULTS_FLIPS", "12"))


def flip(path: Path, rng: random.Random) -> bytes:
    """Flip one bit. Returns the previous content."""
    content = path.read_bytes()
    bit = rng.randrange(8 * len(content))
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    return content


@pytest.mark.long
def test_flipped_bit_in_an_unfinished_run(setup: Setup, halfway: Path, out: Path) -> None:
    """An older checkpoint is used or an error names the file; after restoring it, or as advised, nothing is lost."""
    rng = random.Random(7)
    last = f"checkpoints/step-{newest(halfway):08d}"
    kinds = ["recipe.toml", "run.json", "tokenizer.json", "metrics.jsonl"]
    kinds += [f"{last}/{path.name}" for path in (halfway / last).iterdir()]
    for n in range(FLIPS // 2):
        shutil.copytree(halfway, out)
        kind = kinds[n % len(kinds)]
        content = flip(out / kind, rng)
        result = setup.train(out, env=ZH if n % 2 else {})
        if result.code:
            assert_error(result, 3)
            assert kind in result.output or (kind == "recipe.toml" and str(out) in result.output), result.output
            (out / kind).write_bytes(content)
            result = setup.train(out)
        elif kind.startswith(last):
            assert last in result.output, (kind, result.output)  # skipped and reported
        else:
            assert kind == "recipe.toml", (kind, result.output)  # in a part that does not affect training
        assert result.code == 0, (kind, result)
        assert_same_run(out, setup.reference)
        shutil.rmtree(out)


def test_flipped_bit_in_a_finished_run(setup: Setup, out: Path) -> None:
    rng = random.Random(8)
    kinds = ["recipe.toml", "run.json", "tokenizer.json", "metrics.jsonl", "finished.json"]
    kinds += [f"model/{path.name}" for path in (setup.reference / "model").iterdir()]
    shutil.copytree(setup.reference, out)
    before = contents(out)
    for n in range(FLIPS - FLIPS // 2):
        kind = kinds[n % len(kinds)]
        content = flip(out / kind, rng)
        result = setup.train(out, env=ZH if n % 2 else {})
        assert_error(result, 3)
        assert kind in result.output or (kind == "recipe.toml" and str(out) in result.output), result.output
        (out / kind).write_bytes(content)
    assert {name: content for name, (_, content) in contents(out).items()} == {
        name: content for name, (_, content) in before.items()
    }
    flip(out / "model" / "model.safetensors", rng)
    (out / "finished.json").unlink()  # as the message advises
    assert setup.train(out).code == 0
    assert_same_run(out, setup.reference)


@pytest.mark.parametrize("name", ["run.json", "tokenizer.json"])
def test_small_file_is_rebuilt_as_the_message_advises(setup: Setup, half: Path, name: str) -> None:
    flip(half / name, random.Random(9))
    assert_error(setup.train(half), 3, str(half / name), f"remove {name}")
    (half / name).unlink()
    assert setup.train(half).code == 0
    assert_same_run(half, setup.reference)


def test_run_continues_without_metrics_moved_away(setup: Setup, half: Path) -> None:
    flip(half / "metrics.jsonl", random.Random(9))
    assert_error(setup.train(half), 3, str(half / "metrics.jsonl"), "move it away")
    step = newest(half)
    (half / "metrics.jsonl").unlink()
    assert setup.train(half).code == 0
    assert numbers(half) == numbers(setup.reference)[step:]


def test_garbage_after_the_last_checkpoint_is_removed(setup: Setup, half: Path) -> None:
    with (half / "metrics.jsonl").open("ab") as file:
        file.write(b"\0" * 300 + b"\n{\n")
    assert setup.train(half).code == 0
    assert_same_run(half, setup.reference)


def test_run_without_a_complete_checkpoint_is_not_restarted(setup: Setup, half: Path) -> None:
    for state in half.glob("checkpoints/*/state.json"):
        state.write_bytes(state.read_bytes()[:-1])
    before = contents(half / "checkpoints")
    assert_error(setup.train(half), 3, "state.json", "remove that folder")
    assert_error_in_chinese(setup.train(half, env=ZH), 3)
    assert contents(half / "checkpoints") == before
    shutil.rmtree(half / "checkpoints")
    assert setup.train(half).code == 0
    assert_same_run(half, setup.reference)


@pytest.mark.parametrize("latest", [None, b"", b"step-00000000\n", b"../../etc\n"])
def test_latest_is_not_trusted(setup: Setup, half: Path, latest: bytes | None) -> None:
    path = half / "checkpoints" / "LATEST"
    path.unlink()
    if latest is not None:
        path.write_bytes(latest)
    assert setup.train(half).code == 0
    assert_same_run(half, setup.reference)
