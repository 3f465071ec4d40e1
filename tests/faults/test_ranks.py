"""Two processes that train together, and what becomes of the run when one of them is lost. gloo, on the CPU.

Mostly two forked children with the environment that `torchrun` would give them, which is quick; and `torchrun` itself.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from faults.lives import EVERY, RECIPE, STEPS, Ended, Life, Lives, living, until
from faults.stage import until_between_saves
from regard.training.checkpoint_store import Store
from regard.training.metrics import MetricsFile

KILLS = int(os.environ.get("REGARD_FAULTS_RANK_KILLS", "3"))
LOST = "the same command again"


class Stage(NamedTuple):
    """A folder with the recipe in it, without dropout, and the program that trains."""

    folder: Path
    lives: Lives

    def start(self, out: Path, world: int = 2, *more: str, **ways: object) -> list[Life]:
        """As many processes as a world has."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        there = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}", "WORLD_SIZE": f"{world}"}
        arguments = ("train", self.folder / "tiny.toml", "--out", out, *more)
        return [
            self.lives.start(*arguments, env=there | {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}"}, **ways)
            for rank in range(world)
        ]

    def train(self, out: Path, world: int = 2, **ways: object) -> list[Ended]:
        return [life.end() for life in self.start(out, world, **ways)]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as name, living(Path(name)) as lives:
        folder = Path(name)
        (folder / "tiny.toml").write_text(RECIPE.replace("dropout = 0.1", "dropout = 0.0"))
        yield Stage(folder, lives)


@pytest.fixture(scope="module")
def pair(stage: Stage) -> Path:
    """What two processes make of it when nothing happens."""
    out = stage.folder / "pair"
    assert [ended.code for ended in stage.train(out)] == [0, 0]
    return out


@pytest.fixture
def out(stage: Stage) -> Iterator[Path]:
    path = stage.folder / f"run-{stage.lives.count}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


def losses(out: Path) -> list[float]:
    lines = MetricsFile(out / "metrics.jsonl").read()
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    return [line["loss"] for line in lines]


def assert_close_runs(one: Path, other: Path) -> None:
    """All losses nearly equal: sums are taken in another order, nothing else."""
    assert len(losses(one)) == STEPS
    np.testing.assert_allclose(losses(one), losses(other), rtol=2e-5)


def assert_same_bits(one: Path, other: Path) -> None:
    assert losses(one) == losses(other)
    model = Path("model") / "model.safetensors"
    assert (one / model).read_bytes() == (other / model).read_bytes()


def newest(out: Path) -> int:
    return max(Store(out / "checkpoints").steps(), default=0)


# --- together --------------------------------------------------------------------------------------------


def test_one_process_and_two_have_the_same_losses(stage: Stage, pair: Path, out: Path) -> None:
    (ended,) = stage.train(out, world=1)
    assert ended.code == 0
    assert_close_runs(out, pair)


def test_a_run_goes_on_with_another_number_of_processes(stage: Stage, pair: Path, out: Path) -> None:
    for world, step in ((1, 10), (2, 25)):
        lives = stage.start(out, world, fault="slow")
        until(lambda step=step: newest(out) >= step)
        for life in lives:
            life.kill(signal.SIGTERM)
        assert {life.end().code for life in lives} == {130}
    assert [ended.code for ended in stage.train(out, world=1)] == [0]
    assert_close_runs(out, pair)


def test_one_process_asked_to_stop_stops_all(stage: Stage, pair: Path, out: Path) -> None:
    lives = stage.start(out, fault="slow")
    until(lambda: newest(out) >= EVERY)
    lives[1].kill(signal.SIGTERM)
    assert [life.end(30).code for life in lives] == [130, 130]
    assert len(losses(out)) == newest(out)
    assert [ended.code for ended in stage.train(out)] == [0, 0]
    assert_same_bits(out, pair)


def test_a_finished_run_is_left_by_all(stage: Stage, pair: Path) -> None:
    first, second = stage.train(pair)
    assert first.code == second.code == 0
    assert "already" in first.said
    assert second.said == ""  # one speaks for all


# --- lost ------------------------------------------------------------------------------------------------


def test_a_killed_process_ends_the_others_with_a_sentence_and_the_run_goes_on(stage: Stage, pair: Path) -> None:
    rng = random.Random(11)
    for n in range(KILLS):
        out, rank = stage.folder / f"killed-{n}", n % 2
        lives = stage.start(out, 2, "--lang", "zh" if rank else "en", fault="slow")
        until(lambda out=out: newest(out) >= EVERY)
        time.sleep(rng.uniform(0, 0.6))
        began = time.monotonic()
        lives[rank].kill()
        assert lives[rank].end().code == -signal.SIGKILL
        left = lives[1 - rank].end(30)
        assert time.monotonic() - began < 30
        assert left.code == 1, left
        assert ("再次运行同一命令" if rank else LOST) in left.said.splitlines()[-1], left.said
        assert "Traceback" not in left.said
        assert [ended.code for ended in stage.train(out)] == [0, 0]
        assert_same_bits(out, pair)
        shutil.rmtree(out)


def test_a_process_that_stands_still_is_given_up(stage: Stage, out: Path) -> None:
    """Within a step, and when it does not come to where the first one has saved."""
    lives = stage.start(out, 2, "--timeout", "3", fault="slow")
    until_between_saves(out)
    lives[1].kill(signal.SIGSTOP)
    try:
        left = lives[0].end(30)
    finally:
        lives[1].kill()
        lives[1].end()
    assert left.code == 1, left
    assert LOST in left.said.splitlines()[-1], left.said


def test_what_stops_the_first_process_is_told_and_the_others_do_not_wait(stage: Stage, out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    began = time.monotonic()
    first, second = stage.train(out)
    assert time.monotonic() - began < 30
    assert first.code == second.code == 3
    assert "thesis.txt" in first.said


def test_two_processes_stopped_near_the_end_leave_soon(stage: Stage, pair: Path, out: Path) -> None:
    """Around the last steps, the last save and the writing of the model; the run can go on, or is whole."""
    chance = random.Random(0)
    for _ in range(max(1, KILLS // 3)):
        lives = stage.start(out, fault="slow")
        until(lambda: newest(out) >= STEPS - EVERY)
        time.sleep(chance.uniform(0, 0.8))
        for life in lives:
            life.kill(chance.choice((signal.SIGTERM, signal.SIGINT)))
        codes = [life.end(40).code for life in lives]
        assert all(code in (0, 1, 130, -signal.SIGTERM, -signal.SIGINT) for code in codes), codes
        assert [ended.code for ended in stage.train(out)] == [0, 0]
        assert_same_bits(out, pair)
        shutil.rmtree(out)


# --- torchrun itself -------------------------------------------------------------------------------------


@contextmanager
def torchrun(stage: Stage, out: Path, *options: str, steps: int = STEPS) -> Iterator[subprocess.Popen[str]]:
    recipe = stage.folder / f"steps-{steps}.toml"
    recipe.write_text((stage.folder / "tiny.toml").read_text().replace("steps = 60", f"steps = {steps}"))
    program = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options]
    command = [sys.executable, *program, "-m", "regard", "train", str(recipe), "--out", str(out)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()  # where a test has failed; torchrun then ends its children


def a_worker(process: subprocess.Popen[str]) -> int:
    """The second of the processes that torchrun has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[-1])


NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="without /proc nobody tells us torchrun's children"
)


@pytest.mark.long  # waits for torchrun, twenty seconds
@NEEDS_PROC
def test_torchrun_starts_a_lost_process_again(stage: Stage, out: Path) -> None:
    with torchrun(stage, out, "--max-restarts", "1", steps=300) as process:
        until(lambda: newest(out) >= 50)
        os.kill(a_worker(process), signal.SIGKILL)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    assert LOST in said
    assert "going on from step" in said
    assert len(losses(out)) == 300


@pytest.mark.long
@NEEDS_PROC
def test_torchrun_ends_when_a_process_is_lost_and_goes_on_when_asked_again(stage: Stage, out: Path) -> None:
    with torchrun(stage, out, steps=100_000) as process:
        until(lambda: newest(out) >= 50)
        began = time.monotonic()
        os.kill(a_worker(process), signal.SIGKILL)
        said = process.communicate(timeout=60)[1]
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    assert LOST in said, said
    saved = newest(out)
    with torchrun(stage, out, steps=100_000) as process:
        until(lambda: newest(out) > saved)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert newest(out) == len(losses(out))


@pytest.mark.long
def test_sigterm_to_torchrun_saves(stage: Stage, out: Path) -> None:
    with torchrun(stage, out, steps=100_000) as process:
        until(lambda: newest(out) >= 20)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    assert "same command" in said, said
    assert newest(out) == len(losses(out))


@pytest.mark.long
def test_torchrun_gives_what_two_processes_give(stage: Stage, pair: Path, out: Path) -> None:
    with torchrun(stage, out) as process:
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    assert_same_bits(out, pair)
