"""Tensors as the kernels of this room take them, how many programs there are, and room for a map."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import triton
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from regard.kernels.tiles import Bins
from regard.kernels.triton.hopper.bins import Pool
from regard.kernels.triton.hopper.crew import KEYS, ROWS
from regard.kernels.triton.hopper.turns import Task
from regard.kernels.triton.pooling import layout_of

ROOM = 5 * 2**20
"""Numbers in all strips: 20 MiB, or as much as the map itself, where that is more."""

SCRATCH = 2**25
"""Numbers in all scratch: 128 MiB, or as much as the map itself. Half of it lets a third of an H200 idle where a map is
1024 wide.
"""

NARROWEST = 16
"""So many keys and queries has a bin at least: each bin of a tile is a sum of its own."""

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
    return min(tiles, _processors(device))


@cache
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def group_of(heads: int, most: int) -> int:
    """How many of the heads go together, `most` if that is one at least: groups as even as can be, so that their sizes
    are few: for one head, for sixteens of them and for others kernels are compiled apart.

    >>> group_of(16, 15), group_of(16, 100), group_of(7, 0)
    (8, 16, 1)
    """
    return -(-heads // -(-heads // max(1, most)))


def bins_fit(bins: Bins) -> bool:
    """Whether bins and tiles share their edges, tiles of `KEYS` keys and `ROWS` queries.

    >>> bins_fit(Bins(high=256, wide=64, R=4, C=16)), bins_fit(Bins(high=256, wide=100, R=4, C=11))
    (True, False)
    """
    wide = bins.wide % KEYS == 0 or KEYS % bins.wide == 0
    tall = bins.high % ROWS == 0 or ROWS % bins.high == 0
    return wide and tall and min(bins.wide, bins.high) >= NARROWEST


def with_map(
    task: Task,
    bins: Bins,
    sums: Tensor,
    consumers: int,
    launch: Callable[[Task, Pool, int, dict[str, Any]], None],
) -> None:
    """Writes the sums, (B·H, R, C). A consumer's queries are some bins, or some consumers' are one: then strips are
    written, for heads in groups so that they stay few, and joined.
    """
    tiles = triton.cdiv(task.T, consumers * ROWS)
    pieces, to_bin = max(1, ROWS // bins.high), max(1, bins.high // ROWS)  # of a consumer's tile; such tiles of a bin
    written = tiles * consumers
    of_head = bins.R if to_bin == 1 else max(written, bins.R * to_bin)
    group = task.heads if to_bin == 1 else group_of(task.heads, max(ROOM, sums.numel()) // (of_head * bins.C))
    running = max(1, max(SCRATCH, sums.numel()) // (consumers * bins.C * ROWS))  # programs there is scratch for
    scratch = sums.new_empty((min(running, programs_for(tiles * group, sums.device)), consumers, bins.C, ROWS))
    lies = layout_of(bins, ROWS, KEYS)
    layout = {"BINS": lies["BINS"], "SHARE": lies["SHARE"], "PIECES": pieces}
    strips = sums if to_bin == 1 else sums.new_empty((group, of_head, bins.C))
    if to_bin > 1:
        strips[:, written:] = 0.0  # of queries that there are not
    for first in range(0, task.heads, group):
        some = task._replace(first=first, heads=min(group, task.heads - first))
        programs = min(len(scratch), programs_for(tiles * some.heads, sums.device))
        launch(some, Pool(scratch, strips, of_head, bins.wide, bins.C), programs, layout)
        if to_bin > 1:
            of_bins = strips[: some.heads, : bins.R * to_bin].unflatten(1, (bins.R, to_bin))
            torch.sum(of_bins, 2, out=sums[first : first + some.heads])
