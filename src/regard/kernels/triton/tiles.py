"""What the kernels of this room share: one tile of rows, of scores, of who may look; and which tiles there are to see.

Scores are kept in base 2: scale · log2 e is multiplied in once, and exp2 is what a GPU has. Products of half precision
are added up in float32, those of float32 are not rounded to the tensor cores' own format.
"""

import os
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from regard.kernels.triton.mask_bands import Sight, reach_of
from regard.kernels.triton.tile_sizes import power_of_two

LOG2E = 1.4426950408889634


class Heads(NamedTuple):
    """A tensor B H T E as kernels take it: where it begins, and how far apart samples, heads and positions are."""

    base: Any
    sample: int
    head: int
    row: int

    @classmethod
    def of(cls, x: Tensor) -> "Heads":
        """The numbers of one position must lie side by side; copied where they do not."""
        x = x if x.stride(-1) == 1 else x.contiguous()
        return cls(x, *x.stride()[:3])


class Limits(NamedTuple):
    """A Sight as kernels take it; None is compiled away.

    reach  what segments let each tile of rows see: `reach_of`
    """

    left: Any
    right: Any
    offset: int
    queries: Any
    queries_sample: int
    keys: Any
    keys_sample: int
    reach: Any
    reach_sample: int

    @classmethod
    def of(cls, sight: Sight, rows: int) -> "Limits":
        """For tiles of so many rows."""
        if sight.queries is None or sight.keys is None:
            return cls(sight.left, sight.right, sight.offset, None, 0, None, 0, None, 0)
        arrays = (sight.queries.contiguous(), sight.keys.contiguous(), reach_of(sight, rows))
        # One sample's segments may stand for all.
        (q, q_step), (k, k_step), (r, r_step) = ((x, x.stride(0) if len(x) > 1 else 0) for x in arrays)
        return cls(sight.left, sight.right, sight.offset, q, q_step, k, k_step, r, r_step)


def tensors_in_tiles(*tensors: tuple[Tensor, int]) -> tuple[list[Any], bool]:
    """Tensors B H T E as kernels take them, each in tiles of so many rows; and whether by the GPU's copy engine."""
    descriptors = [_descriptor(x, rows) for x, rows in tensors]
    if all(one is not None for one in descriptors):
        return descriptors, True
    return [Heads.of(x) for x, _ in tensors], False


