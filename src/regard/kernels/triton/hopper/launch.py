"""Launches of the Hopper kernels: supported calls, tensor descriptors, number of programs, memory for a map."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import torch
import triton
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from regard.kernels.tiles import Bins
from regard.kernels.triton.candidates import FEW, ROOM, Survivors
from regard.kernels.triton.hopper.bins import Pool
from regard.kernels.triton.hopper.config import (
    CACHED,
    KEYS,
    NARROWEST,
    POOLING,
    RECEIVING,
    ROWS,
    SEARCHING,
    TOGETHER,
    TURNS,
    WIDTHS,
    Crew,
    block_for,
    crew_for,
    share_edges,
)
from regard.kernels.triton.hopper.forward import forward_kernel
from regard.kernels.triton.hopper.scheduler import Task
from regard.kernels.triton.hopper.second_pass import second_kernel
from regard.kernels.triton.launch import FUSED, on_device
from regard.kernels.triton.mask_bands import Sight
from regard.kernels.triton.pooling import join, layout_of, strips_of_head
from regard.kernels.triton.second_pass import in_whole_tiles
from regard.kernels.triton.support import Asked, Told
from regard.kernels.triton.tiles import LOG2E, can_be_described

STRIP_LIMIT = 5 * 2**20
"""Numbers in all strips: 20 MiB, or as much as the map itself, where that is more, or one head's."""

SCRATCH = 2**25
"""Numbers in all scratch: 128 MiB, or as much as the map itself. Half of it lets a third of an H200 idle where a map is
1024 wide.
"""

GLUON = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}


@cache
def layout_for(dtype: torch.dtype, *block: int) -> Any:
    """How the copy engine lays a tile down so that the tensor cores can read it."""
    return gl.NVMMASharedLayout.get_default_for(list(block), GLUON[dtype])


def described(x: Tensor, rows: int) -> TensorDescriptor:
    """B H T E for the copy engine, in tiles of so many rows."""
    block = [1, 1, rows, x.shape[3]]
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block, layout_for(x.dtype, *block))


def programs_for(tiles: int, device: torch.device) -> int:
    """One to a processor: it fills it."""
    return min(tiles, processors(device))


@cache
def processors(device: torch.device) -> int:
    """How many the GPU has."""
    return torch.cuda.get_device_properties(device).multi_processor_count


