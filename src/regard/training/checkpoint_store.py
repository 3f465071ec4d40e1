"""The checkpoints of a run. Each is a folder that is complete or absent: written under a temporary name, then renamed.

The manifest holds the size and hash of every file. It is written last and verified on reading.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from regard.arrays import check_counts
from regard.checkpoints.tensor_file import TensorFile, check_dtypes, write_tensors
from regard.errors import ArgumentError, FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import reason_of, write_error
from regard.files.safe_open import read_file
from regard.memory import format_bytes
from regard.messages import Listed
from regard.training import run_files
from regard.training.metrics import json_bytes
from regard.training.run_files import Digest

FORMAT, VERSION, IN_PARTS = "regard-checkpoint", 1, 2
"""IN_PARTS is the version of checkpoints that several processes write (`sharded_store`)."""
MANIFEST = "manifest.json"
MODEL, OPTIMIZER, STATE = FILES = "model.safetensors", "optimizer.safetensors", "state.json"
LARGEST_JSON = 2**24


def write_manifest(folder: Path, step: int, digests: Mapping[str, Digest], version: int = VERSION) -> None:
    """Write the manifest that marks a folder as a complete checkpoint. Raises OSError."""
    files = {name: digest._asdict() for name, digest in digests.items()}
    about = {"format": FORMAT, "version": version, "step": step, "files": files}
    run_files.write_file(folder / MANIFEST, lambda writer: writer.write(json.dumps(about).encode()))


def verify(folder: Path, step: int, names: Iterable[str] = FILES) -> None:
    """Check the size and hash of files against the manifest. Raises FileError for the first difference."""
    try:
        digests = read_manifest(folder, step, lambda count: FILES)
        for name in names:
            verify_file(folder / name, digests[name])
    except OSError as error:
        raise FileError("model-unreadable", path=str(folder), reason=reason_of(error)) from error


def read_manifest(folder: Path, step: int, names: Callable[[int], Sequence[str]]) -> dict[str, Digest]:
    """The size and hash of each file of a checkpoint. Raises FileError and OSError.

    names   the names of the files, by their number
    """
    if folder.is_symlink() or not folder.is_dir():
        raise FileError("checkpoint-not-plain", path=str(folder))
    return _digests(folder / MANIFEST, step, names)


def read_json(path: Path) -> Any:
    """The value of a small JSON file of a checkpoint. Raises FileError and OSError."""
    size = _size(path)
    if size > LARGEST_JSON:
        raise FileError(
            "checkpoint-size", path=str(path), found=format_bytes(size), wanted=f"≤ {format_bytes(LARGEST_JSON)}"
        )
    try:
        return parse_json(read_file(path, most=LARGEST_JSON, within=path.parent))
    except JsonError as error:
        raise FileError("checkpoint-garbled", path=str(path), place=str(error)) from error


def _digests(path: Path, step: int, names: Callable[[int], Sequence[str]]) -> dict[str, Digest]:
    if not path.exists() and not path.is_symlink():
        raise FileError("checkpoint-unfinished", path=str(path.parent), manifest=MANIFEST)
    about = read_json(path)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError("checkpoint-garbled", path=str(path), place="format")
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise FileError("checkpoint-garbled", path=str(path), place="version")
    if version > IN_PARTS:
        raise FileError("checkpoint-newer", path=str(path), found=version, known=IN_PARTS)
    match about:
        case {"format": _, "version": _, "step": int(found), "files": dict(files), **rest} if not rest:
            if found != step:
                raise FileError("checkpoint-step", path=str(path), found=found)
            wanted = names(len(files))
            if set(files) != set(wanted):
                listed = ", ".join(sorted(files))[:200]
                raise FileError("checkpoint-files", path=str(path), found=listed, wanted=Listed(wanted[:10]))
            return {name: _digest(path, name, file) for name, file in files.items()}
    raise FileError("checkpoint-garbled", path=str(path), place=", ".join(sorted(about))[:80])


def _digest(path: Path, name: str, about: Any) -> Digest:
    match about:
        case {"size": int(size), "sha256": str(sha256), **rest} if not rest:
            return Digest(size, sha256)
    raise FileError("checkpoint-garbled", path=str(path), place=name)


def verify_file(path: Path, wanted: Digest) -> None:
    """Check the size and hash of one file. Raises FileError and OSError."""
    size = _size(path)
    if size != wanted.size:
        raise FileError("checkpoint-size", path=str(path), found=f"{size} B", wanted=f"{wanted.size} B")
    found = run_files.sha256_of(path)
    if found != wanted.sha256:
        raise FileError("checkpoint-hash", path=str(path), found=found[:12], wanted=wanted.sha256[:12])


def _size(path: Path) -> int:
    """The size of a regular file. Checked before opening, because opening a FIFO would block."""
    try:
        about = path.lstat()
    except FileNotFoundError as error:
        raise FileError("file-absent", path=str(path)) from error
    if not stat.S_ISREG(about.st_mode):
        raise FileError("checkpoint-not-plain", path=str(path))
    return about.st_size


LATEST = "LATEST"
_NAME = "step-[0-9]{8,}"
MARGIN = 1.2
"""Bytes that must be free per byte to be written."""


class Snapshot(NamedTuple):
    """A run after a step: tensors by name, and the rest of the state needed to continue, as JSON values."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


