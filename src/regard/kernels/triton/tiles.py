"""Functions shared by the Triton kernels: launch; load a tile of rows, of scores, of the mask; find the visible tiles.

A kernel is launched on the GPU of its tensors, with fewer pipeline stages where shared memory is too small. Scores
are in base 2: scale · log2 e is multiplied in once, and GPUs compute exp2 directly. Products of half precision are
accumulated in float32; those of float32 are not rounded to TF32.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.errors import OutOfResources
from triton.tools.tensor_descriptor import TensorDescriptor

from regard.kernels.triton.support import Blocks, MaskBands, power_of_two, visible_ranges


class KernelArguments(NamedTuple):
    """A kernel's first arguments and its compile-time constants.

    No tuple in the arguments contains another tuple: Triton 3.6 loses a number 1 inside.
    """

    arguments: tuple[Any, ...]
    constants: dict[str, Any]


FP_FUSION = {"enable_fp_fusion": True}
"""Allow s · scale − shift as one operation: since Triton 3.10 this must be requested."""


def launch(kernel: Any, programs: int, blocks: Blocks, like: Tensor, *arguments: Any, **constants: Any) -> None:
    """Launch `programs` programs with the warps and stages of `blocks`, on the device of the tensor `like`."""
    with on_device(like):
        for stages in range(blocks.stages, 0, -1):
            try:
                kernel[(programs,)](*arguments, **constants, num_warps=blocks.warps, num_stages=stages, **FP_FUSION)
            except OutOfResources:
                if stages == 1:
                    raise
            else:
                return


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """The device context for a launch: Triton uses the current GPU, not that of its arguments."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


LOG2E = 1.4426950408889634


class StridedTensor(NamedTuple):
    """A tensor B H T E as kernel argument: its address, and the strides of samples, heads and positions."""

    base: Any
    sample: int
    head: int
    row: int

    @classmethod
    def of(cls, x: Tensor) -> "StridedTensor":
        """The numbers of one position must be contiguous; otherwise the tensor is copied."""
        x = x if x.stride(-1) == 1 else x.contiguous()
        return cls(x, *x.stride()[:3])


class Limits(NamedTuple):
    """MaskBands as kernel argument; None is compiled away.

    reach  the keys visible to each tile of rows by segments: `visible_ranges`
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
    def of(cls, bands: MaskBands, rows: int) -> "Limits":
        """For tiles of `rows` rows."""
        if bands.queries is None or bands.keys is None:
            return cls(bands.left, bands.right, bands.offset, None, 0, None, 0, None, 0)
        arrays = (bands.queries.contiguous(), bands.keys.contiguous(), visible_ranges(bands, rows))
        # One sample's segments may apply to all.
        (q, q_step), (k, k_step), (r, r_step) = ((x, x.stride(0) if len(x) > 1 else 0) for x in arrays)
        return cls(bands.left, bands.right, bands.offset, q, q_step, k, k_step, r, r_step)


def tiled_tensors(*tensors: tuple[Tensor, int]) -> tuple[list[Any], bool]:
    """Tensors B H T E as kernel arguments, each with the rows of its tiles; and whether TMA loads them."""
    descriptors = [_descriptor(x, rows) for x, rows in tensors]
    if all(descriptor is not None for descriptor in descriptors):
        return descriptors, True
    return [StridedTensor.of(x) for x, _ in tensors], False


def _descriptor(x: Tensor, rows: int) -> Any:
    """A TMA descriptor of B H T E in tiles of `rows` rows; None where the GPU or the layout does not support TMA."""
    has_tma = x.is_cuda and torch.cuda.get_device_capability(x.device)[0] >= 9
    has_tma = has_tma or (x.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    if not (has_tma and can_use_tma(x)):
        return None
    return TensorDescriptor(x, list(x.shape), list(x.stride()), [1, 1, rows, power_of_two(x.shape[3])])


def can_use_tma(x: Tensor) -> bool:
    """Whether TMA supports the layout: contiguous positions, and strides that are multiples of 16 bytes."""
    *steps, last = x.stride()
    return last == 1 and x.data_ptr() % 16 == 0 and all(step > 0 and step * x.itemsize % 16 == 0 for step in steps)


@triton.jit
def load_tile(
    base, start, end, stride, ROWS: tl.constexpr, E: tl.constexpr, BLOCK_E: tl.constexpr, IN_BOUNDS: tl.constexpr
):
    """Rows from `start` on, ROWS × BLOCK_E; zeros from row `end` and column E on. IN_BOUNDS: all rows exist."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK_E)[None, :]
    # The offset of `start` needs 64 bits, those within a tile do not.
    at = base + tl.cast(start, tl.int64) * stride + rows * stride + columns
    if IN_BOUNDS and E == BLOCK_E:
        tile = tl.load(at)
    elif IN_BOUNDS:
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
    IN_BOUNDS: tl.constexpr,
    TMA: tl.constexpr,
):
    """The same for one head of `x`: a TMA descriptor, which fills with zeros itself, or StridedTensor."""
    if TMA:
        tile = x.load([tl.cast(sample, tl.int32), tl.cast(h, tl.int32), tl.cast(start, tl.int32), 0])
        tile = tl.reshape(tile, (ROWS, BLOCK_E))
    else:
        tile = load_tile(base_of(x, sample, h), start, end, x.row, ROWS, E, BLOCK_E, IN_BOUNDS)
    return tile


