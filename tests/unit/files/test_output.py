"""A file is written whole or not at all; pipes, links and devices stay what they are."""

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

import pytest
from full_disk import largest_file

from regard.errors import ArgumentError, FileError, RegardError, TooLargeError
from regard.files.output import check_place, ending_of, open_lock, reason_of, write_aside, write_new, write_output

Write = Callable[[Path, bytes], object]


def aside(target: Path, content: bytes) -> None:
    write_aside(target, lambda path: path.write_bytes(content), need=len(content))


def aside_or_into(target: Path, content: bytes) -> None:
    write_aside(target, lambda path: path.write_bytes(content), need=len(content), into_streams=True)


every_way = pytest.mark.parametrize("write", [write_output, aside, aside_or_into, write_new])
over = pytest.mark.parametrize("write", [write_output, aside, aside_or_into])
by_a_person = pytest.mark.parametrize("write", [write_output, aside_or_into])


@every_way
def test_it_stands_in_its_place(write: Write, tmp_path: Path) -> None:
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


@every_way
def test_a_long_name_is_a_name(write: Write, tmp_path: Path) -> None:
    name = "注" * 85  # 255 bytes
    write(tmp_path / name, b"new")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), LookupError("first line\nsecond")])
def test_a_write_that_stops_leaves_the_old_one(error: Exception, tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")

    def half(path: Path) -> None:
        path.write_text("ne")
        raise error

    with pytest.raises(FileError, match=reason_of(error)) as caught:
        write_aside(target, half, LookupError, need=3)
    assert caught.value.key == "file-unwritable"
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


# --- no room ---------------------------------------------------------------------------------------------


@every_way
def test_a_full_disk_is_told_with_figures(write: Write, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    target = tmp_path / ("new" if write is write_new else "old")
    with largest_file(1000), pytest.raises(TooLargeError, match=r"needs 4\.9 KiB, and [0-9.]+ .iB is free") as caught:
        write(target, bytes(5000))
    assert caught.value.exit_code == 5
    assert (tmp_path / "old").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "old"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_library_in_rust_tells_it_in_words(number: int, tmp_path: Path) -> None:
    def full(path: Path) -> None:
        path.write_bytes(b"ne")
        raise LookupError(f"Error while serializing: I/O error: {os.strerror(number)} (os error {number})")

    with pytest.raises(TooLargeError, match=r"needs 7 B"):
        write_aside(tmp_path / "a", full, LookupError, need=7)
    assert list(tmp_path.iterdir()) == []


@by_a_person
def test_a_device_that_is_full(write: Write, tmp_path: Path) -> None:
    full = device(tmp_path / "full", 7)
    with pytest.raises(TooLargeError, match="full could not be written: it needs 3 B, and 0 B is free"):
        write(full, b"new")
    assert stat.S_ISCHR(full.lstat().st_mode)


def device(path: Path, minor: int) -> Path:
    """A node of our own, of what Linux calls a memory device: 3 is null, 5 zero, 7 full."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"no device can be made here: {error.strerror}")
    return path


# --- permissions -----------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize(("mask", "wanted"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_it_may_be_read_by_whom_the_umask_says(write: Write, mask: int, wanted: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == wanted


@over
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_one_that_was_there_keeps_its_permissions(write: Write, mode: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(mode)
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


def test_nobody_else_reads_it_while_it_is_written(tmp_path: Path) -> None:
    modes = []
    write_aside(tmp_path / "a", lambda path: modes.append(path.stat().st_mode & 0o777), need=0)
    assert modes == [0o600]


@over
def test_one_that_may_not_be_written_stays(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, how: False)  # root may write anything
    with pytest.raises(FileError, match="Permission denied"):
        write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_text() == "old"


@over
def test_another_name_of_the_old_file_keeps_the_old_content(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    os.link(tmp_path / "a", tmp_path / "b")
    write(tmp_path / "a", b"new")
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("new", "old")


# --- links -----------------------------------------------------------------------------------------------


@over
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(write: Write, there: bool, tmp_path: Path) -> None:
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


@every_way
def test_links_to_nowhere_and_folders(write: Write, tmp_path: Path) -> None:
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


@every_way
def test_a_fifo_that_nobody_reads_is_refused_at_once(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for name in ("fifo", "link"):
        with pytest.raises(FileError, match="FIFO"):
            write(tmp_path / name, b"new")
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "link"]


@by_a_person
def test_a_fifo_that_somebody_reads_is_written_into(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    content = os.urandom(300_000)  # more than a pipe holds
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append((tmp_path / "fifo").read_bytes()), daemon=True)
    thread.start()
    for _ in range(1000):  # until the thread has come as far as opening it
        try:
            write(tmp_path / "fifo", content)
            break
        except FileError:
            time.sleep(0.01)
    thread.join(timeout=20)
    assert b"".join(found) == content
    assert stat.S_ISFIFO((tmp_path / "fifo").lstat().st_mode)


@every_way
def test_other_devices_are_refused_and_stay(write: Write, tmp_path: Path) -> None:
    main, other = pty.openpty()
    try:
        place = Path(os.ttyname(other))
        with pytest.raises(FileError, match="is a device"):
            write(place, b"new")
        assert stat.S_ISCHR(place.lstat().st_mode)
        with pytest.raises(FileError, match="is a device"):
            check_place(place)
    finally:
        os.close(main)
        os.close(other)


@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"])
@pytest.mark.parametrize(
    "way",
    [
        "write_output(Path(sys.argv[1]), b'new')",
        "write_aside(Path(sys.argv[1]), lambda p: p.write_bytes(b'new'), need=3, into_streams=True)",
    ],
)
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_stdout_by_its_names(name: str, way: str, into: str, tmp_path: Path) -> None:
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


@by_a_person
def test_what_keeps_nothing_may_be_named(write: Write, tmp_path: Path) -> None:
    null = device(tmp_path / "null", 3)
    write(null, b"new")
    assert stat.S_ISCHR(null.lstat().st_mode)


@every_way
def test_memory_is_no_output(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = device(tmp_path / "random", 8)
    opened: list[object] = []
    monkeypatch.setattr(os, "open", lambda *given: opened.append(given))
    with pytest.raises(FileError, match="is a device"):
        write(random, b"new")
    assert opened == []  # opening alone makes some devices do something


@every_way
def test_a_dash_is_no_file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="- is not the name of a file"):
        write(Path("-"), b"new")
    with pytest.raises(RegardError):
        write(Path("a\0b"), b"new")
    assert list(tmp_path.iterdir()) == []


# --- new files and locks ---------------------------------------------------------------------------------


def test_a_new_file_is_never_put_over_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_lock_is_a_regular_file(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock"))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileError, match="FIFO"):
        open_lock(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("lock")
    with pytest.raises(FileError, match="could not be written"):
        open_lock(tmp_path / "link")


# --- names -----------------------------------------------------------------------------------------------


def test_a_name_that_promises_something_else_is_refused() -> None:
    assert ending_of(Path("a.b/c.PDF"), ".png", ".pdf") == ".pdf"
    assert ending_of(Path("a.b/c"), ".png", ".pdf") == ".png"
    with pytest.raises(ArgumentError, match=r"a\.b/c\.jpg has .*; call it a\.b/c\.png \(possible: \.png, \.pdf\)"):
        ending_of(Path("a.b/c.jpg"), ".png", ".pdf")


def test_the_reason_is_one_line() -> None:
    assert reason_of(OSError(13, "Permission denied", "/a/b")) == "Permission denied"
    assert reason_of(LookupError("first line\nsecond")) == "first line"
    assert reason_of(LookupError()) == "LookupError"
