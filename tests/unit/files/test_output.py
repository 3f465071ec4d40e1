"""Atomic writing of files; pipes, links and devices are kept."""

import errno
import os
import pty
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from full_disk import largest_file

from regard.errors import ArgumentError, FileError, RegardError, TooLargeError
from regard.files.output import (
    check_target,
    extension_of,
    open_lock,
    reason_of,
    write_atomically,
    write_new,
    write_output,
)

Write = Callable[[Path, bytes], object]


def atomic(target: Path, content: bytes) -> None:
    write_atomically(target, lambda path: path.write_bytes(content), need=len(content))


def atomic_or_stream(target: Path, content: bytes) -> None:
    write_atomically(target, lambda path: path.write_bytes(content), need=len(content), into_streams=True)


all_writers = pytest.mark.parametrize("write", [write_output, atomic, atomic_or_stream, write_new])
replacing = pytest.mark.parametrize("write", [write_output, atomic, atomic_or_stream])
for_users = pytest.mark.parametrize("write", [write_output, atomic_or_stream])


@all_writers
def test_file_is_written(write: Write, tmp_path: Path) -> None:
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


@all_writers
def test_longest_possible_name(write: Write, tmp_path: Path) -> None:
    name = "注" * 85  # 255 bytes
    write(tmp_path / name, b"new")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), LookupError("first line\nsecond")])
