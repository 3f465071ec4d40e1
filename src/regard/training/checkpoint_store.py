"""The checkpoints of a run. Each is a folder that is complete or absent: written aside, synced, hashed, renamed.

The manifest holds the size and hash of every file. It is written last and verified on reading.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from regard.checkpoints.strict_json import JsonError, parse
from regard.checkpoints.tensor_file import TensorFile, check_dtypes, write_tensors
from regard.errors import ArgumentError, FileError
from regard.files.input import read_file
from regard.files.output import reason_of, refusal
from regard.memory import spell
from regard.messages import Listed
from regard.position_rules import check_counts
from regard.training import durable
from regard.training.durable import Digest
from regard.training.metrics import json_bytes

FORMAT, VERSION = "regard-checkpoint", 1
MANIFEST = "manifest.json"
MODEL, OPTIMIZER, STATE = FILES = "model.safetensors", "optimizer.safetensors", "state.json"
LARGEST_JSON = 2**24


def write_manifest(folder: Path, step: int, digests: Mapping[str, Digest]) -> None:
    """Declare a folder a checkpoint. Raises OSError."""
    files = {name: digests[name]._asdict() for name in FILES}
    about = {"format": FORMAT, "version": VERSION, "step": step, "files": files}
    durable.write_file(folder / MANIFEST, lambda writer: writer.write(json.dumps(about).encode()))


def verify(folder: Path, step: int, names: Iterable[str] = FILES) -> None:
    """Hold files against their manifest, every byte; FileError with the first thing that is wrong."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            raise FileError("checkpoint-not-plain", path=str(folder))
        digests = _digests(folder / MANIFEST, step)
        for name in names:
            _verify_file(folder / name, digests[name])
    except OSError as error:
        raise FileError("model-unreadable", path=str(folder), reason=reason_of(error)) from error


def read_json(path: Path) -> Any:
    """The value in a small file of ours. Raises FileError and OSError."""
    size = _size(path)
    if size > LARGEST_JSON:
        raise FileError("checkpoint-size", path=str(path), found=spell(size), wanted=f"≤ {spell(LARGEST_JSON)}")
    try:
        return parse(read_file(path, most=LARGEST_JSON, within=path.parent))
    except JsonError as error:
        raise FileError("checkpoint-garbled", path=str(path), place=str(error)) from error


def _digests(path: Path, step: int) -> dict[str, Digest]:
    if not path.exists() and not path.is_symlink():
        raise FileError("checkpoint-unfinished", path=str(path.parent), manifest=MANIFEST)
    about = read_json(path)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError("checkpoint-garbled", path=str(path), place="format")
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise FileError("checkpoint-garbled", path=str(path), place="version")
    if version > VERSION:
        raise FileError("checkpoint-newer", path=str(path), found=version, known=VERSION)
    match about:
        case {"format": _, "version": _, "step": int(found), "files": dict(files), **rest} if not rest:
            if found != step:
                raise FileError("checkpoint-step", path=str(path), found=found)
            if set(files) != set(FILES):
                names = ", ".join(sorted(files))[:200]
                raise FileError("checkpoint-files", path=str(path), found=names, wanted=Listed(FILES))
            return {name: _digest(path, name, file) for name, file in files.items()}
    raise FileError("checkpoint-garbled", path=str(path), place=", ".join(sorted(about))[:80])


def _digest(path: Path, name: str, about: Any) -> Digest:
    match about:
        case {"size": int(size), "sha256": str(sha256), **rest} if not rest:
            return Digest(size, sha256)
    raise FileError("checkpoint-garbled", path=str(path), place=name)


def _verify_file(path: Path, wanted: Digest) -> None:
    size = _size(path)
    if size != wanted.size:
        raise FileError("checkpoint-size", path=str(path), found=f"{size} B", wanted=f"{wanted.size} B")
    found = durable.sha256_of(path)
    if found != wanted.sha256:
        raise FileError("checkpoint-hash", path=str(path), found=found[:12], wanted=wanted.sha256[:12])


def _size(path: Path) -> int:
    """Of a plain file: looked at before it is opened, since opening a pipe would wait for ever."""
    try:
        about = path.lstat()
    except FileNotFoundError as error:
        raise FileError("file-absent", path=str(path)) from error
    if not stat.S_ISREG(about.st_mode):
        raise FileError("checkpoint-not-plain", path=str(path))
    return about.st_size


LATEST = "LATEST"
_NAME = "step-[0-9]{8,}"
_MARGIN = 1.2  # what is asked to be free, per byte that will be written


