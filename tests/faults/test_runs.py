"""Faults in complete runs by the command line: killed, interrupted, disk full, disturbed.

REGARD_FAULTS_KILLS and REGARD_FAULTS_POINTS set the number of kills and of tested calls.
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

from faults.fault_setup import (
    CHINESE,
    ZH,
    Setup,
    assert_error,
    assert_error_in_chinese,
    assert_same_run,
    contents,
    names,
    newest,
    numbers,
    wait_until_between_saves,
)
from faults.fork_server import EVERY, RECIPE, STEPS, wait_until
from regard.training.checkpoint_store import CheckpointStore

pytestmark = pytest.mark.long  # whole runs that are killed: `make test-long` and `make test-faults`

KILLS = int(os.environ.get("REGARD_FAULTS_KILLS", "16"))
POINTS = int(os.environ.get("REGARD_FAULTS_POINTS", "12"))


# --- killed ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_run_is_identical_after_random_kills(setup: Setup) -> None:
    rng = random.Random(4)
    kills = runs = 0
    while kills < KILLS:
        runs += 1
        out = setup.folder / f"killed-{runs}"
        saved, done = 0, False
        while not done and kills < KILLS:
            child = setup.start(out)
            time.sleep(rng.uniform(0, setup.seconds))
            child.kill()
            result = child.end()
            assert result.code in (0, -signal.SIGKILL), result
            done = result.code == 0
            kills += not done
            now = newest(out) if out.exists() else 0
            assert now >= saved
            saved = now
        result = setup.train(out)
        assert result.code == 0, result
        assert_same_run(out, setup.reference)
        shutil.rmtree(out)
    print(f"{kills} kills in {runs} runs")


@pytest.mark.long
def test_run_is_identical_after_a_kill_at_every_call(setup: Setup, out: Path) -> None:
    """Killed when a file is opened, renamed or removed, or after a call of a save: some calls, or all on request.

    Three saves are enough: the first, the second, and one that removes an old checkpoint.
    """
    short = ("--set", "training.steps=15")
    reference = setup.folder / "short"
    total = int(setup.train(reference, *short, point=0).data)
    assert total > 300, "the points are not reached"
    points = range(1, total + 1)
    for point in points if total <= POINTS else random.Random(6).sample(points, POINTS):
        result = setup.train(out, *short, point=point)
        assert result.code == -signal.SIGKILL, (point, result)
        newest(out)
        result = setup.train(out, *short)
        assert result.code == 0, (point, result)
        assert_same_run(out, reference)
        shutil.rmtree(out)


def test_leftovers_of_a_kill_in_the_last_save_are_removed(setup: Setup, out: Path) -> None:
    """No later save would remove it."""
    shutil.copytree(setup.reference, out)
    (out / "finished.json").unlink()
    gone = 2**22 + 7  # larger than any process id
    for name in (f"LATEST.tmp-{gone}", f"step-00000050.gone.tmp-{gone}", f"step-00000060.tmp-{gone}"):
        (out / "checkpoints" / name).write_bytes(b"")
    (out / f"run.json.tmp-{gone}").write_bytes(b"")
    (out / ".tokenizer.json.0badcafe").write_bytes(b"")
    (out / f"model.tmp-{gone}").mkdir()
    (out / f"metrics.jsonl.tmp-{gone}").write_bytes(b"")
    assert setup.train(out).code == 0
    assert_same_run(out, setup.reference)


# --- interrupted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signal_saves_without_loss(setup: Setup, out: Path, number: signal.Signals) -> None:
    child = setup.start(out, fault="slow")
    wait_until_between_saves(out)
    began = time.monotonic()
    child.kill(number)
    result = child.end(30)
    assert time.monotonic() - began < 5
    assert result.code == 130, result
    step = newest(out)
    assert [line["step"] for line in numbers(out)] == list(range(1, step + 1))  # the last step is included
    assert step % EVERY, "invalid test: it stopped at a regular save"
    result = setup.train(out, env=ZH)
    assert result.code == 0, result
    assert f"{step}" in result.output
    assert CHINESE.search(result.output)
    assert_same_run(out, setup.reference)


def test_two_signals_end_the_run_at_once(setup: Setup, out: Path) -> None:
    child = setup.start(out, fault="slow")
    wait_until_between_saves(out)
    child.kill(signal.SIGTERM)
    time.sleep(0.01)
    child.kill(signal.SIGTERM)
    assert child.end(5).code == 130
    assert newest(out) == 5
    assert setup.train(out).code == 0
    assert_same_run(out, setup.reference)


def test_command_ends_on_sigterm(setup: Setup, out: Path) -> None:
    """Without the fork server: `python -m regard train`, as users start it."""
    recipe = setup.folder / "long.toml"
    recipe.write_text(RECIPE.replace("steps = 60", "steps = 100000"))
    command = [sys.executable, "-m", "regard", "train", str(recipe), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (out / "checkpoints" / "step-00000005").exists())
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=30)[1]
    assert process.returncode == 130, output
    assert "same command" in output
    newest(out)


# --- the disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [700, 2_000, 30_000, 60_000])
def test_limited_file_size(setup: Setup, half: Path, limit: int) -> None:
    """700 stops almost every file, 2,000 the metrics or the model, 30,000 the optimizer; 60,000 is enough for all."""
    before = newest(half)
    result = setup.train(half, limit=limit)
    if limit < 60_000:
        assert_error(result, 5, str(half), "same command")
        assert newest(half) >= before
    assert setup.train(half).code == 0
    assert_same_run(half, setup.reference)


def test_limit_message_in_chinese(setup: Setup, out: Path) -> None:
    assert_error_in_chinese(setup.train(out, limit=700, env=ZH), 5)


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mount a small tmpfs."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "regard", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_full_disk(setup: Setup, out: Path) -> None:
    with mounted(out, "-o", "size=220k") as disk:
        run = disk / "run"
        result = setup.train(run)
        assert_error(result, 5, str(run), "free")
        saved = newest(run)
        assert saved >= EVERY
        assert_error_in_chinese(setup.train(run, env=ZH), 5)
        assert newest(run) >= saved
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        assert setup.train(run).code == 0
        assert_same_run(run, setup.reference)


def test_read_only_folder(setup: Setup, out: Path) -> None:
    with mounted(out) as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert_error(setup.train(disk), 3, str(disk))
        assert_error(setup.train(disk / "new"), 3, str(disk / "new"))
        assert_error_in_chinese(setup.train(disk, env=ZH), 3)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        child = setup.start(disk, fault="slow")
        wait_until(lambda: newest(disk) >= 10)
        child.kill()
        child.end()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert_error(setup.train(disk), 3, str(disk))
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert setup.train(disk).code == 0
        assert_same_run(disk, setup.reference)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert "already" in setup.train(disk).output  # a finished run writes nothing


def test_out_is_a_file(setup: Setup, out: Path) -> None:
    out.write_text("mine")
    assert_error(setup.train(out), 3, str(out))
    assert_error(setup.train(out / "below"), 3, str(out))
    assert_error_in_chinese(setup.train(out, env=ZH), 3)
    assert out.read_text() == "mine"
    out.unlink()


def test_out_holds_something_else(setup: Setup, out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    assert_error(setup.train(out), 3, str(out), "thesis.txt")
    assert_error_in_chinese(setup.train(out, env=ZH), 3)
    assert names(out) == ["thesis.txt"]


def test_out_is_removed_under_the_run(setup: Setup, out: Path) -> None:
    child = setup.start(out, fault="slow")
    wait_until_between_saves(out)
    out.rename(out.with_name("moved"))
    assert_error(child.end(), 3, str(out))
    assert not out.exists()
    out.with_name("moved").rename(out)
    assert setup.train(out).code == 0
    assert_same_run(out, setup.reference)


# --- disturbed -------------------------------------------------------------------------------------------


def test_two_runs_on_one_folder(setup: Setup, out: Path) -> None:
    child = setup.start(out, fault="slow")
    wait_until(lambda: len(numbers(out)) >= 2)
    assert_error(setup.train(out), 3, str(out), str(child.pid))
    assert_error_in_chinese(setup.train(out, env=ZH), 3)
    assert child.end().code == 0
    assert_same_run(out, setup.reference)


def test_finished_run_is_unchanged(setup: Setup, out: Path) -> None:
    shutil.copytree(setup.reference, out)
    before = contents(out)
    result = setup.train(out, "--json")
    assert result.code == 0
    assert "already" in result.output
    about = json.loads(result.data)
    assert about["reason"] == "already"
    assert about["step"] == STEPS
    assert "files" not in about
    assert CHINESE.search(setup.train(out, env=ZH).output)
    assert contents(out) == before


def test_another_recipe_on_the_same_folder(setup: Setup, half: Path) -> None:
    before = contents(half)
    assert_error(setup.train(half, "--set", "training.lr=0.1", "--seed", "3"), 3, "training.lr, training.seed")
    assert_error_in_chinese(setup.train(half, "--seed", "3", env=ZH), 3)
    assert contents(half) == before
    assert setup.train(half, "--set", "evaluation.beams=2").code == 0  # does not affect training
    assert_same_run(half, setup.reference)


def test_non_finite_loss_ends_the_run(setup: Setup, out: Path) -> None:
    result = setup.train(out, fault="not-finite")
    assert_error(result, 1, "10 steps in a row, up to step 17", "step 15 is good", "training.lr")
    lines = numbers(out)
    assert [line["step"] for line in lines if line["loss"] is None] == list(range(8, 18))
    assert [line for line in lines if line["step"] < 8] == numbers(setup.reference)[:7]
    assert len(list((out / "bad").iterdir())) == 10
    store = CheckpointStore(out / "checkpoints")
    assert store.steps() == [10, 15]
    one, other = store.load(10), store.load(15)
    assert all(bool((one.model[name] == other.model[name]).all()) for name in one.model)  # skipped steps change nothing
    assert_error_in_chinese(setup.train(out, fault="not-finite", env=ZH), 1)


LANGUAGE = (
    RECIPE.replace('"synthetic"', '"language"')
    .replace("max_len = 5", 'max_len = 8\ntrain = ["a.txt"]\nvalid_share = 0.2')
    .replace('"paper_2017"', '"gpt2"')
)


def test_changed_data_raise(setup: Setup, out: Path) -> None:
    puzzle = LANGUAGE.index("[puzzle]"), LANGUAGE.index("[data]")
    recipe = setup.folder / "text.toml"
    recipe.write_text(LANGUAGE[: puzzle[0]] + LANGUAGE[puzzle[1] :])
    data = setup.folder / "data"
    data.mkdir()
    text = "the quick brown fox jumps over the lazy dog. " * 30
    (data / "a.txt").write_text(text)
    arguments = ("train", recipe, "--data", data, "--out")
    reference = setup.server.run(*arguments, setup.folder / "text-reference")
    assert reference.code == 0, reference
    child = setup.server.start(*arguments, out, fault="slow")
    wait_until(lambda: (out / "checkpoints" / "step-00000010").exists())
    child.kill()
    child.end()
    before = contents(out)
    for other in (text.replace("fox", "cat"), text[:600], text + "?"):  # changed, shrunk, grown
        (data / "a.txt").write_text(other)
        assert_error(setup.server.run(*arguments, out), 3, "a.txt", "changed")
    assert_error_in_chinese(setup.server.run(*arguments, out, env=ZH), 3)
    (data / "a.txt").unlink()
    assert_error(setup.server.run(*arguments, out), 3, "a.txt")
    del before[str(out / "lock")]
    assert {name: found for name, found in contents(out).items() if name != str(out / "lock")} == before
    (data / "a.txt").write_text(text)
    assert setup.server.run(*arguments, out).code == 0
    assert_same_run(out, setup.folder / "text-reference")
