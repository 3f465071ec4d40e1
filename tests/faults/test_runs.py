"""Whole runs under fire, through the command line: killed, interrupted, out of disk, damaged, disturbed.

The judge is a run that nothing happened to: whatever was done to another, in the end it must be equal to it, bit for
bit, or say in one sentence why not. REGARD_FAULTS_KILLS and REGARD_FAULTS_FLIPS ask for more of everything.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.lives import EVERY, RECIPE, STEPS, Ended, Life, Lives, living, until
from regard.training.metrics import MetricsFile
from regard.training.store import Store

KILLS = int(os.environ.get("REGARD_FAULTS_KILLS", "40"))
POINTS = int(os.environ.get("REGARD_FAULTS_POINTS", "12"))
FLIPS = int(os.environ.get("REGARD_FAULTS_FLIPS", "28"))
CHINESE = re.compile("[\u4e00-\u9fff]")


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


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a kill, unlike a power cut, asks nothing of the disk
    with tempfile.TemporaryDirectory(dir=memory) as name, living(Path(name)) as lives:
        folder = Path(name)
        (folder / "tiny.toml").write_text(RECIPE)
        whole = Stage(folder, lives, folder / "whole", 0.0)
        assert whole.train(folder / "first").code == 0  # while it is still learning to walk
        began = time.monotonic()
        assert whole.train(whole.whole).code == 0
        yield whole._replace(seconds=time.monotonic() - began)


@pytest.fixture
def out(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Path]:
    path = stage.folder / f"run-{stage.lives.count}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def halfway(stage: Stage) -> Path:
    """A run that was interrupted somewhere in the middle."""
    out = stage.folder / "halfway"
    life = stage.start(out, fault="slow")
    until(lambda: (out / "checkpoints" / "step-00000010").exists())
    life.kill(signal.SIGTERM)
    assert life.end().code == 130
    assert 10 < newest(out) < 15
    return out


@pytest.fixture
def half(halfway: Path, out: Path) -> Path:
    """The same once more, to be spoilt."""
    shutil.copytree(halfway, out)
    return out


# --- what is asserted ------------------------------------------------------------------------------------


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


ZH = {"REGARD_LANG": "zh"}


# --- killed ----------------------------------------------------------------------------------------------


def test_kills_at_random_leave_the_run_bit_equal(stage: Stage) -> None:
    rng = random.Random(4)
    kills = runs = 0
    while kills < KILLS:
        runs += 1
        out = stage.folder / f"killed-{runs}"
        saved, done = 0, False
        while not done and kills < KILLS:
            life = stage.start(out)
            time.sleep(rng.uniform(0, stage.seconds))
            life.kill()
            ended = life.end()
            assert ended.code in (0, -signal.SIGKILL), ended
            done = ended.code == 0
            kills += not done
            now = newest(out) if out.exists() else 0
            assert now >= saved
            saved = now
        ended = stage.train(out)
        assert ended.code == 0, ended
        assert_same_run(out, stage.whole)
        shutil.rmtree(out)
    print(f"{kills} kills in {runs} runs")


def test_kills_at_every_call_leave_the_run_bit_equal(stage: Stage, out: Path) -> None:
    """Killed as a file is opened, renamed or removed, or after a call of a save: some calls here, all if asked.

    Three saves are enough: the first, the second, and one after which an old checkpoint goes.
    """
    short = ("--set", "training.steps=15")
    whole = stage.folder / "short"
    total = int(stage.train(whole, *short, point=0).data)
    assert total > 300, "the points are not reached"
    points = range(1, total + 1)
    for point in points if total <= POINTS else random.Random(6).sample(points, POINTS):
        ended = stage.train(out, *short, point=point)
        assert ended.code == -signal.SIGKILL, (point, ended)
        newest(out)
        ended = stage.train(out, *short)
        assert ended.code == 0, (point, ended)
        assert_same_run(out, whole)
        shutil.rmtree(out)


def test_what_was_left_by_a_kill_in_the_last_save_is_swept(stage: Stage, out: Path) -> None:
    """No other save follows that would do it."""
    shutil.copytree(stage.whole, out)
    (out / "finished.json").unlink()
    gone = 2**22 + 7  # no process has such a number
    for name in (f"LATEST.tmp-{gone}", f"step-00000050.gone.tmp-{gone}", f"step-00000060.tmp-{gone}"):
        (out / "checkpoints" / name).write_bytes(b"")
    (out / f"run.json.tmp-{gone}").write_bytes(b"")
    (out / ".tokenizer.json.0badcafe").write_bytes(b"")
    (out / f"model.tmp-{gone}").mkdir()
    (out / f"metrics.jsonl.tmp-{gone}").write_bytes(b"")
    assert stage.train(out).code == 0
    assert_same_run(out, stage.whole)


# --- interrupted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_saves_and_loses_nothing(stage: Stage, out: Path, number: signal.Signals) -> None:
    life = stage.start(out, fault="slow")
    until(lambda: len(numbers(out)) >= 6)
    began = time.monotonic()
    life.kill(number)
    ended = life.end(30)
    assert time.monotonic() - began < 5
    assert ended.code == 130, ended
    step = newest(out)
    assert [line["step"] for line in numbers(out)] == list(range(1, step + 1))  # the very last step is there
    assert step % EVERY, "saved at its usual place, this tells nothing"
    ended = stage.train(out, env=ZH)
    assert ended.code == 0, ended
    assert f"{step}" in ended.said
    assert CHINESE.search(ended.said)
    assert_same_run(out, stage.whole)


def test_two_signals_end_it_at_once(stage: Stage, out: Path) -> None:
    life = stage.start(out, fault="slow")
    until(lambda: len(numbers(out)) >= 6)
    life.kill(signal.SIGTERM)
    time.sleep(0.01)
    life.kill(signal.SIGTERM)
    assert life.end(5).code == 130
    assert newest(out) == 5
    assert stage.train(out).code == 0
    assert_same_run(out, stage.whole)


def test_the_command_itself_leaves_on_sigterm(stage: Stage, out: Path) -> None:
    """Once without the fork: `python -m regard train`, as people start it."""
    recipe = stage.folder / "long.toml"
    recipe.write_text(RECIPE.replace("steps = 60", "steps = 100000"))
    command = [sys.executable, "-m", "regard", "train", str(recipe), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: (out / "checkpoints" / "step-00000005").exists())
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 130, said
    assert "same command" in said
    newest(out)


# --- the disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [700, 2_000, 30_000, 60_000])
def test_a_limit_on_the_size_of_files(stage: Stage, half: Path, limit: int) -> None:
    """700 stops almost everything, 2,000 the metrics or the model, 30,000 the optimizer; 60,000 is enough for all."""
    before = newest(half)
    ended = stage.train(half, limit=limit)
    if limit < 60_000:
        assert_told(ended, 5, str(half), "same command")
        assert newest(half) >= before
    assert stage.train(half).code == 0
    assert_same_run(half, stage.whole)


def test_a_limit_is_told_in_chinese(stage: Stage, out: Path) -> None:
    assert_told_in_chinese(stage.train(out, limit=700, env=ZH), 5)


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A small disk of our own."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "regard", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk(stage: Stage, out: Path) -> None:
    with mounted(out, "-o", "size=220k") as disk:
        run = disk / "run"
        ended = stage.train(run)
        assert_told(ended, 5, str(run), "free")
        saved = newest(run)
        assert saved >= EVERY
        assert_told_in_chinese(stage.train(run, env=ZH), 5)
        assert newest(run) >= saved
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        assert stage.train(run).code == 0
        assert_same_run(run, stage.whole)


def test_a_folder_that_is_read_only(stage: Stage, out: Path) -> None:
    with mounted(out) as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert_told(stage.train(disk), 3, str(disk))
        assert_told(stage.train(disk / "new"), 3, str(disk / "new"))
        assert_told_in_chinese(stage.train(disk, env=ZH), 3)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        life = stage.start(disk, fault="slow")
        until(lambda: newest(disk) >= 10)
        life.kill()
        life.end()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert_told(stage.train(disk), 3, str(disk))
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert stage.train(disk).code == 0
        assert_same_run(disk, stage.whole)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert "already" in stage.train(disk).said  # a finished run needs nothing written


def test_out_is_a_file(stage: Stage, out: Path) -> None:
    out.write_text("mine")
    assert_told(stage.train(out), 3, str(out))
    assert_told(stage.train(out / "below"), 3, str(out))
    assert_told_in_chinese(stage.train(out, env=ZH), 3)
    assert out.read_text() == "mine"
    out.unlink()


def test_out_holds_something_else(stage: Stage, out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    assert_told(stage.train(out), 3, str(out), "thesis.txt")
    assert_told_in_chinese(stage.train(out, env=ZH), 3)
    assert names(out) == ["thesis.txt"]


def test_out_is_removed_under_the_run(stage: Stage, out: Path) -> None:
    life = stage.start(out, fault="slow")
    until(lambda: len(numbers(out)) >= 6)
    out.rename(out.with_name("moved"))
    assert_told(life.end(), 3, str(out))
    assert not out.exists()
    out.with_name("moved").rename(out)
    assert stage.train(out).code == 0
    assert_same_run(out, stage.whole)


# --- damaged ---------------------------------------------------------------------------------------------


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


# --- disturbed -------------------------------------------------------------------------------------------


def test_two_runs_on_one_folder(stage: Stage, out: Path) -> None:
    life = stage.start(out, fault="slow")
    until(lambda: len(numbers(out)) >= 2)
    assert_told(stage.train(out), 3, str(out), str(life.pid))
    assert_told_in_chinese(stage.train(out, env=ZH), 3)
    assert life.end().code == 0
    assert_same_run(out, stage.whole)


def test_a_finished_run_is_left_as_it_is(stage: Stage, out: Path) -> None:
    shutil.copytree(stage.whole, out)
    before = contents(out)
    ended = stage.train(out, "--json")
    assert ended.code == 0
    assert "already" in ended.said
    about = json.loads(ended.data)
    assert about["reason"] == "already"
    assert about["step"] == STEPS
    assert "files" not in about
    assert CHINESE.search(stage.train(out, env=ZH).said)
    assert contents(out) == before


def test_another_recipe_on_the_same_folder(stage: Stage, half: Path) -> None:
    before = contents(half)
    assert_told(stage.train(half, "--set", "training.lr=0.1", "--seed", "3"), 3, "training.lr, training.seed")
    assert_told_in_chinese(stage.train(half, "--seed", "3", env=ZH), 3)
    assert contents(half) == before
    assert stage.train(half, "--set", "evaluation.beams=2").code == 0  # which does not touch the training
    assert_same_run(half, stage.whole)


def test_a_loss_that_is_not_finite_ends_the_run(stage: Stage, out: Path) -> None:
    ended = stage.train(out, fault="not-finite")
    assert_told(ended, 1, "10 steps in a row, up to step 17", "step 15 is good", "training.lr")
    lines = numbers(out)
    assert [line["step"] for line in lines if line["loss"] is None] == list(range(8, 18))
    assert [line for line in lines if line["step"] < 8] == numbers(stage.whole)[:7]
    assert len(list((out / "bad").iterdir())) == 10
    store = Store(out / "checkpoints")
    assert store.steps() == [10, 15]
    one, other = store.load(10), store.load(15)
    assert all(
        bool((one.model[name] == other.model[name]).all()) for name in one.model
    )  # left out, they change nothing
    assert_told_in_chinese(stage.train(out, fault="not-finite", env=ZH), 1)


LANGUAGE = (
    RECIPE.replace('"synthetic"', '"language"')
    .replace("max_len = 5", 'max_len = 8\ntrain = ["a.txt"]\nvalid_share = 0.2')
    .replace('"paper_2017"', '"gpt2"')
)


def test_data_that_change_under_a_run(stage: Stage, out: Path) -> None:
    puzzle = LANGUAGE.index("[puzzle]"), LANGUAGE.index("[data]")
    recipe = stage.folder / "text.toml"
    recipe.write_text(LANGUAGE[: puzzle[0]] + LANGUAGE[puzzle[1] :])
    data = stage.folder / "data"
    data.mkdir()
    text = "the quick brown fox jumps over the lazy dog. " * 30
    (data / "a.txt").write_text(text)
    arguments = ("train", recipe, "--data", data, "--out")
    whole = stage.lives.run(*arguments, stage.folder / "text-whole")
    assert whole.code == 0, whole
    life = stage.lives.start(*arguments, out, fault="slow")
    until(lambda: (out / "checkpoints" / "step-00000010").exists())
    life.kill()
    life.end()
    before = contents(out)
    for other in (text.replace("fox", "cat"), text[:600], text + "?"):  # changed, shrunk, grown
        (data / "a.txt").write_text(other)
        assert_told(stage.lives.run(*arguments, out), 3, "a.txt", "changed")
    assert_told_in_chinese(stage.lives.run(*arguments, out, env=ZH), 3)
    (data / "a.txt").unlink()
    assert_told(stage.lives.run(*arguments, out), 3, "a.txt")
    del before[str(out / "lock")]
    assert {name: found for name, found in contents(out).items() if name != str(out / "lock")} == before
    (data / "a.txt").write_text(text)
    assert stage.lives.run(*arguments, out).code == 0
    assert_same_run(out, stage.folder / "text-whole")