def _descriptor(x: Tensor, rows: int) -> Any:
    """B H T E for the copy engine of a GPU since Hopper, in tiles of so many rows; None where it cannot take it."""
    has_engine = x.is_cuda and torch.cuda.get_device_capability(x.device)[0] >= 9
    has_engine = has_engine or (x.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    if not (has_engine and can_be_described(x)):
        return None
    return TensorDescriptor(x, list(x.shape), list(x.stride()), [1, 1, rows, power_of_two(x.shape[3])])


def can_be_described(x: Tensor) -> bool:
    """Whether the copy engine can find its way: a position's numbers side by side, everything at steps of 16 bytes."""
    *steps, last = x.stride()
    return last == 1 and x.data_ptr() % 16 == 0 and all(step > 0 and step * x.itemsize % 16 == 0 for step in steps)


@triton.jit
def load_tile(
    base, start, end, stride, ROWS: tl.constexpr, E: tl.constexpr, BLOCK_E: tl.constexpr, WHOLE: tl.constexpr
):
    """Rows `start` and on, ROWS × BLOCK_E; zeros from row `end` and column E on. WHOLE: no row is beyond the end."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK_E)[None, :]
    # Far rows need 64 bits, those of one tile do not.
    at = base + tl.cast(start, tl.int64) * stride + rows * stride + columns
    if WHOLE and E == BLOCK_E:
        tile = tl.load(at)
    elif WHOLE:
        tile = tl.load(at, mask=columns < E, other=0.0)
    elif E == BLOCK_E:
        tile = tl.load(at, mask=start + rows < end, other=0.0)
    else:
        tile = tl.load(at, mask=(start + rows < end) & (columns < E), other=0.0)
    return tile


@triton.jit
def load_rows(
    x,
    sample,
    h,
    start,
    end,
    ROWS: tl.constexpr,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    WHOLE: tl.constexpr,
    TMA: tl.constexpr,
):
    """The same of one head of `x`: a descriptor for the GPU's copy engine, which fills with zeros itself, or Heads."""
    if TMA:
        tile = x.load([tl.cast(sample, tl.int32), tl.cast(h, tl.int32), tl.cast(start, tl.int32), 0])
        tile = tl.reshape(tile, (ROWS, BLOCK_E))
    else:
        tile = load_tile(base_of(x, sample, h), start, end, x.row, ROWS, E, BLOCK_E, WHOLE)
    return tile


@triton.jit
def base_of(heads, sample, h):
    """Where the positions of one head begin."""
    return heads.base + tl.cast(sample, tl.int64) * heads.sample + tl.cast(h, tl.int64) * heads.head


@triton.jit
def score_tile(a, b, scale, cap, SOFTCAP: tl.constexpr):
    """The scores a b in base 2; `scale` and `cap` hold the factor log2 e already."""
    scores = tl.dot(a, b, input_precision="ieee") * scale
    if SOFTCAP:
        # tanh by the exponential of a number that is never positive: no overflow.
        size = tl.abs(scores)
        u = size / cap
        small = tl.exp2(u * (-2.0 * 1.4426950408889634))
        series = size * (1.0 - u * u * (0.33333333 - u * u * 0.13333333))  # 1 - small would lose digits
        capped = tl.where(u < 0.1, series, cap * (1.0 - small) / (1.0 + small))
        scores = tl.where(scores < 0, -capped, capped)
    return scores


@triton.jit
def seen_tile(limits, sample, rows, columns, T, S):
    """Who of `rows` may look at which of `columns`: one of them stands upright, the other lies."""
    seen = (rows < T) & (columns < S)
    if limits.left is not None:
        seen = seen & (columns >= rows + (limits.offset - limits.left))
    if limits.right is not None:
        seen = seen & (columns <= rows + (limits.offset + limits.right))
    if limits.queries is not None:
        sample = tl.cast(sample, tl.int64)
        queries = tl.load(limits.queries + sample * limits.queries_sample + rows, mask=rows < T, other=0)
        keys = tl.load(limits.keys + sample * limits.keys_sample + columns, mask=columns < S, other=0)
        seen = seen & (queries == keys)
    return seen


@triton.jit
def tiles_to_see(limits, sample, tile, T, S, ROWS: tl.constexpr, KEYS: tl.constexpr):
    """Where a tile of queries looks, as edges of key tiles: low ≤ sure_low ≤ sure_high ≤ high.

    Outside of low … high nobody sees anything; within sure_low … sure_high all see everything.
    """
    first, last = tile * ROWS, tl.minimum(tile * ROWS + ROWS, T) - 1
    low, sure_low = first * 0, first * 0
    high, sure_high = low + S, low + S
    if limits.left is not None:
        low = tl.maximum(low, first + limits.offset - limits.left)
        sure_low = tl.maximum(sure_low, last + limits.offset - limits.left)
    if limits.right is not None:
        high = tl.minimum(high, last + limits.offset + limits.right + 1)
        sure_high = tl.minimum(sure_high, first + limits.offset + limits.right + 1)
    if limits.reach is not None:
        reach = limits.reach + tl.cast(sample, tl.int64) * limits.reach_sample + tile * 4
        low, high = tl.maximum(low, tl.load(reach)), tl.minimum(high, tl.load(reach + 1))
        sure_low = tl.maximum(sure_low, tl.load(reach + 2))
        sure_high = tl.minimum(sure_high, tl.load(reach + 3))
    low = tl.minimum(low, S) // KEYS * KEYS
    high = tl.maximum(low, (tl.maximum(high, 0) + KEYS - 1) // KEYS * KEYS)
    sure_low = tl.minimum(high, (tl.minimum(sure_low, S) + KEYS - 1) // KEYS * KEYS)
    sure_high = tl.maximum(sure_low, tl.minimum(high, tl.maximum(sure_high, 0) // KEYS * KEYS))
    return low, sure_low, sure_high, high


def parts_of_walk(limits: Limits, is_whole: bool) -> dict[str, int]:
    """FIRST and LAST of the parts of a walk: 0 where it asks who may look, 1 where all may, 2 where it asks again.

    Only a left edge or segments make for a part 0. What `is_whole` fills its tiles: the last one is not ragged.
    """
    broken = limits.left is not None or limits.reach is not None
    return {"FIRST": 0 if broken else 1, "LAST": 1 if is_whole and not broken and limits.right is None else 2}


@triton.jit
def part_of_walk(edges, PART: tl.constexpr):
    """Where a part of a walk begins and ends; `edges` are low, sure_low, sure_high and high of `tiles_to_see`."""
    low, sure_low, sure_high, high = edges
    begin, end = low, sure_low
    if PART == 1:
        begin, end = sure_low, sure_high
    if PART == 2:
        begin, end = sure_high, high
    return begin, end
