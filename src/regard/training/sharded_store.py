"""Checkpoints of a divided model: every process writes and reads its part, and any number of processes can read one.

The planners of `torch.distributed.checkpoint` determine which process writes and reads what. Its default file of
metadata is a pickle, which is never read here: the parts are safetensors files, with their offsets as PyTorch's
HuggingFaceStorageReader expects them.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)

from regard.arrays import check_counts
from regard.axes import Shape
from regard.checkpoints.tensor_file import TensorFile, check_dtypes, write_tensors
from regard.errors import FileError, RunError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import reason_of, write_error
from regard.training import checkpoint_store, run_files
from regard.training.checkpoint_store import IN_PARTS, STATE, CheckpointStore, Snapshot
from regard.training.processes import Ranks
from regard.training.run_files import Digest
from regard.training.sharding import own_part

OFFSETS, OFFSET = "DCP_SHARDING_INFO", "saved_offsets"
"""PyTorch's names for the metadata that holds where each part begins in its tensor."""
MODEL, OPTIMIZER = "model/", "optimizer/"
"""Prefixes of the names of tensors."""
_HASH_BYTES = 32
_PLANNING: dict[str, Any] = {"flatten_state_dict": False, "flatten_sharded_tensors": False}


class _Part(NamedTuple):
    """A part of a tensor: rows of the whole from `start` on, or all of a tensor without axes."""

    file: TensorFile
    shape: Shape
    offsets: Shape

    @property
    def start(self) -> int:
        return self.offsets[0] if self.offsets else 0


