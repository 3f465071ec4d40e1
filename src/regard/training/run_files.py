"""Files of a run folder: small JSON files that hold their own hash, and the lock that admits one run at a time."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from regard.checkpoints.strict_json import JsonError, parse
from regard.errors import AbsentFileError, FileError
from regard.files.input import read_file
from regard.files.output import open_lock, reason_of, refusal, try_lock
from regard.training.durable import replace_file, sha256_of

SEAL = "sha256"
LARGEST = 2**24
"""In bytes; names and hashes of a hundred thousand files are less."""


def write_sealed(path: Path, about: Mapping[str, Any]) -> None:
    """Put the values and their hash in a file, whole or not at all. TooLargeError or FileError where the disk refuses.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sealed(Path(folder) / "run.json", {"seed": 1})
    ...     read_sealed(Path(folder) / "run.json")
    {'seed': 1}
    """
    content = _sealed(about)
    try:
        replace_file(path, content)
    except OSError as error:
        raise refusal(error, path, len(content)) from error


def read_sealed(path: Path) -> dict[str, Any] | None:
    """The values, None where there is no file. FileError where they are not those that were written."""
    try:
        content = read_file(path, most=LARGEST, within=path.parent)
        about = parse(content)
    except AbsentFileError:
        return None
    except JsonError:
        about = None
    if not isinstance(about, dict) or about.pop(SEAL, None) is None or content != _sealed(about):
        raise FileError("run-file-changed", path=str(path), remove=path.name)
    return about


def hash_of(path: Path) -> str | None:
    """The SHA-256 of a file; None where there is none. Raises FileError and OSError."""
    return sha256_of(path) if os.path.lexists(path) else None


def check_hashes(folder: Path, hashes: Mapping[str, str | None], remove: str) -> None:
    """Files below a folder are what they were; else FileError, which says what to remove to have them made anew."""
    for name, wanted in hashes.items():
        try:
            found = hash_of(folder / name)
        except OSError as error:
            raise FileError("model-unreadable", path=str(folder / name), reason=reason_of(error)) from error
        if found != wanted:
            raise FileError("run-file-changed", path=str(folder / name), remove=remove)


def _sealed(about: Mapping[str, Any]) -> bytes:
    """The file, to the last byte."""
    seal = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    return (json.dumps({**about, SEAL: seal}, indent=2, ensure_ascii=False) + "\n").encode()


LOCK = "lock"


@contextmanager
def hold(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only run in a folder. FileError, with the holder's process and machine, where there is another.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, hold(folder):
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
        except OSError as error:  # a drive without locks
            raise FileError("run-unlockable", path=str(path), reason=reason_of(error)) from error
        with suppress(OSError):  # the name is a courtesy; a full disk must not stop a run that holds the lock
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()} {socket.gethostname()}".encode())
        yield
    finally:
        os.close(descriptor)  # and with it the lock
