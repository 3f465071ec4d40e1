"""The lock of a run folder: a second run is refused with the holder's process, and a killed process frees the lock."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import FileError
from regard.training import run_files
from regard.training.run_files import lock_folder

# Loads only this file: other modules of the package need torch, which takes seconds to import.
HOLDER = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("lock", sys.argv[1])
lock = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lock)
with lock.lock_folder(sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_second_run_raises_with_the_holder(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(FileError) as caught, lock_folder(tmp_path):
        pass
    assert caught.value.exit_code == 3
    assert f"process {os.getpid()} on {socket.gethostname()}" in str(caught.value)
    assert f"进程 {os.getpid()}" in caught.value.text("zh")


def test_lock_is_released_at_the_end_and_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock_folder(tmp_path):
        raise ZeroDivisionError
    with lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path):
        pass


def test_killed_process_releases_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, run_files.__file__, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FileError, match=f"process {holder.pid} on"), lock_folder(tmp_path):
            pass
        holder.kill()
        holder.wait()
    with lock_folder(tmp_path):
        pass


def test_two_folders_have_two_locks(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with lock_folder(tmp_path), lock_folder(tmp_path / "a"):
        pass


def test_holder_without_a_name(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        (tmp_path / "lock").write_bytes(b"")
        with pytest.raises(FileError, match=r"process \? on \?"), lock_folder(tmp_path):
            pass


def test_full_disk_does_not_stop_the_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with lock_folder(tmp_path), pytest.raises(FileError, match="in use"), lock_folder(tmp_path):
        pass


def test_folder_without_a_lock_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match=r"lock could not be written \(No such file"), lock_folder(tmp_path / "none"):
        pass
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="lock could not be written"), lock_folder(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "lock").unlink()

    def no_locks(descriptor: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(run_files, "try_lock", no_locks)
    with pytest.raises(FileError, match="another drive"), lock_folder(tmp_path):
        pass