class ShardedStore(CheckpointStore):
    """The checkpoints in a folder that all processes write and read; all must make the same calls.

    weights   the weights of the model by name: what is read is divided as they are
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        ranks: Ranks,
        weights: Mapping[str, Tensor],
        keep: int = 2,
        every: int = 1,
    ) -> None:
        super().__init__(folder, keep, every)
        self.ranks, self._weights = ranks, weights

    # --- writing ---

    def save(self, snapshot: Snapshot) -> Path:
        """Write a snapshot, as `CheckpointStore.save`. The first process writes what is not divided, and publishes."""
        check_counts(step=(snapshot.step, 0))
        tensors = _by_name(snapshot)
        check_dtypes(tensors)
        state = checkpoint_store.encoded_state(snapshot)
        own, offsets = self._own_parts(tensors)
        is_first = self.ranks.is_first
        target = self._path(snapshot.step)
        written = sum(part.nbytes for part in own.values()) + len(state) * is_first
        need, pid = self._sums(int(checkpoint_store.MARGIN * written), os.getpid() if is_first else 0)
        partial = run_files.temporary(target, pid)
        try:
            try:
                with self._together():
                    if is_first:
                        self._prepare_folder(need)
                        run_files.make_folder(partial)
                with self._together():
                    path = partial / shard_names(self.ranks.world)[self.ranks.rank]
                    digest = _write_part(path, own, offsets)
                digests = self._all_digests(digest)
                with self._together():
                    if is_first:
                        digests[STATE] = run_files.write_file(partial / STATE, lambda writer: writer.write(state))
                        checkpoint_store.write_manifest(partial, snapshot.step, digests, IN_PARTS)
                        run_files.sync_folder(partial)
                        self._publish(partial, snapshot.step)
                        self.sweep()
            finally:
                if is_first:
                    with suppress(OSError):  # must not hide the first error; the next sweep tries again
                        run_files.discard(partial)
        except OSError as error:
            raise write_error(error, target, need) from error
        return target

    def _own_parts(self, tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Shape]]:
        """What this process writes, and its offsets. The first process writes tensors that are not divided."""
        planner = DefaultSavePlanner(**_PLANNING)
        planner.set_up_planner(tensors, is_coordinator=self.ranks.is_first)
        own, offsets = {}, {}
        for item in planner.create_local_plan().items:
            name, about = item.index.fqn, item.tensor_data
            assert about is not None
            is_divided = own_part(tensors[name]) is not tensors[name]
            if self.ranks.is_first or (is_divided and about.chunk.sizes.numel()):
                own[name] = cast(Tensor, planner.resolve_data(item))
                offsets[name] = tuple(about.chunk.offsets)
        return own, offsets

    def _all_digests(self, digest: Digest) -> dict[str, Digest]:
        """The digests of all parts by the name of the file."""
        rank, world = self.ranks.rank, self.ranks.world
        numbers = [0] * (world * (1 + _HASH_BYTES))
        start = rank * (1 + _HASH_BYTES)
        numbers[start : start + 1 + _HASH_BYTES] = [digest.size, *bytes.fromhex(digest.sha256)]
        found = self._sums(*numbers)
        every = [found[at : at + 1 + _HASH_BYTES] for at in range(0, len(found), 1 + _HASH_BYTES)]
        digests = [Digest(size, bytes(hash).hex()) for size, *hash in every]
        return dict(zip(shard_names(world), digests, strict=True))

    def _sums(self, *numbers: int) -> list[int]:
        """The sum of each number over all processes."""
        found: list[int] = self.ranks.summed(torch.tensor(numbers, device=self.ranks.device)).tolist()
        return found

    @contextmanager
    def _together(self) -> Iterator[None]:
        """A part of the work after which all processes wait for each other, and all fail if one fails."""
        error: Exception | None = None
        try:
            yield
        except Exception as found:
            error = found
        try:
            self.ranks.wait()
            world = range(self.ranks.world)
            failed = self._sums(*(int(rank == self.ranks.rank and error is not None) for rank in world))
        finally:
            if error is not None:
                raise error
        if any(failed):
            raise RunError("rank-failed", rank=failed.index(1), world=self.ranks.world)

    # --- reading ---

    def load(self, step: int) -> Snapshot:
        """The snapshot of a step, bit for bit as saved, divided as the weights of this model."""
        path = self._existing(step)
        tensors = self._read(path, step, MODEL, OPTIMIZER)
        state = checkpoint_store.read_state(path)
        return Snapshot(step, _without(MODEL, tensors), _without(OPTIMIZER, tensors), state)

    def models(self, n: int) -> Iterator[dict[str, Tensor]]:
        for step in self.last(n):
            yield _without(MODEL, self._read(self._path(step), step, MODEL))

    def _read(self, path: Path, step: int, *prefixes: str) -> dict[str, Tensor]:
        """This process's parts of all tensors with these prefixes, from a verified checkpoint."""
        try:
            names = self._verified(path, step)
            files = [TensorFile(path / name) for name in names if name != STATE]
        except OSError as error:
            raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
        every = _parts(files)
        parts = {name: found for name, found in every.items() if name.startswith(prefixes)}
        tensors = {name: self._target(name, found) for name, found in parts.items()}
        _fill(tensors, parts)
        return tensors

    def _verified(self, path: Path, step: int) -> list[str]:
        """The names of the files of a checkpoint. Each process verifies some; all raise FileError for the same file."""
        digests = checkpoint_store.read_manifest(path, step, lambda count: (*shard_names(count - 1), STATE))
        names = sorted(digests)
        damaged = [0] * len(names)
        for at in range(self.ranks.rank, len(names), self.ranks.world):
            try:
                checkpoint_store.verify_file(path / names[at], digests[names[at]])
            except (FileError, OSError):
                damaged[at] = 1
        self.ranks.wait()  # hashing takes longer in some processes
        for at, is_damaged in enumerate(self._sums(*damaged)):
            if is_damaged:
                checkpoint_store.verify_file(path / names[at], digests[names[at]])
                raise RunError("rank-failed", rank=at % self.ranks.world, world=self.ranks.world)
        return names

    def _target(self, name: str, parts: Sequence[_Part]) -> Tensor:
        """An empty tensor for what is read; whole where no weight says how it is divided."""
        shape, dtype = _shape(parts), getattr(torch, parts[0].file.dtypes[name])
        like = self._weights.get(_weight_name(name))
        if like is None or like.shape != shape:
            return torch.empty(shape, dtype=dtype)
        return torch.empty_like(like, dtype=dtype)


def shard_names(world: int) -> tuple[str, ...]:
    """The names of the files of all processes.

    >>> shard_names(2)
    ('shard-00001-of-00002.safetensors', 'shard-00002-of-00002.safetensors')
    """
    return tuple(f"shard-{rank:05d}-of-{world:05d}.safetensors" for rank in range(1, world + 1))


