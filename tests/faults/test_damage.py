"""Files of a run that are not what was written: an older checkpoint or a refusal, and nothing lost.

REGARD_FAULTS_FLIPS asks for more flipped bits.
"""

import os
import random
import shutil
from pathlib import Path

import pytest

from faults.stage import (
    ZH,
    Stage,
    assert_same_run,
    assert_told,
    assert_told_in_chinese,
    contents,
    newest,
    numbers,
)

FLIPS = int(os.environ.get("REGARD_FAULTS_FLIPS", "12"))


def flip(path: Path, rng: random.Random) -> bytes:
    """Change one bit; what the file held before."""
    content = path.read_bytes()
    bit = rng.randrange(8 * len(content))
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    return content


def test_a_flipped_bit_in_an_unfinished_run(stage: Stage, halfway: Path, out: Path) -> None:
    """An older checkpoint or a refusal that names the file; and with the file put back, or as advised, nothing lost."""
    rng = random.Random(7)
    last = f"checkpoints/step-{newest(halfway):08d}"
    kinds = ["recipe.toml", "run.json", "tokenizer.json", "metrics.jsonl"]
    kinds += [f"{last}/{path.name}" for path in (halfway / last).iterdir()]
    for n in range(FLIPS // 2):
        shutil.copytree(halfway, out)
        kind = kinds[n % len(kinds)]
        content = flip(out / kind, rng)
        ended = stage.train(out, env=ZH if n % 2 else {})
        if ended.code:
            assert_told(ended, 3)
            assert kind in ended.said or (kind == "recipe.toml" and str(out) in ended.said), ended.said
            (out / kind).write_bytes(content)
            ended = stage.train(out)
        elif kind.startswith(last):
            assert last in ended.said, (kind, ended.said)  # passed over, and said
        else:
            assert kind == "recipe.toml", (kind, ended.said)  # in a part that does not touch the training
        assert ended.code == 0, (kind, ended)
        assert_same_run(out, stage.whole)
        shutil.rmtree(out)


def test_a_flipped_bit_in_a_finished_run(stage: Stage, out: Path) -> None:
    rng = random.Random(8)
    kinds = ["recipe.toml", "run.json", "tokenizer.json", "metrics.jsonl", "finished.json"]
    kinds += [f"model/{path.name}" for path in (stage.whole / "model").iterdir()]
    shutil.copytree(stage.whole, out)
    before = contents(out)
    for n in range(FLIPS - FLIPS // 2):
        kind = kinds[n % len(kinds)]
        content = flip(out / kind, rng)
        ended = stage.train(out, env=ZH if n % 2 else {})
        assert_told(ended, 3)
        assert kind in ended.said or (kind == "recipe.toml" and str(out) in ended.said), ended.said
        (out / kind).write_bytes(content)
    assert {name: content for name, (_, content) in contents(out).items()} == {
        name: content for name, (_, content) in before.items()
    }
    flip(out / "model" / "model.safetensors", rng)
    (out / "finished.json").unlink()  # as the message says
    assert stage.train(out).code == 0
    assert_same_run(out, stage.whole)


@pytest.mark.parametrize("name", ["run.json", "tokenizer.json"])
def test_a_small_file_is_made_anew_as_the_message_says(stage: Stage, half: Path, name: str) -> None:
    flip(half / name, random.Random(9))
    assert_told(stage.train(half), 3, str(half / name), f"remove {name}")
    (half / name).unlink()
    assert stage.train(half).code == 0
    assert_same_run(half, stage.whole)


def test_metrics_moved_away_are_done_without(stage: Stage, half: Path) -> None:
    flip(half / "metrics.jsonl", random.Random(9))
    assert_told(stage.train(half), 3, str(half / "metrics.jsonl"), "move it away")
    step = newest(half)
    (half / "metrics.jsonl").unlink()
    assert stage.train(half).code == 0
    assert numbers(half) == numbers(stage.whole)[step:]


def test_what_a_power_cut_left_behind_the_last_checkpoint_is_dropped(stage: Stage, half: Path) -> None:
    with (half / "metrics.jsonl").open("ab") as file:
        file.write(b"\0" * 300 + b"\n{\n")
    assert stage.train(half).code == 0
    assert_same_run(half, stage.whole)


def test_a_run_of_which_no_checkpoint_is_whole_is_not_begun_again(stage: Stage, half: Path) -> None:
    for state in half.glob("checkpoints/*/state.json"):
        state.write_bytes(state.read_bytes()[:-1])
    before = contents(half / "checkpoints")
    assert_told(stage.train(half), 3, "state.json", "remove that folder")
    assert_told_in_chinese(stage.train(half, env=ZH), 3)
    assert contents(half / "checkpoints") == before
    shutil.rmtree(half / "checkpoints")
    assert stage.train(half).code == 0
    assert_same_run(half, stage.whole)


@pytest.mark.parametrize("latest", [None, b"", b"step-00000000\n", b"../../etc\n"])
def test_latest_is_not_trusted(stage: Stage, half: Path, latest: bytes | None) -> None:
    path = half / "checkpoints" / "LATEST"
    path.unlink()
    if latest is not None:
        path.write_bytes(latest)
    assert stage.train(half).code == 0
    assert_same_run(half, stage.whole)
