"""Small JSON files that hold their own hash, and those of other files: one changed bit is noticed.

What the values mean is not known here.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoints.strict_json import JsonError, parse
from regard.errors import AbsentFileError, FileError
from regard.files import reason_of, refusal
from regard.input_files import read_file
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
