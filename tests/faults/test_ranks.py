"""Two processes that train together, and the run after one of them is lost. gloo, on the CPU.

Most tests fork two children with the environment that `torchrun` would set, which is fast; some use `torchrun` itself.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from faults.fault_setup import wait_until_between_saves
from faults.fork_server import EVERY, RECIPE, STEPS, Child, ChildResult, ForkServer, fork_server, wait_until
from regard.training.checkpoint_store import CheckpointStore
from regard.training.metrics import MetricsFile

pytestmark = pytest.mark.long  # whole runs that are killed: `make test-long` and `make test-faults`

DIVIDED = ("--set", "training.shard=true")
IMPORTS = ("torch.distributed.fsdp", "regard.training.sharded_store")
"""What a divided run imports."""
KILLS = int(os.environ.get("REGARD_FAULTS_RANK_KILLS", "3"))
LOST = "the same command again"


class Setup(NamedTuple):
    """A folder with the recipe, without dropout, and the fork server."""

    folder: Path
    server: ForkServer

    def start(
        self, out: Path, world: int = 2, *more: str, ranks: Mapping[int, Mapping[str, object]] = {}, **options: object
    ) -> list[Child]:
        """Start `world` processes. Options are those of `ForkServer.start`; `ranks` has those of single processes."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        there = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}", "WORLD_SIZE": f"{world}"}
        arguments: tuple[str | Path, ...] = ("train", self.folder / "tiny.toml", "--out", out, *more)
        return [
            self.server.start(
                *arguments,
                env=there | {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}"},
                **{**options, **ranks.get(rank, {})},
            )
            for rank in range(world)
        ]

    def train(self, out: Path, world: int = 2, *more: str, **options: Any) -> list[ChildResult]:
        return [child.end() for child in self.start(out, world, *more, **options)]


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as name, fork_server(Path(name), *IMPORTS) as server:
        folder = Path(name)
        (folder / "tiny.toml").write_text(RECIPE.replace("dropout = 0.1", "dropout = 0.0"))
        yield Setup(folder, server)


@pytest.fixture(scope="module")
def pair(setup: Setup) -> Path:
    """An undisturbed run of two processes."""
    out = setup.folder / "pair"
    assert [result.code for result in setup.train(out)] == [0, 0]
    return out


@pytest.fixture
def out(setup: Setup) -> Iterator[Path]:
    path = setup.folder / f"run-{setup.server.count}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


def losses(out: Path) -> list[float]:
    lines = MetricsFile(out / "metrics.jsonl").read()
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    return [line["loss"] for line in lines]


def assert_close_runs(one: Path, other: Path) -> None:
    """Assert nearly equal losses: only the order of summation differs."""
    assert len(losses(one)) == STEPS
    np.testing.assert_allclose(losses(one), losses(other), rtol=2e-5)


def assert_same_bits(one: Path, other: Path) -> None:
    assert losses(one) == losses(other)
    model = Path("model") / "model.safetensors"
    assert (one / model).read_bytes() == (other / model).read_bytes()


def newest(out: Path) -> int:
    return max(CheckpointStore(out / "checkpoints").steps(), default=0)


def reached(out: Path, step: int) -> bool:
    return newest(out) >= step


# --- two processes ---------------------------------------------------------------------------------------


def test_one_process_and_two_have_the_same_losses(setup: Setup, pair: Path, out: Path) -> None:
    (result,) = setup.train(out, world=1)
    assert result.code == 0
    assert_close_runs(out, pair)


@pytest.mark.long
def test_run_continues_with_another_number_of_processes(setup: Setup, pair: Path, out: Path) -> None:
    for world, step in ((1, 10), (2, 25)):
        server = setup.start(out, world, fault="slow")
        wait_until(partial(reached, out, step))
        for child in server:
            child.kill(signal.SIGTERM)
        assert {child.end().code for child in server} == {130}
    assert [result.code for result in setup.train(out, world=1)] == [0]
    assert_close_runs(out, pair)


def test_stop_request_of_one_process_stops_all(setup: Setup, pair: Path, out: Path) -> None:
    server = setup.start(out, fault="slow")
    wait_until(lambda: newest(out) >= EVERY)
    server[1].kill(signal.SIGTERM)
    assert [child.end(30).code for child in server] == [130, 130]
    assert len(losses(out)) == newest(out)
    assert [result.code for result in setup.train(out)] == [0, 0]
    assert_same_bits(out, pair)


