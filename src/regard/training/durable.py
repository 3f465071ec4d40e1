"""File operations that survive a crash: write, replace, rename, sync, and the removal of temporary files.

`fault_point` follows each system call; tests stop the process there. Independent of the files' content. The caller
must hold the run's lock, so that no other process writes to the folder.
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
from regard.files.output import resolve_target


def fault_point(call: str) -> None:
    """Does nothing. Tests replace it to kill the process after the n-th system call; `call` is the call's name."""


class Digest(NamedTuple):
    """The size and SHA-256 of a file."""

    size: int
    sha256: str


EMPTY = Digest(0, hashlib.sha256().hexdigest())


def sha256_of(path: Path) -> str:
    """The SHA-256 of a regular file, read in pieces. Links out of its folder are refused. Raises FileError, OSError."""
    with open_file(path, most=UNLIMITED, within=path.parent) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Writer:
    """Appends to an open file, and counts and hashes what it writes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, content: bytes) -> int:
        """Write all of `content`, in several system calls if necessary."""
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
            fault_point("write")
        self._hash.update(content)
        self._size += len(content)
        return len(content)

    @property
    def digest(self) -> Digest:
        """The digest of everything written so far."""
        return Digest(self._size, self._hash.hexdigest())


def write_file(path: Path, write: Callable[[Writer], object]) -> Digest:
    """Create a file, let `write` fill it, and return when its bytes are on the disk. Raises OSError."""
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
    """Replace a file's content atomically: a reader finds the complete old or the complete new content.

    A link is kept and its target is replaced. Raises OSError, and FileError if the path is not a regular file.
    """
    path = resolve_target(path)
    partial = temporary(path)
    try:
        write_file(partial, lambda writer: writer.write(content))
        os.replace(partial, path)
        fault_point("rename")
        sync_folder(path.parent)
    finally:
        with suppress(OSError):  # must not hide the first error
            discard(partial)


def make_folder(path: Path) -> None:
    """Create a folder. Raises OSError."""
    path.mkdir()
    fault_point("mkdir")


def move(source: Path, target: Path) -> None:
    """Rename a file or folder in its parent; durable once the parent is synced. Raises OSError."""
    source.rename(target)
    fault_point("rename")


def sync_file(path: Path) -> None:
    """Return when an already written file is on the disk. Raises OSError."""
    descriptor = open_descriptor(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fault_point("fsync")


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk. Raises OSError."""
    if os.name == "nt":  # Windows has no such call and does not need one
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


def temporary(path: Path, pid: int | None = None) -> Path:
    """The temporary name under which this process, or the one with this id, writes `path`.

    >>> temporary(Path("step-00000100")).name == f"step-00000100.tmp-{os.getpid()}"
    True
    """
    return path.with_name(f"{path.name}.tmp-{os.getpid() if pid is None else pid}")


def retire(path: Path) -> None:
    """Rename a file or folder out of the way, atomically; `sweep` then removes it, also after an interruption."""
    move(path, temporary(path.with_name(f"{path.name}.gone")))


def sweep(folder: Path, names: str) -> None:
    """Remove temporary files left by dead processes or by this one. `names` is a regular expression."""
    pattern = re.compile(rf"(?:{names})(?:\.gone)?\.tmp-([0-9]{{1,10}})")
    for path in sorted(folder.iterdir()):
        found = pattern.fullmatch(path.name)
        if found and (int(found[1]) == os.getpid() or not _is_alive(int(found[1]))):
            discard(path)


def discard(path: Path) -> None:
    """Remove a file, or a folder and its content. Links are removed, not followed."""
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
    if os.name == "nt" or pid < 1:  # Windows has no harmless signal; only the run's lock protects there
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


# --- free space ------------------------------------------------------------------------------------------


def check_free_space(folder: Path, need: int) -> None:
    """Raise OSError ENOSPC before anything is written if fewer than `need` bytes are free."""
    found = shutil.disk_usage(folder)
    if found.total > 0 and found.free < need:  # a total of 0: the file system does not report its size
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