def group_of(heads: int, most: int) -> int:
    """How many of the heads go together, `most` if that is one at least: groups as even as can be, so that their sizes
    are few: for one head, for sixteens of them and for others kernels are compiled apart.

    >>> group_of(16, 15), group_of(16, 100), group_of(7, 0)
    (8, 16, 1)
    """
    return -(-heads // -(-heads // max(1, most)))


def bins_fit(bins: Bins) -> bool:
    """Whether they are wide enough.

    >>> bins_fit(Bins(high=256, wide=79, R=4, C=16)), bins_fit(Bins(high=256, wide=15, R=4, C=11))
    (True, False)
    """
    return min(bins.wide, bins.high) >= NARROWEST


def with_map(
    task: Task,
    bins: Bins,
    sums: Tensor,
    consumers: int,
    launch: Callable[[Task, Pool, int, dict[str, Any]], None],
) -> None:
    """Writes the sums, (B·H, R, C). Where bins of queries are a consumer's tile, or shares of one, it writes them
    itself; else strips, for heads in groups so that they stay few, which are joined.
    """
    tiles = triton.cdiv(task.T, consumers * ROWS)
    is_whole = ROWS % bins.high == 0  # then consumers write the map itself
    of_head = bins.R if is_whole else strips_of_head(task.T, bins, ROWS)
    group = task.heads if is_whole else group_of(task.heads, max(STRIP_LIMIT, sums.numel()) // (of_head * bins.C))
    running = max(1, max(SCRATCH, sums.numel()) // (consumers * bins.C * ROWS))  # programs there is scratch for
    scratch = sums.new_empty((min(running, programs_for(tiles * group, sums.device)), consumers, bins.C, ROWS))
    strips = sums if is_whole else sums.new_empty((group, of_head, bins.C))
    for first in range(0, task.heads, group):
        some = task._replace(first=first, heads=min(group, task.heads - first))
        programs = min(len(scratch), programs_for(tiles * some.heads, sums.device))
        launch(some, Pool(scratch, strips, of_head, bins.high, bins.wide, bins.C), programs, _layout_for(bins))
        if not is_whole:
            join(strips[: some.heads], bins, ROWS, sums[first : first + some.heads])


def _layout_for(bins: Bins) -> dict[str, Any]:
    """BINS as in `pooling`; SHARE, how wide a bin or a block is; PIECES, see `pool_rows`.

    >>> _layout_for(Bins(high=32, wide=256, R=4, C=4))
    {'BINS': 'wide', 'SHARE': 1, 'PIECES': 2}
    >>> _layout_for(Bins(high=79, wide=79, R=4, C=4))
    {'BINS': 'uneven', 'SHARE': 64, 'PIECES': 0}
    """
    layout = layout_of(bins, ROWS, KEYS)
    share = layout["SHARE"] if share_edges(bins.wide) else block_for(bins.wide)
    return {"BINS": layout["BINS"], "SHARE": share, "PIECES": 0 if ROWS % bins.high else ROWS // bins.high}


NO_BINS = {"BINS": "", "SHARE": 0, "PIECES": 1}

LISTED = 2**24
"""Keys in all lists: 64 MiB, or one head's."""


def fits(*tensors: Tensor, sight: Sight, scale: float, softcap: float | None, bins: Bins | None) -> bool:
    """Whether it can: half precision, heads 64 or 128 wide, all keys seen or those up to an edge, bins that fit."""
    q, *_ = tensors
    E = q.shape[3]
    return (
        E in WIDTHS
        and all(x.shape[3] == E and can_be_described(x) for x in tensors)
        and q.dtype in GLUON
        and q.shape[2] >= ROWS
        and sight.queries is None
        and sight.left is None
        and softcap is None
        and scale > 0
        and (bins is None or bins_fit(bins))
    )


def forward(q: Tensor, k: Tensor, v: Tensor, sight: Sight, told: Told, *, scale: float, asked: Asked) -> Told:
    """`told`, what was asked for written into it, with thresholds. q B H T E, k and v B G S E; a call that `fits`."""
    if 0 < asked.top <= FEW:
        told = told._replace(threshold=torch.empty(q.shape[:3], dtype=torch.float32, device=q.device))
    crew = crew_for(q.shape[3], asked, is_causal=sight.right is not None)
    fills_alone = triton.cdiv(q.shape[2], crew.rows) >= TURNS * processors(q.device)
    if not fills_alone or k[0, 0].nbytes + v[0, 0].nbytes <= CACHED:
        _forward(q, k, v, sight, told, crew, scale=scale, asked=asked)
        return told
    served = q.shape[1] // k.shape[1]
    for sample, h in product(range(q.shape[0]), range(q.shape[1])):
        of_queries = slice(sample, sample + 1), slice(h, h + 1)
        of_keys = slice(sample, sample + 1), slice(h // served, h // served + 1)
        one = told._replace(**{name: x[of_queries] for name, x in told._asdict().items() if x is not None})
        _forward(q[of_queries], k[of_keys], v[of_keys], sight, one, crew, scale=scale, asked=asked)
    return told


def _forward(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, told: Told, crew: Crew, *, scale: float, asked: Asked
) -> None:
    task = _task(q, k, sight, scale, out=told.out, lse=told.lse, entropy=told.entropy, threshold=told.threshold)
    flags = {
        "LSE": told.lse is not None,
        "ENTROPY": told.entropy is not None,
        "TOP": asked.top if told.threshold is not None else 0,
    }

    def launch(task: Task, pool: Pool, programs: int, layout: dict[str, Any]) -> None:
        with on_device(q):
            forward_kernel[(programs,)](
                task,
                pool,
                described(q, ROWS),
                described(k, KEYS),
                described(v, KEYS),
                CONSUMERS=crew.consumers,
                STAGES=crew.stages,
                REGISTERS=crew.registers,
                COUNTING=crew.counting,
                HOLDING=crew.holding,
                SCATTER=crew.scatter,
                CAUSAL=sight.right is not None,
                query_layout=layout_for(q.dtype, ROWS, q.shape[3]),
                key_layout=layout_for(q.dtype, KEYS, q.shape[3]),
                num_warps=4,
                **FUSED,
                **flags,
                **layout,
            )

    if asked.bins is None or told.sums is None:
        tiles = task.heads * triton.cdiv(task.T, crew.rows)
        launch(task, _no_pool(told.out), programs_for(tiles, q.device), NO_BINS)
    else:
        with_map(task, asked.bins, told.sums.flatten(0, 1), crew.consumers, launch)


def map_of(q: Tensor, k: Tensor, lse: Tensor, sight: Sight, *, scale: float, bins: Bins) -> Tensor:
    """Sums of weights over the bins, B H R C, from the LSE, B H T in nats; a call that `fits`."""
    sums = lse.new_empty(*lse.shape[:2], bins.R, bins.C)
    task = _task(q, k, sight, scale, out=sums, lse=lse.contiguous())

    def launch(task: Task, pool: Pool, programs: int, layout: dict[str, Any]) -> None:
        _second(task, pool, q, k, programs, sight, "map", POOLING, layout)

    with_map(task, bins, sums.flatten(0, 1), POOLING.consumers, launch)
    return sums


def received_of(q: Tensor, k: Tensor, lse: Tensor, sight: Sight, *, scale: float) -> Tensor:
    """What each key received from all queries, B H S, from the LSE, B H T in nats; a call that `fits`."""
    found = lse.new_empty(*lse.shape[:2], k.shape[2])
    task = _task(q, k, sight, scale, out=found, lse=in_whole_tiles(lse, RECEIVING.passing))
    programs = programs_for(task.heads * triton.cdiv(task.S, RECEIVING.rows), q.device)
    _second(task, _no_pool(found), k, q, programs, sight, "received", RECEIVING, NO_BINS)
    return found


def thresholds_of(q: Tensor, k: Tensor, sight: Sight, *, top: int) -> Tensor:
    """A score that `top` keys of each query reach, `FEW` at most, where it sees so many: B H T, not scaled."""
    found = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    task = _task(q, k, sight, 1.0, out=found, threshold=found)
    programs = programs_for(task.heads * triton.cdiv(task.T, SEARCHING.rows), q.device)
    _second(task, _no_pool(found), q, k, programs, sight, "thresholds", SEARCHING, NO_BINS, top=top)
    return found


def survivors_of(q: Tensor, k: Tensor, threshold: Tensor, sight: Sight) -> Iterator[tuple[int, Survivors]]:
    """The keys of each query that reach its threshold, B H T, scores not scaled; heads in groups, by their first."""
    T, heads = q.shape[2], q.shape[0] * q.shape[1]
    group = group_of(heads, LISTED // (T * ROOM))
    counts = torch.empty((group, T), dtype=torch.int32, device=q.device)
    lists = torch.empty((group, T, ROOM), dtype=torch.int32, device=q.device)
    task = _task(q, k, sight, 1.0, out=lists, threshold=threshold.contiguous(), counts=counts)
    for first in range(0, heads, group):
        some = task._replace(first=first, heads=min(group, heads - first))
        programs = programs_for(some.heads * triton.cdiv(T, SEARCHING.rows), q.device)
        _second(some, _no_pool(threshold), q, k, programs, sight, "survivors", SEARCHING, NO_BINS)
        yield first, Survivors(counts[: some.heads], lists[: some.heads])


def _second(
    task: Task,
    pool: Pool,
    own: Tensor,
    passing: Tensor,
    programs: int,
    sight: Sight,
    work: str,
    crew: Crew,
    layout: dict[str, Any],
    *,
    top: int = 0,
) -> None:
    with on_device(own):
        second_kernel[(programs,)](
            task,
            pool,
            described(own, ROWS),
            described(passing, crew.passing),
            CONSUMERS=crew.consumers,
            STAGES=crew.stages,
            REGISTERS=crew.registers,
            WORK=work,
            TOP=top,
            CAUSAL=sight.right is not None,
            own_layout=layout_for(own.dtype, ROWS, own.shape[3]),
            passing_layout=layout_for(own.dtype, crew.passing, own.shape[3]),
            num_warps=4,
            **FUSED,
            **layout,
        )


def _task(
    q: Tensor,
    k: Tensor,
    sight: Sight,
    scale: float,
    *,
    out: Tensor,
    lse: Tensor | None = None,
    entropy: Tensor | None = None,
    threshold: Tensor | None = None,
    counts: Tensor | None = None,
) -> Task:
    (B, H, T, _), (G, S) = q.shape, k.shape[1:3]
    return Task(
        first=0,
        heads=B * H,
        together=TOGETHER,
        H=H,
        served=H // G,
        T=T,
        S=S,
        edge=0 if sight.right is None else sight.offset + sight.right,
        scale=scale * LOG2E,
        out=out,
        lse=out if lse is None else lse,
        entropy=out if entropy is None else entropy,
        threshold=out if threshold is None else threshold,
        counts=out if counts is None else counts,
    )


def _no_pool(x: Tensor) -> Pool:
    return Pool(x, x, 1, 1, 1, 1)
