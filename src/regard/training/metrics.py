"""metrics.jsonl: one line of JSON a step, each step once, in order."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from regard.checkpoints.strict_json import JsonError, parse
from regard.errors import AbsentFileError, ArgumentError, FileError
from regard.files.input import open_descriptor, read_file
from regard.files.output import refusal
from regard.training import durable
from regard.training.durable import Digest


def json_bytes(name: str, value: Any) -> bytes:
    """One line, without its end. ArgumentError for NaN, infinity and whatever else JSON has no word for.

    >>> json_bytes("line", {"step": 1, "loss": 9.5})
    b'{"step": 1, "loss": 9.5}'
    """
    try:
        content = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        parse(content)  # 1 and "1" are two keys of a dict, and one of JSON's
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError("not-json", name=name, reason=str(error)) from error
    return content


LARGEST = 2**30
"""In bytes: the lines of some five million steps."""


class MetricsFile:
    """The lines of a run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = MetricsFile(Path(folder) / "metrics.jsonl")
    ...     metrics.append([{"step": 1, "loss": 9.5}, {"step": 2, "loss": 9.25}])
    ...     metrics.cut(1)
    ...     metrics.read()
    [{'step': 1, 'loss': 9.5}]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._last: int | None = None  # the last step in the file, once somebody has looked

    def read(self) -> list[dict[str, Any]]:
        """All whole lines; none where there is no file. FileError names a line that makes no sense."""
        return [about for _, about in self._lines()]

    def append(self, lines: list[dict[str, Any]]) -> None:
        """Add lines of later steps than all before, all of them or none. ArgumentError, TooLargeError, FileError."""
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
            raise refusal(error, self.path, len(content)) from error
        self._last = last

    def cut(self, step: int | None = None) -> None:
        """Drop what comes after `step`, and a torn last line; without a step, only the latter. Raises as append."""
        kept = [(line, about) for line, about in self._lines() if step is None or about["step"] <= step]
        content = b"".join(line + b"\n" for line, _ in kept)
        try:
            if self.path.exists():
                durable.sweep(self.path.parent, re.escape(self.path.name))
                if self.path.stat().st_size != len(content):
                    durable.replace_file(self.path, content)
        except OSError as error:
            raise refusal(error, self.path, len(content)) from error
        self._last = kept[-1][1]["step"] if kept else -1

    def go_back(self, step: int, known: Digest) -> None:
        """Drop what was written after `step`, when the file was `known`. FileError where what is before has changed.

        Of what comes after, nothing is read: a power cut may leave anything there. No file is no lines, and no error.
        """
        try:
            content = self._content()
            kept = content[: known.size]
            if self.path.exists() and hashlib.sha256(kept).hexdigest() != known.sha256:
                raise FileError("metrics-changed", path=str(self.path), step=step)
            if kept != content:
                durable.replace_file(self.path, kept)
        except OSError as error:
            raise refusal(error, self.path, known.size) from error
        self.cut(step)

    def sync(self) -> None:
        """Return when every line is on the disk: before a checkpoint says that its steps are done. Raises FileError."""
        try:
            if self.path.exists():
                durable.sync_file(self.path)
                durable.sync_folder(self.path.parent)
        except OSError as error:
            raise refusal(error, self.path, 0) from error

    def digest(self) -> Digest:
        """What the file is known by, as it stands. Raises FileError."""
        content = self._content()
        return Digest(len(content), hashlib.sha256(content).hexdigest())

    def _last_step(self) -> int:
        if self._last is None:
            self.cut()  # a new line must not stand behind half of an old one
        assert self._last is not None
        return self._last

    def _write(self, content: bytes) -> None:
        descriptor = open_descriptor(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, within=self.path.parent)
        try:
            before = os.fstat(descriptor).st_size
            try:
                durable.Writer(descriptor).write(content)
            except OSError:
                os.ftruncate(descriptor, before)  # a full disk took a part of it
                raise
        finally:
            os.close(descriptor)

    def _content(self) -> bytes:
        """The file as it stands; nothing where there is none. Raises FileError."""
        try:
            return read_file(self.path, most=LARGEST, within=self.path.parent)
        except AbsentFileError:
            return b""

    def _lines(self) -> list[tuple[bytes, dict[str, Any]]]:
        """Each whole line as it stands, and what it says."""
        lines = self._content().split(b"\n")[:-1]
        found: list[tuple[bytes, dict[str, Any]]] = []
        last = -1
        for number, line in enumerate(lines, 1):
            about = _parsed(line)
            step = about.get("step")
            if type(step) is not int or not last < step < 2**53:  # which a curve's float64 still tells apart
                raise FileError("metrics-garbled", path=str(self.path), line=number)
            found.append((line, about))
            last = step
        return found


def _parsed(line: bytes) -> dict[str, Any]:
    """An object, empty where the line is none."""
    try:
        about = parse(line)
    except JsonError:
        return {}
    return about if isinstance(about, dict) else {}
