"""`Trace.gather`: the traces of all processes of a distributed run are sent to each other and merged.

A trace travels as the bytes of a trace file, without pickle. With context parallelism each process has some queries and
some keys of a call: a rectangle of the whole matrix of weights, with its own softmax. Each of its queries has the share
exp(LSE of the call − LSE of the whole) of the whole softmax. `trace_merging` merges parts that lie side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.arrays import Array, convert_like, to_numpy
from regard.axes import Shape
from regard.errors import ArgumentError, NotKeptError, RunError
from regard.exact_weights import ExactWeights, WeightsArray
from regard.files.output import reason_of
from regard.masks.padding import Padding
from regard.messages import Listed
from regard.records import Record, See
from regard.statistics_table import STATISTICS
from regard.trace.file import trace_bytes, trace_from_bytes
from regard.trace.trace_merging import AXES, Shares, Split, Tokens, merge_traces, sums_over_queries

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


class Placed(NamedTuple):
    """A call, and where its queries and its keys are in the whole, in ascending order or in ascending pieces."""

    record: Record
    rows: np.ndarray
    cols: np.ndarray


def chunk_positions(T: int, world: int, balanced: bool = False) -> list[np.ndarray]:
    """The positions of each process: consecutive ones, or balanced for causal attention: chunks i and 2 W − 1 − i.

    >>> [positions.tolist() for positions in chunk_positions(8, 2, balanced=True)]
    [[0, 1, 6, 7], [2, 3, 4, 5]]
    """
    if T % (2 * world if balanced else world):
        raise ArgumentError("gather-chunks", count=T, chunks=2 * world if balanced else world)
    if not balanced:
        return np.split(np.arange(T), world)
    chunks = np.split(np.arange(T), 2 * world)
    return [np.concatenate([chunks[rank], chunks[-1 - rank]]) for rank in range(world)]


# --- traces ----------------------------------------------------------------------------------------------


def merge_texts(parts: "Sequence[Trace]", positions: Sequence[np.ndarray], map: int | None = 256) -> "Trace":
    """One Trace from processes that have some positions of the text each, in the order of their ranks.

    A call attends to all keys, in the order of the processes, or to the keys of one process: then call i of process r
    has those of process (r − i) mod W, as PyTorch's ring attention passes them on.

    Raises ArgumentError where the positions are not those of a whole text, or the calls are neither.
    """
    from regard.trace.trace import Trace

    every = np.concatenate(positions)
    if not np.array_equal(np.sort(every), np.arange(len(every))):
        raise ArgumentError("gather-positions", sizes=Listed(str(len(each)) for each in positions))
    modules = [list(dict.fromkeys(record.module for record in part)) for part in parts]
    for rank, names in enumerate(modules):
        if names != modules[0]:
            found = {"count": len(parts[rank]), "wanted": len(parts[0]), "rank": rank}
            name = next(iter(set(names) ^ set(modules[0])), names[0])
            raise ArgumentError("gather-names", name=name, other="–", **found)
    made = Trace()
    forwards = []
    for name in modules[0]:
        calls = [[record for record in part if record.module == name] for part in parts]
        forwards.append(_forwards(calls, positions, name))
    for at in range(max((len(calls) for calls in forwards), default=0)):
        for merged in forwards:
            if at < len(merged):
                made.append(merge_placed(merged[at], map))
    made.texts, made.candidates, made.beams = parts[0].texts, parts[0].candidates, parts[0].beams
    made.temperatures = parts[0].temperatures
    made.opening = parts[0].opening
    return made


def _forwards(calls: Sequence[Sequence[Record]], positions: Sequence[np.ndarray], name: str) -> list[list[Placed]]:
    """The calls of a module in all processes, by forward of the model."""
    world, T = len(calls), sum(map(len, positions))
    if all(record.shape[3] == T for records in calls for record in records) and len({*map(len, calls)}) == 1:
        every = np.concatenate(positions)
        return [
            [_placed(record, rows, every, name) for record, rows in zip(records, positions, strict=True)]
            for records in zip(*calls, strict=True)
        ]
    count = len(calls[-1]) // world  # the last process skips no step
    found: list[list[Placed]] = [[] for _ in range(count)]
    for rank, records in enumerate(calls):
        steps = len(records) // max(1, count)
        if steps * count != len(records) or steps not in (world, rank + 1):
            raise ArgumentError("gather-ring", name=name, count=len(records), rank=rank, world=world)
        for at, record in enumerate(records):
            step = at % steps
            rows, cols = positions[rank], positions[(rank - step) % world]
            _, _, T_part, S_part = record.shape
            if step > rank and 2 * T_part == len(rows):  # balanced: the first half of the queries sees none of them
                rows = rows[T_part:]
            elif step and 2 * S_part == len(cols):  # the second half of the keys is visible to none of the queries
                cols = cols[:S_part]
            found[at // steps].append(_placed(record, rows, cols, name))
    return found


def _placed(record: Record, rows: np.ndarray, cols: np.ndarray, name: str) -> Placed:
    if record.shape[2:] != (len(rows), len(cols)):
        raise ArgumentError("gather-rectangle", name=name, shape=str(record.shape), rows=len(rows), cols=len(cols))
    return Placed(record, rows, cols)


# --- records ---------------------------------------------------------------------------------------------


def merge_placed(parts: Sequence[Placed], map: int | None = 256) -> Record:
    """The record of the whole call from rectangles that do not overlap.

    map   the largest number of bins of the map along each axis, where the parts have maps

    Raises NotKeptError for what the parts do not determine. Pictures are left to the whole model.
    """
    first = parts[0].record
    if any(part.record.lse is None for part in parts):
        raise NotKeptError("gather-lse", name=first.name)
    if any(part.record.rest or part.record.sink_mass is not None for part in parts):
        raise ArgumentError("gather-rest", name=first.name)
    if len({part.record.shape[:2] for part in parts}) > 1:
        shapes = Listed([str(part.record.shape) for part in parts])
        raise ArgumentError("gather-sizes", name=first.name, split="queries", shapes=shapes)
    T, S = (1 + max(int(each.max(initial=-1)) for each in places) for places in _places(parts))
    shape = (*first.shape[:2], T, S)
    whole = Shares([part.record for part in parts], *_places(parts), shape)
    found = whole.merged()
    padding = _padding(parts, shape)
    exact = _exact(parts, whole, found["lse"])
    common = first.changed(
        shape=shape,
        fused=any(part.record.fused for part in parts),
        step=None,
        exact=exact,
        padding=padding,
        images=(),
        query_tokens=_tokens(parts, shape, 2),
        key_tokens=_tokens(parts, shape, 3),
        **{one.name: None for one in STATISTICS},
    )
    found |= sums_over_queries([part.record for part in parts], exact, common, map, padding)
    return common.changed(**found)


def _places(parts: Sequence[Placed]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return [part.rows for part in parts], [part.cols for part in parts]


def _exact(parts: Sequence[Placed], whole: Shares, lse: Array) -> "PlacedWeights | None":
    """The exact weights of the whole; None where a part has none."""
    pieces = []
    for part, share in zip(parts, whole.shares, strict=True):
        weights = part.record.exact
        if weights is None and part.record.map_is_exact:
            weights = WeightsArray(part.record.map)
        if weights is None:
            return None
        for rows, cols in product(_runs(part.rows), list(_runs(part.cols))):
            start = int(part.rows[rows.start]), int(part.cols[cols.start])
            pieces.append(Rectangle(weights, share[:, :, rows], rows, cols, *start))
    return PlacedWeights(tuple(pieces), whole.shape, lse)


def _runs(positions: np.ndarray) -> Iterator[slice]:
    """The slices of positions that are consecutive."""
    ends = [*np.flatnonzero(np.diff(positions) != 1) + 1, len(positions)]
    start = 0
    for end in ends:
        if end > start:
            yield slice(start, int(end))
        start = int(end)


def _tokens(parts: Sequence[Placed], shape: Shape, axis: int) -> Tokens | None:
    """The tokens of all queries (axis 2) or keys (axis 3); None where a part has none."""
    rows: list[list[str]] = []
    for part, places in zip(parts, _places(parts)[axis - 2], strict=True):
        tokens = part.record.query_tokens if axis == 2 else part.record.key_tokens
        if tokens is None:
            return None
        rows = rows or [[""] * shape[axis] for _ in tokens]
        if len(tokens) != len(rows):
            return None
        for own, text in zip(rows, tokens, strict=True):
            for at, token in zip(places.tolist(), text, strict=True):
                own[at] = token
    return tuple(map(tuple, rows))


def _padding(parts: Sequence[Placed], shape: Shape) -> Padding | None:
    """Which queries and keys of the whole are text: those that are text in any part, as parts see little of it."""
    known = [part.record.padding or Padding() for part in parts]
    fields: dict[str, Array | None] = {"queries": None, "keys": None}
    for side, axis, places in zip(("queries", "keys"), (2, 3), _places(parts), strict=True):
        like = next((getattr(one, side) for one in known if getattr(one, side) is not None), None)
        if like is not None:
            every = np.zeros((shape[0], shape[axis]), bool)
            for one, at in zip(known, places, strict=True):
                every[:, at] |= True if getattr(one, side) is None else to_numpy(getattr(one, side))
            fields[side] = convert_like(every, like)
    return None if fields["queries"] is None and fields["keys"] is None else Padding(**fields)


class Rectangle(NamedTuple):
    """A rectangle of consecutive rows and columns of a part, and where it begins in the whole."""

    weights: ExactWeights
    share: np.ndarray
    rows: slice
    cols: slice
    top: int
    left: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedWeights(ExactWeights):
    """The weights of rectangles, each times the share of its keys in the softmax of each query; 0 elsewhere."""

    pieces: tuple[Rectangle, ...]
    shape: Shape
    lse: Array | None = None

    def block(self, rows: slice, cols: slice) -> Array:
        found, like = None, None
        for weights, share, own_rows, own_cols, top, left in self.pieces:
            high, low = max(rows.start, top), min(rows.stop, top + own_rows.stop - own_rows.start)
            first, last = max(cols.start, left), min(cols.stop, left + own_cols.stop - own_cols.start)
            if high >= low or first >= last:
                continue
            at = slice(own_rows.start + high - top, own_rows.start + low - top)
            like = weights.block(at, slice(own_cols.start + first - left, own_cols.start + last - left))
            block = to_numpy(like) * share[:, :, high - top : low - top, None]
            if found is None:
                found = np.zeros((*self.shape[:2], rows.stop - rows.start, cols.stop - cols.start), block.dtype)
            found[:, :, high - rows.start : low - rows.start, first - cols.start : last - cols.start] = block
        if found is None or like is None:
            like = self.pieces[0].weights.block(slice(0, 0), slice(0, 0))
            found = np.zeros((*self.shape[:2], rows.stop - rows.start, cols.stop - cols.start), to_numpy(like).dtype)
        return convert_like(found, like)

    def of_head(self, sample: int, head: int) -> ExactWeights:
        b, h = slice(sample, sample + 1), slice(head, head + 1)
        pieces = tuple(
            piece._replace(weights=piece.weights.of_head(sample, head), share=piece.share[b, h])
            for piece in self.pieces
        )
        return PlacedWeights(pieces, (1, 1, *self.shape[2:]))

    @property
    def arrays(self) -> tuple[Array, ...]:
        kinds = {id(piece.weights): piece.weights for piece in self.pieces}
        return tuple(array for weights in kinds.values() for array in weights.arrays)