def test_finished_run_ends_in_all_processes(setup: Setup, pair: Path) -> None:
    first, second = setup.train(pair)
    assert first.code == second.code == 0
    assert "already" in first.output
    assert second.output == ""  # only one process writes output


# --- lost processes --------------------------------------------------------------------------------------


@pytest.mark.long
def test_killed_process_ends_the_others_and_the_run_continues(setup: Setup, pair: Path) -> None:
    rng = random.Random(11)
    for n in range(KILLS):
        out, rank = setup.folder / f"killed-{n}", n % 2
        server = setup.start(out, 2, "--lang", "zh" if rank else "en", fault="slow")
        wait_until(partial(reached, out, EVERY))
        time.sleep(rng.uniform(0, 0.6))
        began = time.monotonic()
        server[rank].kill()
        assert server[rank].end().code == -signal.SIGKILL
        left = server[1 - rank].end(30)
        assert time.monotonic() - began < 30
        assert left.code == 1, left
        assert ("再次运行同一命令" if rank else LOST) in left.output.splitlines()[-1], left.output
        assert "Traceback" not in left.output
        assert [result.code for result in setup.train(out)] == [0, 0]
        assert_same_bits(out, pair)
        shutil.rmtree(out)


@pytest.mark.long
def test_hanging_process_is_given_up(setup: Setup, out: Path) -> None:
    """Within a step, and at the barrier after a save."""
    server = setup.start(out, 2, "--timeout", "3", fault="slow")
    wait_until_between_saves(out)
    server[1].kill(signal.SIGSTOP)
    try:
        left = server[0].end(30)
    finally:
        server[1].kill()
        server[1].end()
    assert left.code == 1, left
    assert LOST in left.output.splitlines()[-1], left.output


