"""Checkpoints after kills at every system call and at any moment, after flipped bits, and with limited file sizes.

torch takes seconds to import, so this file runs itself once per test, as a program that forks a child for every kill.
REGARD_FAULTS_KILLS and REGARD_FAULTS_FLIPS set the number of kills and flipped bits.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from regard.errors import FileError, TooLargeError
from regard.training import checkpoint_store, run_files
from regard.training.checkpoint_store import CheckpointStore, Snapshot

KILLS = int(os.environ.get("REGARD_FAULTS_KILLS", "20"))
FLIPS = int(os.environ.get("REGARD_FAULTS_FLIPS", "48"))

CASES: tuple[tuple[tuple[int, ...], int], ...] = (((), 10), ((10,), 20), ((10, 20), 30), ((10, 20), 20), ((10, 20), 15))
"""Steps on the disk and the one being saved: a later step, the same step again, and an earlier one."""


def snapshot(step: int) -> Snapshot:
    return Snapshot(step, {"w": torch.full((40, 5), float(step))}, {"m": torch.full((3,), -1.0 * step)}, {"at": step})


def check(store: CheckpointStore, allowed: set[int | None]) -> int | None:
    """The newest step. Asserts that it is complete and allowed, and that a sweep leaves no partial files."""
    found, skipped = store.newest()
    assert not skipped, [str(reason) for _, reason in skipped]
    step = None if found is None else found.step
    assert step in allowed, f"{step} is not one of {allowed}"
    if found is not None:
        expected = snapshot(found.step)
        assert torch.equal(found.model["w"], expected.model["w"])
        assert torch.equal(found.optimizer["m"], expected.optimizer["m"])
        assert found.state == expected.state
    if store.folder.is_dir():
        store.sweep()
        left = [path.name for path in store.folder.iterdir() if "tmp" in path.name]
        assert not left, left
    return step


@contextmanager
def forked(act: Callable[[int], object]) -> Iterator[tuple[int, int]]:
    """Fork a child that calls `act(pipe)`: its process id and the other end of the pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            act(writer)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    try:
        yield child, reader
    finally:
        os.close(reader)


# --- the program -----------------------------------------------------------------------------------------


def kill_at_points(folder: Path) -> None:
    """Fork one child for each system call of a save, killed right after it."""
    for number, (before, step) in enumerate(CASES):
        ready = CheckpointStore(folder / f"{number}")
        for earlier in before:
            ready.save(snapshot(earlier))
        calls = 0
        while kill_at_point(CheckpointStore(folder / f"{number}-{calls}"), ready, before, step, calls):
            calls += 1
        print(f"{step} after {before}: killed after each of {calls} calls")
        assert calls > 20


def kill_at_point(store: CheckpointStore, ready: CheckpointStore, before: tuple[int, ...], step: int, n: int) -> bool:
    """Whether the n-th call was reached. Asserts that the checkpoints on the disk are complete."""
    if before:
        shutil.copytree(ready.folder, store.folder)
    calls = iter(range(n, -1, -1))

    def save(_: int) -> None:
        def kill_at_last(call: str) -> None:
            if not next(calls):
                os.kill(os.getpid(), signal.SIGKILL)

        run_files.fault_point = kill_at_last
        store.save(snapshot(step))

    with forked(save) as (child, _):
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    allowed = {step, before[-1] if before else None}
    if before and step <= before[-1]:
        allowed.add(
            before[-2]
        )  # not a later step: between removal of the old and rename of the new, the one before is the newest
    check(store, allowed if code else {step})
    store.save(snapshot(40))  # the run continues
    check(store, {40})
    return code != 0


def kill_at_random(folder: Path) -> None:
    """A run in one folder, killed at any moment and restarted."""
    store = CheckpointStore(folder / "checkpoints")
    reached = 0

    def save(pipe: int) -> None:
        for step in range(reached + 1, reached + 1000):
            store.save(snapshot(step))
            os.write(pipe, step.to_bytes(4, "big"))

    rng = random.Random(4)
    for _ in range(KILLS):
        with forked(save) as (child, pipe):
            time.sleep(rng.uniform(0, 0.06))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            message = os.read(pipe, 2**16)
        last = int.from_bytes(message[-4:], "big") if message else reached
        reached = check(store, {last or None, last + 1}) or 0
    assert reached > KILLS // 4, f"only {reached} checkpoints after {KILLS} kills"
    print(f"{KILLS} kills, {reached} checkpoints")


def refuse(folder: Path) -> None:
    """Saving with a limited file size, and in a folder without write permission."""
    store = CheckpointStore(folder / "checkpoints")
    for step in (10, 20):
        store.save(snapshot(step))

    def grow(limit: int, kind: type[Exception]) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        refused(store, kind, "File too large")

    def trespass(_: int) -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        refused(store, FileError, "Permission denied")

    for limit in (0, 1, 20, 100, 500, 850):
        run(lambda _, limit=limit: grow(limit, TooLargeError))  # type: ignore[misc]
        check(store, {20})
    folder.chmod(0o755)  # readable by others, unlike pytest's folders
    store.folder.chmod(0o555)
    run(trespass)
    store.folder.chmod(0o755)
    check(store, {20})


def refused(store: CheckpointStore, kind: type[Exception], reason: str) -> None:
    """Assert that saving raises this error and leaves no files."""
    before = sorted(store.folder.iterdir())
    try:
        store.save(snapshot(30))
        message = "it was saved"
    except kind as error:
        message = str(error)
    assert reason in message, message
    assert sorted(store.folder.iterdir()) == before


def run(act: Callable[[int], object]) -> None:
    with forked(act) as (child, _):
        assert os.waitpid(child, 0)[1] == 0


# --- the tests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["kill_at_points", "kill_at_random", "refuse"])
def test_store_survives(what: str) -> None:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # unlike a power failure, a kill needs no real disk
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        done = subprocess.run([sys.executable, __file__, what, folder], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_flipped_bit_in_any_file_is_detected(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    for step in (10, 20):
        store.save(snapshot(step))
    rng = random.Random(5)
    for n in range(FLIPS):
        path = tmp_path / "step-00000020" / (*checkpoint_store.FILES, checkpoint_store.MANIFEST)[n % 4]
        content = path.read_bytes()
        flipped = bytearray(content)
        bit = rng.randrange(8 * len(content))
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        found, skipped = store.newest()
        assert found is not None
        assert found.step == 10, f"bit {bit} of {path.name}"
        ((where, reason),) = skipped
        assert where == path.parent
        assert re.search("[\u4e00-\u9fff]", reason.text("zh"))
        path.write_bytes(content)
    check(store, {20})


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
