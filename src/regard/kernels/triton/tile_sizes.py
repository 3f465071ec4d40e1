"""How large the tiles are, by head width and dtype: the one place to tune. No Triton here."""

from typing import NamedTuple

import torch


class Blocks(NamedTuple):
    """Rows and keys of a tile; warps and pipeline stages of a program."""

    rows: int
    keys: int
    warps: int
    stages: int


WIDEST = 256
"""The widest head there are blocks for."""

# By bytes of a number and width of a head. Half precision up to 128 was tried on an H200; the others keep a tile of
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

SEARCHING = BLOCKS | {(2, 64): Blocks(64, 64, 4, 3), (2, 128): Blocks(64, 64, 4, 2)}
"""The same for the search for the strongest keys, which multiplies half as much."""

AT_ONCE = 2
"""How many programs that keep scratch for a map run on one processor at once."""


def power_of_two(n: int, least: int = 16) -> int:
    """The next power of two, `least` at least: a tile's side, which products want to be 16 or more.

    >>> power_of_two(3), power_of_two(80), power_of_two(128)
    (16, 128, 128)
    """
    return max(least, 1 << max(0, n - 1).bit_length())


def blocks_for(
    dtype: torch.dtype,
    E: int,
    T: int,
    S: int,
    wide: int | None = None,
    table: dict[tuple[int, int], Blocks] = BLOCKS,
) -> Blocks:
    """The table's blocks, smaller where there are fewer queries or keys, or where a map has bins less `wide`.

    >>> blocks_for(torch.bfloat16, 80, 1, 5000)
    Blocks(rows=16, keys=64, warps=4, stages=2)
    """
    blocks = table[dtype.itemsize, power_of_two(E, 32)]
    rows, keys = min(blocks.rows, power_of_two(T)), min(blocks.keys, power_of_two(S))
    if wide is not None and wide < keys:
        keys = min(keys, 64)  # the more bins end in a tile, the more is to be stored at once
    return blocks._replace(rows=rows, keys=keys, warps=blocks.warps if rows == blocks.rows else min(4, blocks.warps))


def programs(device: torch.device) -> int:
    """How many programs keep scratch for a map; under Triton's interpreter a few, so that each has several tiles."""
    return AT_ONCE * (torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1)
