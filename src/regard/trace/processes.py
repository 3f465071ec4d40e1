"""`Trace.gather`: the traces of all processes of a distributed run are sent to each other and merged.

A trace travels as the bytes of a trace file, without pickle; `trace_merging` and `context_parallel` merge them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import ArgumentError, RunError
from regard.files.output import reason_of
from regard.messages import Listed
from regard.records import See
from regard.trace.context_parallel import chunk_positions, merge_texts
from regard.trace.file import trace_bytes, trace_from_bytes
from regard.trace.trace_merging import AXES, Split, merge_traces

if TYPE_CHECKING:
    from regard.trace.trace import Trace

SPLITS: tuple[Split, ...] = tuple(AXES)
UNKNOWN = -1
"""In place of the number of a split, of bins, or of bytes: not known, no map, or not sent."""


def gathered(trace: "Trace", group: Any, split: Split | None, map: int | None, positions: Any = None) -> "Trace":
    """The Trace of the whole, in every process of the group."""
    import torch
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        raise ArgumentError("gather-alone")
    if split is not None and split not in SPLITS:
        raise ArgumentError("option-unknown", option="split", asked=split, choices=Listed(SPLITS))
    bins = See(map=map).map  # validates it
    chosen, processes = split or trace.split, _Processes(group)
    error, content, own = None, b"", np.zeros(0, np.int64)
    try:
        own = _own_positions(trace, positions, chosen, processes)
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
        every = processes.exchanged(numbers)
        if error is not None:
            raise error
        agreed = _agreed(every)
        received = processes.sent_to_all(content, [sizes[-1] for sizes in every])
        places = processes.sent_to_all(own.tobytes(), [sizes[-2] for sizes in every])
    except (dist.DistError, RuntimeError) as found:
        if found is error or isinstance(found, torch.OutOfMemoryError | RunError):
            raise
        reason = reason_of(found)
        raise RunError("gather-lost", rank=processes.rank, world=processes.world, reason=reason) from found
    parts = [trace_from_bytes(each, f"rank {rank}") for rank, each in enumerate(received)]
    if agreed == "queries":
        return merge_texts(parts, [np.frombuffer(each, np.int64) for each in places], bins)
    return merge_traces(parts, agreed, bins)


def _own_positions(trace: "Trace", positions: Any, split: Split | None, processes: "_Processes") -> np.ndarray:
    """Where the queries of this process are in the text; none unless the queries are divided."""
    if split != "queries":
        if positions is not None:
            raise ArgumentError("gather-positions-unused", split=split)
        return np.zeros(0, np.int64)
    if positions is None or positions == "balanced":
        T, world = max((record.shape[2] for record in trace), default=0), processes.world
        return np.asarray(chunk_positions(T * world, world, positions is not None)[processes.rank], np.int64)
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


class _Processes:
    """A process group of torch.distributed."""

    def __init__(self, group: Any) -> None:
        import torch
        import torch.distributed as dist

        self._torch, self._dist, self._group = torch, dist, group
        self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)
        self._device = "cuda" if "nccl" in dist.get_backend(group) else "cpu"
        """What the backend of the group can send from."""

    def exchanged(self, numbers: Sequence[int]) -> list[list[int]]:
        """The numbers of every process, in the order of their ranks."""
        own = self._torch.tensor(numbers, dtype=self._torch.int64, device=self._device)
        every = [self._torch.empty_like(own) for _ in range(self.world)]
        self._dist.all_gather(every, own, group=self._group)
        return [each.tolist() for each in every]

    def sent_to_all(self, content: bytes, sizes: Sequence[int]) -> list[bytes]:
        """The bytes of every process, one after the other: sizes differ, and a GPU holds one at a time."""
        found = []
        for rank, size in enumerate(sizes):
            part = self._torch.empty(size, dtype=self._torch.uint8, device=self._device)
            if rank == self.rank:
                part.copy_(self._torch.from_numpy(np.frombuffer(bytearray(content), np.uint8)))
            source = rank if self._group is None else self._dist.get_global_rank(self._group, rank)
            self._dist.broadcast(part, src=source, group=self._group)
            found.append(part.cpu().numpy().tobytes())
        return found
