"""One run to a folder: the second is told who the first is, and a killed holder holds nothing."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import FileError
from regard.training import run_files
from regard.training.run_files import hold

# The file alone: the room's other files need torch, which takes seconds to import.
HOLDER = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("lock", sys.argv[1])
lock = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lock)
with lock.hold(sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_is_told_who_the_first_is(tmp_path: Path) -> None:
    with hold(tmp_path), pytest.raises(FileError) as caught, hold(tmp_path):
        pass
    assert caught.value.exit_code == 3
    assert f"process {os.getpid()} on {socket.gethostname()}" in str(caught.value)
    assert f"进程 {os.getpid()}" in caught.value.text("zh")


def test_it_can_be_held_again_after_the_end_and_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold(tmp_path):
        raise ZeroDivisionError
    with hold(tmp_path):
        pass
    with hold(tmp_path):
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, run_files.__file__, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FileError, match=f"process {holder.pid} on"), hold(tmp_path):
            pass
        holder.kill()
        holder.wait()
    with hold(tmp_path):
        pass


def test_two_folders_are_two_runs(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with hold(tmp_path), hold(tmp_path / "a"):
        pass


def test_a_holder_without_a_name_is_still_a_holder(tmp_path: Path) -> None:
    with hold(tmp_path):
        (tmp_path / "lock").write_bytes(b"")
        with pytest.raises(FileError, match=r"process \? on \?"), hold(tmp_path):
            pass


def test_a_full_disk_does_not_stop_a_run_that_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with hold(tmp_path), pytest.raises(FileError, match="in use"), hold(tmp_path):
        pass


def test_a_folder_that_cannot_hold_a_lock_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match=r"lock could not be written \(No such file"), hold(tmp_path / "none"):
        pass
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="lock could not be written"), hold(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "lock").unlink()

    def lockless(descriptor: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(run_files, "try_lock", lockless)
    with pytest.raises(FileError, match="another drive"), hold(tmp_path):
        pass
