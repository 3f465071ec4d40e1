"""Files that are on the disk when we say so: written, synced and renamed, one system call after another.

After each call stands `fault_point`, where tests stop the process. What the files hold is not known here, nor who else
might write beside us: whoever calls holds the run's lock.
"""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from regard.files.input import BINARY, UNLIMITED, open_descriptor, open_file
from regard.files.output import real_place


def fault_point(call: str) -> None:
    """Nothing. Tests put something here that kills the process after the n-th system call, whose name it is told."""


class Digest(NamedTuple):
    """What a file is known by."""

    size: int
    sha256: str


NOTHING = Digest(0, hashlib.sha256().hexdigest())


def sha256_of(path: Path) -> str:
    """Of a regular file of its folder as it stands, read piece by piece. Raises FileError and OSError."""
    with open_file(path, most=UNLIMITED, within=path.parent) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Writer:
    """The end of a file being written, which counts and hashes what passes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, content: bytes) -> int:
        """All of it, however many calls the system makes of it."""
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
            fault_point("write")
        self._hash.update(content)
        self._size += len(content)
        return len(content)

    @property
    def digest(self) -> Digest:
        """Of everything written so far."""
        return Digest(self._size, self._hash.hexdigest())


def write_file(path: Path, write: Callable[[Writer], object]) -> Digest:
    """Let `write` fill a new file, and return when its bytes are on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
    try:
        fault_point("open")
        writer = Writer(descriptor)
        write(writer)
        os.fsync(descriptor)
        fault_point("fsync")
    finally:
        os.close(descriptor)
    return writer.digest


def replace_file(path: Path, content: bytes) -> None:
    """Put new content in the place of a file's: whoever looks finds the old or the new, whole.

    A link stays one, and what it leads to is replaced. Raises OSError, and FileError where no regular file is there.
    """
    path = real_place(path)
    aside = temporary(path)
    try:
        write_file(aside, lambda writer: writer.write(content))
        os.replace(aside, path)
        fault_point("rename")
        sync_folder(path.parent)
    finally:
        with suppress(OSError):  # what stopped us is the news
            discard(aside)


def make_folder(path: Path) -> None:
    """A new folder. Raises OSError."""
    path.mkdir()
    fault_point("mkdir")


def move(source: Path, target: Path) -> None:
    """Give a file or folder another name beside it; on the disk once the folder is synced. Raises OSError."""
    source.rename(target)
    fault_point("rename")


def sync_file(path: Path) -> None:
    """Return when a file that somebody else has written is on the disk. Raises OSError."""
    descriptor = open_descriptor(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fault_point("fsync")


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk. Raises OSError."""
    if os.name == "nt":  # has no such call, and needs none
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network drives sync files only
            raise
    finally:
        os.close(descriptor)
    fault_point("fsync")


# --- temporary names -------------------------------------------------------------------------------------


def temporary(path: Path) -> Path:
    """The name under which this process makes `path`.

    >>> temporary(Path("step-00000100")).name == f"step-00000100.tmp-{os.getpid()}"
    True
    """
    return path.with_name(f"{path.name}.tmp-{os.getpid()}")


def retire(path: Path) -> None:
    """Take a file or folder out of use, all at once; `sweep` removes it, however often it is interrupted."""
    move(path, temporary(path.with_name(f"{path.name}.gone")))


def sweep(folder: Path, names: str) -> None:
    """Remove what processes that are gone, or this one earlier, left half made or half removed under such names."""
    pattern = re.compile(rf"(?:{names})(?:\.gone)?\.tmp-([0-9]{{1,10}})")
    for path in sorted(folder.iterdir()):
        found = pattern.fullmatch(path.name)
        if found and (int(found[1]) == os.getpid() or not _is_alive(int(found[1]))):
            discard(path)


def discard(path: Path) -> None:
    """Remove a file, or a folder and all in it; links are removed, not followed."""
    if path.is_dir() and not path.is_symlink():
        for child in sorted(path.iterdir()):
            discard(child)
        path.rmdir()
    else:
        try:
            path.unlink()
        except FileNotFoundError:
            return
    fault_point("remove")


def _is_alive(pid: int) -> bool:
    if os.name == "nt" or pid < 1:  # Windows has no harmless signal; there the run's lock alone must tell
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


# --- when the disk says no -------------------------------------------------------------------------------


def check_room(folder: Path, need: int) -> None:
    """Raise the system's own "no space left" before so many bytes are written in vain."""
    found = shutil.disk_usage(folder)
    if found.total > 0 and found.free < need:  # a total of 0 is a file system that does not tell
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
