"""Whole runs under fire, through the command line: killed, interrupted, out of disk, disturbed.

REGARD_FAULTS_KILLS and REGARD_FAULTS_POINTS ask for more of everything.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.lives import EVERY, RECIPE, STEPS, until
from faults.stage import (
    CHINESE,
    ZH,
    Stage,
    assert_same_run,
    assert_told,
    assert_told_in_chinese,
    contents,
    names,
    newest,
    numbers,
    until_between_saves,
)
from regard.training.checkpoint_store import Store

KILLS = int(os.environ.get("REGARD_FAULTS_KILLS", "16"))
POINTS = int(os.environ.get("REGARD_FAULTS_POINTS", "12"))


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
    until_between_saves(out)
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
    until_between_saves(out)
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
    until_between_saves(out)
    out.rename(out.with_name("moved"))
    assert_told(life.end(), 3, str(out))
    assert not out.exists()
    out.with_name("moved").rename(out)
    assert stage.train(out).code == 0
    assert_same_run(out, stage.whole)


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
