"""How much memory the kernels of this room take on their way to a map, beside what they give. No Triton here."""

from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton.blocks import blocks_for, power_of_two
from regard.records import See

SMALLEST = 64
"""Queries of a tile, at least, where a text is long."""


def scratch_for(q: Tensor, k: Tensor, see: See | None, *, later: bool = False) -> int:
    """In bytes, at most. Up to 192 MiB, which a small map may take as well, are not counted.

    The pass that computes needs scratch and strips, each no larger than the map, or than 128 and 64 MiB; but strips of
    one head at least, one for each bin of queries and each tile of them. A walk that comes `later` keeps a sum for each
    row of the map, every tile of keys and every bin that this touches.
    """
    (B, H, T, E), S = q.shape, k.shape[2]
    bins = Bins.of(T, S, see)
    if bins is None:
        return 0
    rows = B * H * bins.R
    numbers = rows * bins.C + max(rows, bins.R - (-T // SMALLEST)) * bins.C
    if later:
        keys, wide = blocks_for(q.dtype, E, S, T).rows, bins.wide
        numbers = max(numbers, rows * -(-S // keys) * touched_by(keys, wide))
    return 4 * numbers


def touched_by(keys: int, wide: int) -> int:
    """How many bins so wide a tile of keys may touch, as a power of two.

    >>> touched_by(64, 1), touched_by(64, 128), touched_by(64, 100), touched_by(64, 10)
    (64, 1, 2, 8)
    """
    if wide % keys == 0 or keys % wide == 0:
        return max(1, keys // wide)
    return power_of_two((keys - 2) // wide + 2, 1)
