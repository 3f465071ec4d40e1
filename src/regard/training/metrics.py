"""The file metrics.jsonl: one line of JSON per step, in ascending order of steps."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from regard.errors import AbsentFileError, ArgumentError, FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import write_error
from regard.files.safe_open import open_descriptor, read_file
from regard.training import run_files
from regard.training.run_files import Digest


def json_bytes(name: str, value: Any) -> bytes:
    """A value as one line of JSON, without the newline. ArgumentError for NaN, infinity and other non-JSON values.

    >>> json_bytes("line", {"step": 1, "loss": 9.5})
    b'{"step": 1, "loss": 9.5}'
    """
    try:
        content = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        parse_json(content)  # 1 and "1" are two keys of a dict, but the same key in JSON
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError("not-json", name=name, reason=str(error)) from error
    return content


LARGEST = 2**30
"""In bytes: the lines of about five million steps."""


class MetricsFile:
    """The metrics file of a run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = MetricsFile(Path(folder) / "metrics.jsonl")
    ...     metrics.append([{"step": 1, "loss": 9.5}, {"step": 2, "loss": 9.25}])
    ...     metrics.truncate(1)
    ...     metrics.read()
    [{'step': 1, 'loss': 9.5}]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._last: int | None = None  # the last step in the file, None until it was read

    def read(self) -> list[dict[str, Any]]:
        """All complete lines; empty if there is no file. FileError names an invalid line."""
        return [about for _, about in self._lines()]

    def append(self, lines: list[dict[str, Any]]) -> None:
        """Append lines of later steps, all or none. Raises ArgumentError, TooLargeError, FileError."""
        last = self._last_step()
        for line in lines:
            step = line.get("step")
            if type(step) is not int or step <= last:
                raise ArgumentError("metrics-step", path=str(self.path), found=step, last=last)
            last = step
        content = b"".join(json_bytes("metrics", line) + b"\n" for line in lines)
        try:
            self._write(content)
        except OSError as error:
            raise write_error(error, self.path, len(content)) from error
        self._last = last

    def truncate(self, step: int | None = None) -> None:
        """Remove the lines after `step` and an incomplete last line; without a step, only the latter.

        Raises the same errors as `append`.
        """
        kept = [(line, about) for line, about in self._lines() if step is None or about["step"] <= step]
        content = b"".join(line + b"\n" for line, _ in kept)
        try:
            if self.path.exists():
                run_files.sweep(self.path.parent, re.escape(self.path.name))
                if self.path.stat().st_size != len(content):
                    run_files.replace_file(self.path, content)
        except OSError as error:
            raise write_error(error, self.path, len(content)) from error
        self._last = kept[-1][1]["step"] if kept else -1

    def rewind(self, step: int, known: Digest) -> None:
        """Remove what was written after `step`, when the file's digest was `known`. FileError if the rest has changed.

        The removed part is not parsed: after a power failure it may hold any bytes. A missing file is not an error.
        """
        try:
            content = self._content()
            kept = content[: known.size]
            if self.path.exists() and hashlib.sha256(kept).hexdigest() != known.sha256:
                raise FileError("metrics-changed", path=str(self.path), step=step)
            if kept != content:
                run_files.replace_file(self.path, kept)
        except OSError as error:
            raise write_error(error, self.path, known.size) from error
        self.truncate(step)

    def sync(self) -> None:
        """Sync the file to the disk, before a checkpoint records its steps as done. Raises FileError."""
        try:
            if self.path.exists():
                run_files.sync_file(self.path)
                run_files.sync_folder(self.path.parent)
        except OSError as error:
            raise write_error(error, self.path, 0) from error

    def digest(self) -> Digest:
        """The digest of the current file. Raises FileError."""
        content = self._content()
        return Digest(len(content), hashlib.sha256(content).hexdigest())

    def _last_step(self) -> int:
        if self._last is None:
            self.truncate()  # a new line must not follow an incomplete one
        assert self._last is not None
        return self._last

    def _write(self, content: bytes) -> None:
        descriptor = open_descriptor(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, within=self.path.parent)
        try:
            before = os.fstat(descriptor).st_size
            try:
                run_files.Writer(descriptor).write(content)
            except OSError:
                os.ftruncate(descriptor, before)  # a full disk accepted only a part
                raise
        finally:
            os.close(descriptor)

    def _content(self) -> bytes:
        """The content of the file; empty if there is none. Raises FileError."""
        try:
            return read_file(self.path, most=LARGEST, within=self.path.parent)
        except AbsentFileError:
            return b""

    def _lines(self) -> list[tuple[bytes, dict[str, Any]]]:
        """Each complete line as bytes and as a parsed object."""
        lines = self._content().split(b"\n")[:-1]
        found: list[tuple[bytes, dict[str, Any]]] = []
        last = -1
        for number, line in enumerate(lines, 1):
            about = _parsed(line)
            step = about.get("step")
            if type(step) is not int or not last < step < 2**53:  # float64 in a curve holds integers up to there
                raise FileError("metrics-garbled", path=str(self.path), line=number)
            found.append((line, about))
            last = step
        return found


def _parsed(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; empty if the line is not an object."""
    try:
        about = parse_json(line)
    except JsonError:
        return {}
    return about if isinstance(about, dict) else {}
