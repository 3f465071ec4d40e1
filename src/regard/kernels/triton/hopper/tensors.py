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
from regard.kernels.triton.hopper.crew import KEYS, NARROWEST, ROWS, block_for, share_edges
from regard.kernels.triton.hopper.turns import Task
from regard.kernels.triton.pooling import join, layout_of, strips_of_head

ROOM = 5 * 2**20
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
    group = task.heads if is_whole else group_of(task.heads, max(ROOM, sums.numel()) // (of_head * bins.C))
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