def test_error_of_the_first_process_ends_the_others(setup: Setup, out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    began = time.monotonic()
    first, second = setup.train(out)
    assert time.monotonic() - began < 30
    assert first.code == second.code == 3
    assert "thesis.txt" in first.output


@pytest.mark.long
def test_two_processes_stopped_near_the_end(setup: Setup, pair: Path, out: Path) -> None:
    """Around the last steps, the last save and the writing of the model; the run can continue, or is complete."""
    chance = random.Random(0)
    for _ in range(max(1, KILLS // 3)):
        server = setup.start(out, fault="slow")
        wait_until(lambda: newest(out) >= STEPS - EVERY)
        time.sleep(chance.uniform(0, 0.8))
        for child in server:
            child.kill(chance.choice((signal.SIGTERM, signal.SIGINT)))
        codes = [child.end(40).code for child in server]
        assert all(code in (0, 1, 130, -signal.SIGTERM, -signal.SIGINT) for code in codes), codes
        assert [result.code for result in setup.train(out)] == [0, 0]
        assert_same_bits(out, pair)
        shutil.rmtree(out)


# --- a divided model -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def divided(setup: Setup) -> Path:
    """An undisturbed run of two processes that divide the model."""
    out = setup.folder / "divided"
    assert [result.code for result in setup.train(out, 2, *DIVIDED)] == [0, 0]
    return out


def test_divided_model_has_the_losses_of_copies(pair: Path, divided: Path) -> None:
    assert_close_runs(divided, pair)
    assert (divided / "checkpoints" / f"step-{STEPS:08d}" / "shard-00002-of-00002.safetensors").is_file()


def test_divided_model_is_evaluated_and_plotted(setup: Setup, divided: Path) -> None:
    for command in ("evaluate", "plot"):
        result = setup.server.run(command, divided)
        assert result.code == 0, result.output
    assert "held out" in setup.server.run("evaluate", divided).data


def test_divided_model_saves_a_film(setup: Setup, pair: Path, out: Path) -> None:
    film = ("--film", "--set", "film.text=abc", "--set", "film.every=30")
    assert [result.code for result in setup.train(out, 2, *DIVIDED, *film)] == [0, 0]
    assert sorted(path.name for path in (out / "film").iterdir()) == [
        f"step-{step:08d}.safetensors" for step in (0, 30, 60)
    ]


def test_divided_run_continues_with_another_number_of_processes(setup: Setup, divided: Path, out: Path) -> None:
    for world, step in ((2, 10), (1, 25), (3, 40)):
        server = setup.start(out, world, *DIVIDED, fault="slow")
        wait_until(partial(reached, out, step))
        for child in server:
            child.kill(signal.SIGTERM)
        assert {child.end().code for child in server} == {130}
    assert [result.code for result in setup.train(out, 2, *DIVIDED)] == [0, 0]
    assert_close_runs(out, divided)


def test_killed_process_of_a_divided_run_and_the_run_continues(setup: Setup, divided: Path) -> None:
    """Killed at any moment: in a step, or while parts of a checkpoint are written."""
    rng = random.Random(12)
    for n in range(KILLS):
        out, rank = setup.folder / f"divided-{n}", n % 2
        server = setup.start(out, 2, *DIVIDED, fault="slow")
        wait_until(partial(reached, out, EVERY))
        time.sleep(rng.uniform(0, 0.6))
        server[rank].kill()
        assert server[rank].end().code == -signal.SIGKILL
        left = server[1 - rank].end(30)
        assert left.code == 1, left
        assert LOST in left.output.splitlines()[-1], left.output
        assert [result.code for result in setup.train(out, 2, *DIVIDED)] == [0, 0]
        assert_same_bits(out, divided)
        assert not list(out.rglob("*.tmp-*"))
        shutil.rmtree(out)


@pytest.mark.parametrize("call", [40, 60])
def test_process_of_a_divided_run_killed_while_it_writes(setup: Setup, divided: Path, out: Path, call: int) -> None:
    """The second process is killed at a system call of a save; the parts that are there are never half a checkpoint."""
    server = setup.start(out, 2, *DIVIDED, ranks={1: {"point": call}})
    assert server[1].end().code == -signal.SIGKILL
    assert server[0].end(30).code == 1
    assert [result.code for result in setup.train(out, 2, *DIVIDED)] == [0, 0]
    assert_same_bits(out, divided)


# --- torchrun itself -------------------------------------------------------------------------------------


@contextmanager
def torchrun(setup: Setup, out: Path, *options: str, steps: int = STEPS) -> Iterator[subprocess.Popen[str]]:
    recipe = setup.folder / f"steps-{steps}.toml"
    recipe.write_text((setup.folder / "tiny.toml").read_text().replace("steps = 60", f"steps = {steps}"))
    program = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options]
    command = [sys.executable, *program, "-m", "regard", "train", str(recipe), "--out", str(out)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()  # after a failed test; torchrun then ends its children


def a_worker(process: subprocess.Popen[str]) -> int:
    """The second process that torchrun started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[-1])


NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="torchrun's children are found in /proc")


@pytest.mark.long  # waits for torchrun, twenty seconds
@NEEDS_PROC
def test_torchrun_restarts_a_lost_process(setup: Setup, out: Path) -> None:
    with torchrun(setup, out, "--max-restarts", "1", steps=300) as process:
        wait_until(lambda: newest(out) >= 50)
        os.kill(a_worker(process), signal.SIGKILL)
        output = process.communicate(timeout=60)[1]
    assert process.returncode == 0, output
    assert LOST in output
    assert "going on from step" in output
    assert len(losses(out)) == 300


@pytest.mark.long
@NEEDS_PROC
def test_torchrun_ends_when_a_process_is_lost_and_can_be_repeated(setup: Setup, out: Path) -> None:
    with torchrun(setup, out, steps=100_000) as process:
        wait_until(lambda: newest(out) >= 50)
        began = time.monotonic()
        os.kill(a_worker(process), signal.SIGKILL)
        output = process.communicate(timeout=60)[1]
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    assert LOST in output, output
    saved = newest(out)
    with torchrun(setup, out, steps=100_000) as process:
        wait_until(lambda: newest(out) > saved)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert newest(out) == len(losses(out))


@pytest.mark.long
def test_sigterm_to_torchrun_saves(setup: Setup, out: Path) -> None:
    with torchrun(setup, out, steps=100_000) as process:
        wait_until(lambda: newest(out) >= 20)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=60)[1]
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    assert "same command" in output, output
    assert newest(out) == len(losses(out))


@pytest.mark.long
def test_torchrun_equals_two_forked_processes(setup: Setup, pair: Path, out: Path) -> None:
    with torchrun(setup, out) as process:
        output = process.communicate(timeout=120)[1]
    assert process.returncode == 0, output
    assert_same_bits(out, pair)
