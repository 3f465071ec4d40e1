"""Sending the traces of all processes to each other, and what a distributed model divides among its processes.

A trace travels as the bytes of a trace file, without pickle; `regard.trace.gathering` merges them.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.errors import ArgumentError, RunError
from regard.files.output import reason_of
from regard.messages import Listed
from regard.records import See
from regard.trace.file import trace_bytes, trace_from_bytes
from regard.trace.gathering import AXES, Split, merge_traces
from regard.trace.placing import chunk_positions, merge_texts

if TYPE_CHECKING:
    from regard.trace import Trace

SPLITS: tuple[Split, ...] = tuple(AXES)
UNKNOWN = -1
"""In place of the number of a split, of bins, or of bytes: not known, no map, or not sent."""


def split_of(model: nn.Module, attention: Callable[[], Sequence[nn.Module]]) -> Split | None:
    """What the processes divide when they run the model; None where it is unknown, both, or a single process.

    attention   returns the modules that compute attention: with sharded projections, each process has some of the heads
    """
    if not (dist.is_available() and dist.is_initialized()):
        return None
    wrappers: tuple[Any, ...] = (nn.parallel.DistributedDataParallel,)
    if fsdp := sys.modules.get("torch.distributed.fsdp"):  # else no module is one of FSDP
        wrappers += (fsdp.FSDPModule, fsdp.FullyShardedDataParallel)
    several = attention()
    meshes = [getattr(weight, "device_mesh", None) for module in several for weight in module.parameters()]
    if any(isinstance(module, wrappers) for module in model.modules()):
        return "samples" if all(mesh is None or mesh.ndim == 1 for mesh in meshes) else None
    sharded = [any(_is_sharded(weight) for weight in module.parameters()) for module in several]
    return "heads" if sharded and all(sharded) else None


def _is_sharded(weight: Tensor) -> bool:
    """Whether it is a DTensor of which each process has a part."""
    return any(place.is_shard() for place in getattr(weight, "placements", ()))


def gathered(trace: "Trace", group: Any, split: Split | None, map: int | None, positions: Any = None) -> "Trace":
    """The Trace of the whole, in every process of the group."""
    if not (dist.is_available() and dist.is_initialized()):
        raise ArgumentError("gather-alone")
    if split is not None and split not in SPLITS:
        raise ArgumentError("option-unknown", option="split", asked=split, choices=Listed(SPLITS))
    bins = See(map=map).map  # validates it
    chosen = split or trace.split
    error, content, own = None, b"", np.zeros(0, np.int64)
    try:
        own = _own_positions(trace, positions, chosen, group)
        content = trace_bytes(trace)
    except Exception as found:  # the others wait for this process, and must be informed first
        error = found
    numbers = [
        UNKNOWN if chosen is None else SPLITS.index(chosen),
        UNKNOWN if bins is None else bins,
        own.nbytes,
        UNKNOWN if error is not None else len(content),
    ]
    try:
        every = _exchanged(numbers, group)
        if error is not None:
            raise error
        agreed = _agreed(every)
        received = _sent_to_all(content, [sizes[-1] for sizes in every], group)
        places = _sent_to_all(own.tobytes(), [sizes[-2] for sizes in every], group)
    except (dist.DistError, RuntimeError) as found:
        if found is error or isinstance(found, torch.OutOfMemoryError | RunError):
            raise
        rank, world = dist.get_rank(group), dist.get_world_size(group)
        raise RunError("gather-lost", rank=rank, world=world, reason=reason_of(found)) from found
    parts = [trace_from_bytes(each, f"rank {rank}") for rank, each in enumerate(received)]
    if agreed == "queries":
        return merge_texts(parts, [np.frombuffer(each, np.int64) for each in places], bins)
    return merge_traces(parts, agreed, bins)


def _own_positions(trace: "Trace", positions: Any, split: Split | None, group: Any) -> np.ndarray:
    """Where the queries of this process are in the text; none unless the queries are divided."""
    if split != "queries":
        if positions is not None:
            raise ArgumentError("gather-positions-unused", split=split)
        return np.zeros(0, np.int64)
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    if positions is None or positions == "balanced":
        T = max((record.shape[2] for record in trace), default=0)
        return np.asarray(chunk_positions(T * world, world, positions is not None)[rank], np.int64)
    found = np.asarray(positions)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ArgumentError("gather-positions-type", found=type(positions).__name__)
    return found.astype(np.int64)


def _agreed(every: Sequence[Sequence[int]]) -> Split:
    """The split that all processes chose. Raises the same error in every process, so that none waits."""
    failed = next((rank for rank, (*_, size) in enumerate(every) if size == UNKNOWN), None)
    if failed is not None:
        raise RunError("gather-failed", rank=failed)
    if any(split == UNKNOWN for split, *_ in every):
        raise ArgumentError("gather-split")
    asked = [f'split="{SPLITS[split]}", map={None if bins == UNKNOWN else bins}' for split, bins, *_ in every]
    if len(set(asked)) > 1:
        raise ArgumentError("gather-arguments", found=Listed(dict.fromkeys(asked)))
    return SPLITS[every[0][0]]


def _exchanged(numbers: Sequence[int], group: Any) -> list[list[int]]:
    """The numbers of every process, in the order of their ranks."""
    own = torch.tensor(numbers, dtype=torch.int64, device=_device(group))
    every = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(every, own, group=group)
    return [each.tolist() for each in every]


def _sent_to_all(content: bytes, sizes: Sequence[int], group: Any) -> list[bytes]:
    """The bytes of every process. One after the other: they differ in size, and a GPU holds one of them at a time."""
    found = []
    for rank, size in enumerate(sizes):
        part = torch.empty(size, dtype=torch.uint8, device=_device(group))
        if rank == dist.get_rank(group):
            part.copy_(torch.from_numpy(np.frombuffer(bytearray(content), np.uint8)))
        dist.broadcast(part, src=rank if group is None else dist.get_global_rank(group, rank), group=group)
        found.append(part.cpu().numpy().tobytes())
    return found


def _device(group: Any) -> torch.device:
    """The device that the backend of the group can send from."""
    return torch.device("cuda" if "nccl" in dist.get_backend(group) else "cpu")