def encoded_state(snapshot: Snapshot) -> bytes:
    """The state as JSON. Raises ArgumentError if it is larger than what is read."""
    state = json_bytes("state", snapshot.state)
    if len(state) > LARGEST_JSON:
        raise ArgumentError("state-large", found=format_bytes(len(state)), most=format_bytes(LARGEST_JSON))
    return state


class SkippedCheckpoint(NamedTuple):
    """A checkpoint that cannot be used, and the error that gives the reason."""

    path: Path
    reason: FileError


class NewestCheckpoint(NamedTuple):
    """The newest complete snapshot, None if there is none, and the newer checkpoints that are damaged."""

    snapshot: Snapshot | None
    skipped: tuple[SkippedCheckpoint, ...]


class CheckpointStore:
    """The checkpoints in a folder. Only the newest `keep` are kept.

    every   steps between two checkpoints. A checkpoint at another step was written when a run was stopped. It counts
            only while it is the newest, so that a stopped run keeps the same checkpoints as an uninterrupted one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = CheckpointStore(folder)
    ...     for step in (10, 20, 30):
    ...         _ = store.save(Snapshot(step, {"w": torch.full((2,), float(step))}, {}, {"cursor": step}))
    ...     store.steps(), store.newest().snapshot.model["w"]
    ([20, 30], tensor([30., 30.]))
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2, every: int = 1) -> None:
        check_counts(keep=(keep, 2), every=(every, 1))  # with a single checkpoint, one flipped bit would lose the run
        self.folder = Path(folder)
        self.keep, self.every = keep, every

    def steps(self) -> list[int]:
        """The steps that have a folder, ascending. The folders are not verified."""
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
        """Write a snapshot, then remove checkpoints that are no longer kept. Returns its folder.

        Checkpoints of later steps are removed too: the run was rewound. Raises TooLargeError if the disk is full,
        FileError if writing fails; then older checkpoints are unchanged and no partial file is left.
        """
        check_counts(step=(snapshot.step, 0))
        tensors = {MODEL: snapshot.model, OPTIMIZER: snapshot.optimizer}
        for found in tensors.values():
            check_dtypes(found)
        state = encoded_state(snapshot)
        target = self._path(snapshot.step)
        partial = run_files.temporary(target)
        need = int(MARGIN * (len(state) + sum(x.nbytes for found in tensors.values() for x in found.values())))
        try:
            self._prepare_folder(need)
            try:
                self._write(partial, snapshot.step, tensors, state)
                self._publish(partial, snapshot.step)
            finally:
                with suppress(OSError):  # must not hide the first error; the next sweep tries again
                    run_files.discard(partial)
            self.sweep()
        except OSError as error:
            raise write_error(error, target, need) from error
        return target

    def sweep(self) -> None:
        """Remove partial files that a killed process left."""
        run_files.sweep(self.folder, f"{_NAME}|{LATEST}")

    def _prepare_folder(self, need: int) -> None:
        if not self.folder.is_dir():
            run_files.make_folder(self.folder)
            run_files.sync_folder(self.folder.parent)
        self.sweep()
        run_files.check_free_space(self.folder, need)

    def _write(self, partial: Path, step: int, tensors: dict[str, dict[str, Tensor]], state: bytes) -> None:
        run_files.make_folder(partial)
        digests = {STATE: run_files.write_file(partial / STATE, lambda writer: writer.write(state))}
        for name, found in tensors.items():

            def write(writer: run_files.Writer, found: dict[str, Tensor] = found) -> None:
                write_tensors(cast(BinaryIO, writer), found)

            digests[name] = run_files.write_file(partial / name, write)
        write_manifest(partial, step, digests)
        run_files.sync_folder(partial)

    def _publish(self, partial: Path, step: int) -> None:
        """Rename the new checkpoint to its final name, and only then remove older ones."""
        target = self._path(step)
        before = self.steps()
        for other in before:
            if other > step:
                run_files.retire(self._path(other))
        if os.path.lexists(target):
            run_files.retire(target)
        run_files.move(partial, target)
        run_files.sync_folder(self.folder)
        run_files.replace_file(self.folder / LATEST, f"{target.name}\n".encode())
        older = [other for other in before if other < step]
        kept = [other for other in older if other % self.every == 0][-(self.keep - 1) :] or older[-1:]
        for other in older:
            if other not in kept:
                run_files.retire(self._path(other))

    # --- reading ---

    def load(self, step: int) -> Snapshot:
        """The snapshot of a step, bit for bit as saved, on the CPU. Raises FileError if it is absent or damaged."""
        path = self._existing(step)
        verify(path, step)
        return Snapshot(step, read_tensors(path / MODEL), read_tensors(path / OPTIMIZER), read_state(path))

    def _existing(self, step: int) -> Path:
        """The folder of a step. Raises FileError if there is none."""
        path = self._path(step)
        if not path.exists() and not path.is_symlink():
            steps = Listed(self.steps()) or "–"
            raise FileError("checkpoint-absent", path=str(self.folder), step=step, steps=steps)
        return path

    def newest(self) -> NewestCheckpoint:
        """The newest complete snapshot, and the newer checkpoints that were skipped."""
        skipped: list[SkippedCheckpoint] = []
        for step in reversed(self.steps()):
            try:
                return NewestCheckpoint(self.load(step), tuple(skipped))
            except FileError as error:
                skipped.append(SkippedCheckpoint(self._path(step), error))
        return NewestCheckpoint(None, tuple(skipped))

    def last(self, n: int) -> list[int]:
        """The steps of the newest `n` checkpoints, ascending; fewer if there are fewer."""
        check_counts(n=(n, 1))
        steps = self.steps()
        return [*(step for step in steps[:-1] if step % self.every == 0), *steps[-1:]][-n:]

    def models(self, n: int) -> Iterator[dict[str, Tensor]]:
        """The weights of the newest `n` checkpoints, oldest first, one in memory at a time.

        Raises FileError for a damaged one: the mean of the others would be a different model.
        """
        for step in self.last(n):
            verify(self._path(step), step, [MODEL])
            yield read_tensors(self._path(step) / MODEL)


def read_state(folder: Path) -> dict[str, Any]:
    """The state of a verified checkpoint. Raises FileError and OSError."""
    state = read_json(folder / STATE)
    if not isinstance(state, dict):
        raise FileError("checkpoint-garbled", path=str(folder / STATE), place="state")
    return state


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, in their stored dtypes. Raises FileError."""
    file = TensorFile(path)
    return {name: tensor_of(array, file.dtypes[name]) for name, array in file.items()}


def tensor_of(array: np.ndarray, dtype: str) -> Tensor:
    """A copy of an array that TensorFile returned, in its stored dtype."""
    tensor = torch.from_numpy(np.array(array))  # a copy: the mapped file is read-only
    if dtype == "bfloat16":  # the upper half of each float32, as bits: rounding would change the bits of a NaN
        return (tensor.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)
    return tensor.to(getattr(torch, dtype))  # an empty array is float32 in NumPy whatever its stored dtype
