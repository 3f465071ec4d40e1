"""Tile sizes of the Triton kernels by head width and dtype: the one place to tune. Does not import Triton."""

from typing import NamedTuple

import torch


class Blocks(NamedTuple):
    """Rows and keys of a tile; warps and pipeline stages of a program."""

    rows: int
    keys: int
    warps: int
    stages: int


MAX_HEAD_WIDTH = 256
"""The largest supported head width."""

# By bytes per number and head width. Half precision up to width 128 was tuned on an H200; the others keep a tile of
# queries and two stages of keys and values below its 227 KiB of shared memory.
BLOCKS = {
    (2, 32): Blocks(128, 64, 4, 3),
    (2, 64): Blocks(64, 128, 4, 2),
    (2, 128): Blocks(128, 64, 4, 2),
    (2, 256): Blocks(128, 64, 8, 2),
    (4, 32): Blocks(64, 64, 4, 2),
    (4, 64): Blocks(64, 32, 8, 2),
    (4, 128): Blocks(64, 32, 8, 2),
    (4, 256): Blocks(32, 32, 8, 2),
}

SEARCH_BLOCKS = BLOCKS | {(2, 64): Blocks(64, 64, 4, 3), (2, 128): Blocks(64, 64, 4, 2)}
"""The same for the search for top keys, which multiplies half as much."""

PROGRAMS_PER_PROCESSOR = 2
"""Programs with scratch for a map that run on one processor at once."""


def power_of_two(n: int, least: int = 16) -> int:
    """The next power of two, at least `least`: the side of a tile, which products require to be 16 or more.

    >>> power_of_two(3), power_of_two(80), power_of_two(128)
    (16, 128, 128)
    """
    return max(least, 1 << max(0, n - 1).bit_length())


def blocks_for(
    dtype: torch.dtype,
    E: int,
    T: int,
    S: int,
    bin_width: int | None = None,
    table: dict[tuple[int, int], Blocks] = BLOCKS,
) -> Blocks:
    """The table's blocks, smaller where there are fewer queries or keys, or where the bins of a map are narrow.

    >>> blocks_for(torch.bfloat16, 80, 1, 5000)
    Blocks(rows=16, keys=64, warps=4, stages=2)
    """
    blocks = table[dtype.itemsize, power_of_two(E, 32)]
    rows, keys = min(blocks.rows, power_of_two(T)), min(blocks.keys, power_of_two(S))
    if bin_width is not None and bin_width < keys:
        keys = min(keys, 64)  # the more bins end in a tile, the more is stored at once
    return blocks._replace(rows=rows, keys=keys, warps=blocks.warps if rows == blocks.rows else min(4, blocks.warps))


def programs(device: torch.device) -> int:
    """The number of programs with scratch for a map; few under Triton's interpreter, so that each has several tiles."""
    return PROGRAMS_PER_PROCESSOR * (
        torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
    )
