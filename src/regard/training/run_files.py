"""Files of a run folder that survive a crash: write, replace, rename and sync; small JSON files; and the lock of a run.

The JSON files contain their own hash; the lock allows one run at a time. `fault_point` follows each system call: tests
stop the process there. The caller of a file operation must hold the lock, so that no other process writes there.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import AbsentFileError, FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import open_lock, reason_of, replace_target, try_lock, write_error
from regard.files.safe_open import BINARY, UNLIMITED, open_descriptor, open_file, read_file


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

    def write(partial: Path) -> None:
        fault_point("open")
        descriptor = os.open(partial, os.O_WRONLY | BINARY)
        try:
            Writer(descriptor).write(content)
        finally:
            os.close(descriptor)

    place = replace_target(path, write, sync=True, temporary_path=temporary, after=lambda call: fault_point(call))
    sync_folder(place.parent)


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


HASH = "sha256"
LARGEST = 2**24
"""In bytes; enough for the names and hashes of a hundred thousand files."""


def write_hashed(path: Path, about: Mapping[str, Any]) -> None:
    """Write the values and their hash to a file, atomically. Raises TooLargeError or FileError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_hashed(Path(folder) / "run.json", {"seed": 1})
    ...     read_hashed(Path(folder) / "run.json")
    {'seed': 1}
    """
    content = _hashed(about)
    try:
        replace_file(path, content)
    except OSError as error:
        raise write_error(error, path, len(content)) from error


def read_hashed(path: Path) -> dict[str, Any] | None:
    """The values; None if there is no file. Raises FileError if the file has changed since it was written."""
    try:
        content = read_file(path, most=LARGEST, within=path.parent)
        about = parse_json(content)
    except AbsentFileError:
        return None
    except JsonError:
        about = None
    if not isinstance(about, dict) or about.pop(HASH, None) is None or content != _hashed(about):
        raise FileError("run-file-changed", path=str(path), remove=path.name)
    return about


def hash_of(path: Path) -> str | None:
    """The SHA-256 of a file; None if there is none. Raises FileError and OSError."""
    return sha256_of(path) if os.path.lexists(path) else None


def check_hashes(folder: Path, hashes: Mapping[str, str | None], remove: str) -> None:
    """Check the hashes of files in a folder. FileError names `remove`, the file to remove so that they are rebuilt."""
    for name, wanted in hashes.items():
        try:
            found = hash_of(folder / name)
        except OSError as error:
            raise FileError("model-unreadable", path=str(folder / name), reason=reason_of(error)) from error
        if found != wanted:
            raise FileError("run-file-changed", path=str(folder / name), remove=remove)


def _hashed(about: Mapping[str, Any]) -> bytes:
    """The content of the file."""
    digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    return (json.dumps({**about, HASH: digest}, indent=2, ensure_ascii=False) + "\n").encode()


LOCK = "lock"


@contextmanager
def lock_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a run folder. FileError names the process and machine that hold the lock.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, lock_folder(folder):
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['lock']
    """
    path = Path(folder) / LOCK
    descriptor = open_lock(path)
    try:
        try:
            try_lock(descriptor)
        except BlockingIOError as error:
            pid, _, host = os.read(descriptor, 300).decode(errors="replace").partition(" ")
            raise FileError("run-locked", path=str(folder), pid=pid or "?", host=host or "?") from error
        except OSError as error:  # a file system without locks
            raise FileError("run-unlockable", path=str(path), reason=reason_of(error)) from error
        with suppress(OSError):  # only for the error message; a full disk must not stop a run that holds the lock
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()} {socket.gethostname()}".encode())
        yield
    finally:
        os.close(descriptor)  # releases the lock