class Snapshot(NamedTuple):
    """A run at the end of a step: tensors by name, and whatever else it needs to go on, as JSON."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


class Skipped(NamedTuple):
    """A checkpoint that cannot be used, and the error that says why in either language."""

    path: Path
    reason: FileError


class Found(NamedTuple):
    """The newest snapshot that is whole, if there is one, and the newer ones that are not."""

    snapshot: Snapshot | None
    skipped: tuple[Skipped, ...]


class Store:
    """The checkpoints in a folder, of which the newest `keep` are kept.

    every   steps between two of them. One at another step is there because a run had to stop, and counts only while
            it is the newest: the others are those of a run that was never stopped.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     for step in (10, 20, 30):
    ...         _ = store.save(Snapshot(step, {"w": torch.full((2,), float(step))}, {}, {"cursor": step}))
    ...     store.steps(), store.newest().snapshot.model["w"]
    ([20, 30], tensor([30., 30.]))
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2, every: int = 1) -> None:
        check_counts(keep=(keep, 2), every=(every, 1))  # with one kept, a flipped bit would be the end of the run
        self.folder = Path(folder)
        self.keep, self.every = keep, every

    def steps(self) -> list[int]:
        """The steps of which there is a folder, ascending; whether it is whole, only reading tells."""
        try:
            names = [path.name for path in self.folder.iterdir() if re.fullmatch(_NAME, path.name) and path.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FileError("model-unreadable", path=str(self.folder), reason=reason_of(error)) from error
        return sorted(step for name in names if self._path(step := int(name[5:])).name == name)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    # --- writing ---

    def save(self, snapshot: Snapshot) -> Path:
        """Put a snapshot on the disk, then let go of those that are no longer kept; the folder it is in.

        Steps after this one belong to a course that the run has left: they go too. Raises TooLargeError where the disk
        is full and FileError where it refuses; older checkpoints are then as they were, and nothing half made is left.
        """
        check_counts(step=(snapshot.step, 0))
        tensors = {MODEL: snapshot.model, OPTIMIZER: snapshot.optimizer}
        for found in tensors.values():
            check_dtypes(found)
        state = json_bytes("state", snapshot.state)
        if len(state) > LARGEST_JSON:
            raise ArgumentError("state-large", found=spell(len(state)), most=spell(LARGEST_JSON))
        target = self._path(snapshot.step)
        aside = durable.temporary(target)
        need = int(_MARGIN * (len(state) + sum(x.nbytes for found in tensors.values() for x in found.values())))
        try:
            self._make_room(need)
            try:
                self._write(aside, snapshot.step, tensors, state)
                self._put(aside, snapshot.step)
            finally:
                with suppress(OSError):  # what stopped us is the news, and the next sweep tries again
                    durable.discard(aside)
            self.sweep()
        except OSError as error:
            raise refusal(error, target, need) from error
        return target

    def sweep(self) -> None:
        """Remove what a killed process left half made or half removed."""
        durable.sweep(self.folder, f"{_NAME}|{LATEST}")

    def _make_room(self, need: int) -> None:
        if not self.folder.is_dir():
            durable.make_folder(self.folder)
            durable.sync_folder(self.folder.parent)
        self.sweep()
        durable.check_room(self.folder, need)

    def _write(self, aside: Path, step: int, tensors: dict[str, dict[str, Tensor]], state: bytes) -> None:
        durable.make_folder(aside)
        digests = {STATE: durable.write_file(aside / STATE, lambda writer: writer.write(state))}
        for name, found in tensors.items():

            def numbers(writer: durable.Writer, found: dict[str, Tensor] = found) -> None:
                write_tensors(cast(BinaryIO, writer), found)

            digests[name] = durable.write_file(aside / name, numbers)
        write_manifest(aside, step, digests)
        durable.sync_folder(aside)

    def _put(self, aside: Path, step: int) -> None:
        """In place, and only then the older ones away."""
        target = self._path(step)
        before = self.steps()
        for other in before:
            if other > step:
                durable.retire(self._path(other))
        if os.path.lexists(target):
            durable.retire(target)
        durable.move(aside, target)
        durable.sync_folder(self.folder)
        durable.replace_file(self.folder / LATEST, f"{target.name}\n".encode())
        older = [other for other in before if other < step]
        kept = [other for other in older if other % self.every == 0][-(self.keep - 1) :] or older[-1:]
        for other in older:
            if other not in kept:
                durable.retire(self._path(other))

    # --- reading ---

    def load(self, step: int) -> Snapshot:
        """The snapshot of a step, to the last bit, on the CPU. Raises FileError with what is wrong with it."""
        path = self._path(step)
        if not path.exists() and not path.is_symlink():
            there = Listed(self.steps()) or "–"
            raise FileError("checkpoint-absent", path=str(self.folder), step=step, steps=there)
        verify(path, step)
        state = read_json(path / STATE)
        if not isinstance(state, dict):
            raise FileError("checkpoint-garbled", path=str(path / STATE), place="state")
        return Snapshot(step, read_tensors(path / MODEL), read_tensors(path / OPTIMIZER), state)

    def newest(self) -> Found:
        """The newest snapshot that is whole, and which were passed over on the way to it, and why."""
        skipped: list[Skipped] = []
        for step in reversed(self.steps()):
            try:
                return Found(self.load(step), tuple(skipped))
            except FileError as error:
                skipped.append(Skipped(self._path(step), error))
        return Found(None, tuple(skipped))

    def last(self, n: int) -> list[int]:
        """The steps of the newest `n` checkpoints, ascending; fewer where there are no more."""
        check_counts(n=(n, 1))
        steps = self.steps()
        return [*(step for step in steps[:-1] if step % self.every == 0), *steps[-1:]][-n:]

    def models(self, n: int) -> Iterator[dict[str, Tensor]]:
        """The weights of these checkpoints, oldest first, one in memory at a time.

        A damaged one raises FileError: a mean over others would be another model than the one asked for.
        """
        for step in self.last(n):
            verify(self._path(step), step, [MODEL])
            yield read_tensors(self._path(step) / MODEL)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """A safetensors file as torch tensors in the dtypes it has. Raises FileError."""
    file = TensorFile(path)
    return {name: _tensor(array, file.dtypes[name]) for name, array in file.items()}


def _tensor(array: np.ndarray, dtype: str) -> Tensor:
    tensor = torch.from_numpy(np.array(array))  # a copy: the file's own memory cannot be written to
    if dtype == "bfloat16":  # the upper half of each float32, taken as bits: rounding would make all NaN alike
        return (tensor.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)
    return tensor.to(getattr(torch, dtype))  # an empty array comes as float32, whatever it was