@triton.jit
def base_of(heads, sample, h):
    """Address of the first position of one head."""
    return heads.base + tl.cast(sample, tl.int64) * heads.sample + tl.cast(h, tl.int64) * heads.head


@triton.jit
def score_tile(a, b, scale, cap, SOFTCAP: tl.constexpr):
    """The scores a b in base 2; `scale` and `cap` include the factor log2 e."""
    return capped(tl.dot(a, b, input_precision="ieee") * scale, cap, SOFTCAP)


@triton.jit
def capped(scores, cap, SOFTCAP: tl.constexpr):
    """cap · tanh(score / cap); the scores themselves without a cap."""
    if SOFTCAP:
        # tanh from the exponential of a number that is never positive: no overflow.
        size = tl.abs(scores)
        u = size / cap
        small = tl.exp2(u * (-2.0 * 1.4426950408889634))
        series = size * (1.0 - u * u * (0.33333333 - u * u * 0.13333333))  # 1 - small would lose digits
        capped = tl.where(u < 0.1, series, cap * (1.0 - small) / (1.0 + small))
        scores = tl.where(scores < 0, -capped, capped)
    return scores


@triton.jit
def mask_tile(limits, sample, rows, columns, T, S):
    """Which of `columns` are visible to which of `rows`; one has shape [n, 1], the other [1, n]."""
    visible = (rows < T) & (columns < S)
    if limits.left is not None:
        visible = visible & (columns >= rows + (limits.offset - limits.left))
    if limits.right is not None:
        visible = visible & (columns <= rows + (limits.offset + limits.right))
    if limits.queries is not None:
        sample = tl.cast(sample, tl.int64)
        queries = tl.load(limits.queries + sample * limits.queries_sample + rows, mask=rows < T, other=0)
        keys = tl.load(limits.keys + sample * limits.keys_sample + columns, mask=columns < S, other=0)
        visible = visible & (queries == keys)
    return visible


@triton.jit
def visible_tiles(limits, sample, tile, T, S, ROWS: tl.constexpr, KEYS: tl.constexpr):
    """The key tiles visible to a tile of queries, as edges: low ≤ full_low ≤ full_high ≤ high.

    Outside low … high every key is masked; within full_low … full_high every key is visible to every query.
    """
    first, last = tile * ROWS, tl.minimum(tile * ROWS + ROWS, T) - 1
    low, full_low = first * 0, first * 0
    high, full_high = low + S, low + S
    if limits.left is not None:
        low = tl.maximum(low, first + limits.offset - limits.left)
        full_low = tl.maximum(full_low, last + limits.offset - limits.left)
    if limits.right is not None:
        high = tl.minimum(high, last + limits.offset + limits.right + 1)
        full_high = tl.minimum(full_high, first + limits.offset + limits.right + 1)
    if limits.reach is not None:
        reach = limits.reach + tl.cast(sample, tl.int64) * limits.reach_sample + tile * 4
        low, high = tl.maximum(low, tl.load(reach)), tl.minimum(high, tl.load(reach + 1))
        full_low = tl.maximum(full_low, tl.load(reach + 2))
        full_high = tl.minimum(full_high, tl.load(reach + 3))
    low = tl.minimum(low, S) // KEYS * KEYS
    high = tl.maximum(low, (tl.maximum(high, 0) + KEYS - 1) // KEYS * KEYS)
    full_low = tl.minimum(high, (tl.minimum(full_low, S) + KEYS - 1) // KEYS * KEYS)
    full_high = tl.maximum(full_low, tl.minimum(high, tl.maximum(full_high, 0) // KEYS * KEYS))
    return low, full_low, full_high, high


def loop_parts(limits: Limits, is_whole: bool) -> dict[str, int]:
    """FIRST_PART and LAST_PART of the loop over tiles: parts 0 and 2 evaluate the mask, part 1 is fully visible.

    Only a left edge or segments need part 0. `is_integer`: the length is a multiple of the tile, so that no tile is
    partial.
    """
    has_left_part = limits.left is not None or limits.reach is not None
    return {
        "FIRST_PART": 0 if has_left_part else 1,
        "LAST_PART": 1 if is_whole and not has_left_part and limits.right is None else 2,
    }


@triton.jit
def loop_range(edges, PART: tl.constexpr):
    """Begin and end of a part of the loop; `edges` are low, full_low, full_high and high of `visible_tiles`."""
    low, full_low, full_high, high = edges
    begin, end = low, full_low
    if PART == 1:
        begin, end = full_low, full_high
    if PART == 2:
        begin, end = full_high, high
    return begin, end