def test_failed_write_keeps_the_old_file(error: Exception, tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")

    def half(path: Path) -> None:
        path.write_text("ne")
        raise error

    with pytest.raises(FileError, match=reason_of(error)) as caught:
        write_atomically(target, half, LookupError, need=3)
    assert caught.value.key == "file-unwritable"
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


# --- full disk -------------------------------------------------------------------------------------------


@all_writers
def test_full_disk_raises_with_sizes(write: Write, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    target = tmp_path / ("new" if write is write_new else "old")
    with largest_file(1000), pytest.raises(TooLargeError, match=r"needs 4\.9 KiB, and [0-9.]+ .iB is free") as caught:
        write(target, bytes(5000))
    assert caught.value.exit_code == 5
    assert (tmp_path / "old").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "old"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_full_disk_reported_by_a_rust_library(number: int, tmp_path: Path) -> None:
    def full(path: Path) -> None:
        path.write_bytes(b"ne")
        raise LookupError(f"Error while serializing: I/O error: {os.strerror(number)} (os error {number})")

    with pytest.raises(TooLargeError, match=r"needs 7 B"):
        write_atomically(tmp_path / "a", full, LookupError, need=7)
    assert list(tmp_path.iterdir()) == []


@for_users
def test_full_device(write: Write, tmp_path: Path) -> None:
    full = device(tmp_path / "full", 7)
    with pytest.raises(TooLargeError, match="full could not be written: it needs 3 B, and 0 B is free"):
        write(full, b"new")
    assert stat.S_ISCHR(full.lstat().st_mode)


def device(path: Path, minor: int) -> Path:
    """A device node for one of Linux' memory devices: 3 is null, 5 zero, 7 full."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"no device can be made here: {error.strerror}")
    return path


# --- permissions -----------------------------------------------------------------------------------------


@all_writers
@pytest.mark.parametrize(("mask", "wanted"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_file_has_permissions_by_the_umask(write: Write, mask: int, wanted: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == wanted


@replacing
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_existing_file_keeps_its_permissions(write: Write, mode: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(mode)
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


def test_temporary_file_is_private(tmp_path: Path) -> None:
    modes = []
    write_atomically(tmp_path / "a", lambda path: modes.append(path.stat().st_mode & 0o777), need=0)
    assert modes == [0o600]


@replacing
def test_read_only_file_is_not_replaced(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, how: False)  # root could write anything
    with pytest.raises(FileError, match="Permission denied"):
        write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_text() == "old"


@replacing
def test_hard_link_keeps_the_old_content(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    os.link(tmp_path / "a", tmp_path / "b")
    write(tmp_path / "a", b"new")
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("new", "old")


# --- links -----------------------------------------------------------------------------------------------


@replacing
@pytest.mark.parametrize("there", [True, False])
def test_link_is_kept(write: Write, there: bool, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    if there:
        (tmp_path / "far" / "a").write_text("old")
    (tmp_path / "link").symlink_to("far/a")
    (tmp_path / "twice").symlink_to("link")
    write(tmp_path / "twice", b"new")
    assert os.readlink(tmp_path / "twice") == "link"
    assert os.readlink(tmp_path / "link") == "far/a"
    assert (tmp_path / "far" / "a").read_text() == "new"
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["a"]


@all_writers
def test_broken_links_and_folders(write: Write, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FileError):
        write(tmp_path / "loop", b"new")
    assert (tmp_path / "loop").is_symlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    for name in ("folder", "link", ".", "folder/.."):
        with pytest.raises(FileError) as caught:
            write(tmp_path / name, b"new")
        assert caught.value.key == "file-is-folder"


# --- pipes and devices -----------------------------------------------------------------------------------


@all_writers
def test_fifo_without_a_reader_raises_at_once(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for name in ("fifo", "link"):
        with pytest.raises(FileError, match="FIFO"):
            write(tmp_path / name, b"new")
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "link"]


@for_users
def test_fifo_with_a_reader_is_written_into(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    content = os.urandom(300_000)  # more than a pipe holds
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append((tmp_path / "fifo").read_bytes()), daemon=True)
    thread.start()
    for _ in range(1000):  # until the thread has opened it
        try:
            write(tmp_path / "fifo", content)
            break
        except FileError:
            time.sleep(0.01)
    thread.join(timeout=20)
    assert b"".join(found) == content
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)


@all_writers
def test_other_devices_are_refused(write: Write, tmp_path: Path) -> None:
    main, other = pty.openpty()
    try:
        place = Path(os.ttyname(other))
        with pytest.raises(FileError, match="is a device"):
            write(place, b"new")
        assert stat.S_ISCHR(place.lstat().st_mode)
        with pytest.raises(FileError, match="is a device"):
            check_target(place)
    finally:
        os.close(main)
        os.close(other)


@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"])
@pytest.mark.parametrize(
    "way",
    [
        "write_output(Path(sys.argv[1]), b'new')",
        "write_atomically(Path(sys.argv[1]), lambda p: p.write_bytes(b'new'), need=3, into_streams=True)",
    ],
)
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_stdout_by_all_its_paths(name: str, way: str, into: str, tmp_path: Path) -> None:
    if not os.path.exists(name):
        pytest.skip(f"there is no {name}")
    before = os.lstat(name)
    imports = "import sys; from pathlib import Path; from regard.files.output import *"
    program = f"{imports}; print('before'); {way}; print('after')"
    command = [sys.executable, "-c", program, name]
    if into == "pipe":
        out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    else:
        with (tmp_path / "out").open("wb") as file:
            subprocess.run(command, stdout=file, check=True)
        out = (tmp_path / "out").read_bytes()
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out == b"before\nnewafter\n"
    assert stat.S_IFMT(os.lstat(name).st_mode) == stat.S_IFMT(before.st_mode)


@for_users
def test_devices_that_store_nothing_are_allowed(write: Write, tmp_path: Path) -> None:
    null = device(tmp_path / "null", 3)
    write(null, b"new")
    assert stat.S_ISCHR(null.lstat().st_mode)


@all_writers
def test_memory_device_is_refused(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = device(tmp_path / "random", 8)
    opened: list[object] = []
    monkeypatch.setattr(os, "open", lambda *given: opened.append(given))
    with pytest.raises(FileError, match="is a device"):
        write(random, b"new")
    assert opened == []  # opening alone has effects on some devices


@all_writers
def test_dash_is_refused(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="- is not the name of a file"):
        write(Path("-"), b"new")
    with pytest.raises(RegardError):
        write(Path("a\0b"), b"new")
    assert list(tmp_path.iterdir()) == []


# --- new files and locks ---------------------------------------------------------------------------------


def test_write_new_never_replaces_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    assert not write_new(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_text() == "old"
    assert write_new(tmp_path / "b", b"new")
    (tmp_path / "dangling").symlink_to("none")
    with pytest.raises(FileError, match="File exists"):
        write_new(tmp_path / "dangling", b"new")

    def without_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", without_links)
    assert write_new(tmp_path / "c", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "dangling"]


def test_lock_must_be_a_regular_file(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock"))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileError, match="FIFO"):
        open_lock(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("lock")
    with pytest.raises(FileError, match="could not be written"):
        open_lock(tmp_path / "link")


# --- names -----------------------------------------------------------------------------------------------


def test_wrong_extension_is_refused() -> None:
    assert extension_of(Path("a.b/c.PDF"), ".png", ".pdf") == ".pdf"
    assert extension_of(Path("a.b/c"), ".png", ".pdf") == ".png"
    with pytest.raises(ArgumentError, match=r"a\.b/c\.jpg has .*; call it a\.b/c\.png \(possible: \.png, \.pdf\)"):
        extension_of(Path("a.b/c.jpg"), ".png", ".pdf")


def test_reason_is_one_line() -> None:
    assert reason_of(OSError(13, "Permission denied", "/a/b")) == "Permission denied"
    assert reason_of(LookupError("first line\nsecond")) == "first line"
    assert reason_of(LookupError()) == "LookupError"


def test_sync_comes_between_the_write_and_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power failure could leave an empty file under the name."""
    calls: list[str] = []

    def recorded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            calls.append(name)
            return original(*given)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, recorded(name, getattr(os, name)))
    write = recorded("write", lambda path: path.write_bytes(b"1"))
    for sync in (False, True):
        write_atomically(tmp_path / "a", write, need=1, sync=sync)
    assert calls == ["write", "replace", "write", "fsync", "replace"]