def _by_name(snapshot: Snapshot) -> dict[str, Tensor]:
    named = ((MODEL, snapshot.model), (OPTIMIZER, snapshot.optimizer))
    return {prefix + name: tensor.detach() for prefix, found in named for name, tensor in found.items()}


def _without(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _weight_name(name: str) -> str:
    """The weight that a tensor belongs to: "optimizer/output.bias/exp_avg" is divided as "output.bias"."""
    return name.removeprefix(MODEL) if name.startswith(MODEL) else name.removeprefix(OPTIMIZER).rpartition("/")[0]


def _write_part(path: Path, tensors: Mapping[str, Tensor], offsets: Mapping[str, Shape]) -> Digest:
    """Write the part of one process. Raises OSError."""
    metadata = {OFFSETS: json.dumps({name: {OFFSET: start} for name, start in offsets.items()})}
    return run_files.write_file(path, lambda file: write_tensors(cast(BinaryIO, file), tensors, metadata=metadata))


# --- parts -----------------------------------------------------------------------------------------------


def _parts(files: Sequence[TensorFile]) -> dict[str, list[_Part]]:
    """The parts of each tensor, in order. FileError unless they cover all of its rows exactly once."""
    found: dict[str, list[_Part]] = {}
    for file in files:
        offsets = _offsets(file)
        for name, shape in file.shapes.items():
            found.setdefault(name, []).append(_Part(file, shape, offsets[name]))
    for name, parts in found.items():
        parts.sort(key=lambda part: part.start)
        end = 0
        for part in parts:
            is_aligned = part.shape[1:] == parts[0].shape[1:] and not any(part.offsets[1:])
            if not is_aligned or part.start != end or (len(parts) > 1 and not prod(part.shape[:1])):
                raise FileError("model-garbled", path=str(part.file.path), place=name[:80])
            end += part.shape[0] if part.shape else 1
    return found


def _offsets(file: TensorFile) -> dict[str, Shape]:
    """Where each part of a file begins in its tensor. Raises FileError."""
    try:
        about = parse_json(file.metadata.get(OFFSETS, "{}").encode("utf-8", "surrogatepass"))
    except JsonError as error:
        raise FileError("model-garbled", path=str(file.path), place=OFFSETS) from error
    found = {}
    for name, shape in file.shapes.items():
        match about:
            case dict() if isinstance(entry := about.get(name), dict) and isinstance(start := entry.get(OFFSET), list):
                if len(start) == len(shape) and all(type(size) is int and size >= 0 for size in start):
                    found[name] = tuple(start)
                    continue
        raise FileError("model-garbled", path=str(file.path), place=f"{OFFSETS}, {name[:80]}")
    return found


def _shape(parts: Sequence[_Part]) -> Shape:
    first = parts[0].shape
    return (sum(part.shape[0] for part in parts), *first[1:]) if first else ()


def _fill(tensors: dict[str, Tensor], parts: Mapping[str, Sequence[_Part]]) -> None:
    """Read what this process has of each tensor, as PyTorch's planner divides it."""
    chunks = {
        name: TensorStorageMetadata(
            TensorProperties(dtype=tensors[name].dtype),
            torch.Size(_shape(found)),
            [ChunkStorageMetadata(torch.Size(part.offsets), torch.Size(part.shape)) for part in found],
        )
        for name, found in parts.items()
    }
    by_start = {(name, part.offsets): part.file for name, found in parts.items() for part in found}
    planner = DefaultLoadPlanner(**_PLANNING)
    planner.set_up_planner(cast(Any, tensors), Metadata(cast(Any, chunks)))
    for item in planner.create_local_plan().items:
        name, start = item.storage_index.fqn, item.storage_index.offset
        assert start is not None
        file = by_start[name, tuple(start)]
        block = tuple(slice(at, at + size) for at, size in zip(item.storage_offsets, item.lengths, strict=True))
        target = planner.resolve_tensor(item)
        target.copy_(checkpoint_store.tensor_of(file[name][block], file.dtypes[name]))
        planner.commit_tensor(item, target)
