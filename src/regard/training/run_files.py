"""Files of a run folder: small JSON files that contain their own hash, and the lock that allows one run at a time."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from regard.errors import AbsentFileError, FileError
from regard.files.input import read_file
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import open_lock, reason_of, try_lock, write_error
from regard.training.durable import replace_file, sha256_of

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
