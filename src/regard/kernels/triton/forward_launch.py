"""Launch of the forward: tiles, scratch and strips, with heads in groups so that memory stays bounded."""

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.forward import ForwardArguments, forward_kernel
from regard.kernels.triton.launch import KernelArguments, launch
from regard.kernels.triton.mask_bands import MaskBands
from regard.kernels.triton.pooling import MapBuffers, bin_layout, max_strips, sum_strips
from regard.kernels.triton.support import ForwardRequest, ForwardResult, allocate_result
from regard.kernels.triton.tile_sizes import Blocks, blocks_for, power_of_two, programs
from regard.kernels.triton.tiles import LOG2E, Limits, loop_parts, tiled_tensors

BUFFER_LIMIT = 2**24
"""Numbers in all scratch, and in all strips: 64 MiB each, or, if larger, the size of the map or of one head."""


@torch.no_grad()
def forward(
    call: AttentionCall, bands: MaskBands, request: ForwardRequest, *, blocks: Blocks | None = None
) -> ForwardResult:
    """The requested results of a call whose tensors have one dtype and device; `bands` is its mask."""
    q, k, v, scale = call.q, call.k, call.v, call.scale
    B, H, T, E = q.shape
    S, Ev = v.shape[-2:]
    is_empty = not (B * H and T and S)
    if blocks is None and not is_empty and hopper.is_available(q.device):
        hopper_result = _forward_on_hopper(call, bands, request)
        if hopper_result is not None:
            return hopper_result
    result = allocate_result(request, q, v)
    if is_empty:
        return result
    if scale < 0:
        q, scale = -q, -scale  # scores are scaled after the maximum is found and must keep their order
    blocks = blocks or blocks_for(q.dtype, max(E, Ev), T, S, request.bins.width if request.bins else None)
    args = ForwardArguments(
        H=H,
        group_size=H // k.shape[1],
        T=T,
        S=S,
        scale=scale * LOG2E,
        cap=None if call.softcap is None else call.softcap * LOG2E,
        out=result.out,
        lse=result.lse,
        maximum=result.maximum,
        entropy=result.entropy,
    )
    kernel_args = _kernel_arguments(args, q, k, v, Limits.of(bands, blocks.rows), blocks)
    if request.bins is None or result.sums is None:
        _launch(kernel_args, None, blocks, None, 0, B * H * -(-T // blocks.rows))
    else:
        _launch_with_map(kernel_args, blocks, request.bins, result.sums.flatten(0, 1))
    return result


def _forward_on_hopper(call: AttentionCall, bands: MaskBands, request: ForwardRequest) -> ForwardResult | None:
    """The result of the kernels for Hopper GPUs; None where they do not support the call."""
    from regard.kernels.triton.hopper import launch as hopper_launch

    if not hopper_launch.supports(call, bands, request.bins, with_values=True):
        return None
    return hopper_launch.forward(call, bands, request, allocate_result(request, call.q, call.v))


def _kernel_arguments(
    args: ForwardArguments, q: Tensor, k: Tensor, v: Tensor, limits: Limits, blocks: Blocks
) -> KernelArguments:
    E, Ev = k.shape[3], v.shape[3]
    constants = {"E": E, "EV": Ev, "BLOCK_E": power_of_two(E), "BLOCK_EV": power_of_two(Ev)}
    constants |= {"ROWS": blocks.rows, "KEYS": blocks.keys} | loop_parts(limits, args.S % blocks.keys == 0)
    tensors, uses_tma = tiled_tensors((q, blocks.rows), (k, blocks.keys), (v, blocks.keys))
    return KernelArguments((args, *tensors, limits), constants | {"TMA": uses_tma})


def _launch_with_map(kernel_args: KernelArguments, blocks: Blocks, bins: Bins, sums: Tensor) -> None:
    """Write the sums, (B·H, R, C), for heads in groups; scratch grows with the number of programs."""
    heads, tiles = len(sums), -(-kernel_args.arguments[0].T // blocks.rows)
    strips_per_head = max_strips(kernel_args.arguments[0].T, bins, blocks.rows)
    limit = max(BUFFER_LIMIT, sums.numel())
    group = min(heads, max(1, limit // (strips_per_head * bins.C)))
    n_programs = min(programs(sums.device), tiles * group, max(1, limit // (bins.C * blocks.rows)))
    scratch = sums.new_empty((n_programs, bins.C, blocks.rows))
    for first in range(0, heads, group):
        group_heads = min(group, heads - first)
        strips = sums.new_zeros((group_heads, strips_per_head, bins.C))
        buffers = MapBuffers(scratch, strips, first, strips_per_head, bins.width, bins.height, bins.C)
        _launch(kernel_args, buffers, blocks, bins, first * tiles, (first + group_heads) * tiles)
        sum_strips(strips, bins, blocks.rows, sums[first : first + group_heads])


def _launch(
    kernel_args: KernelArguments, buffers: MapBuffers | None, blocks: Blocks, bins: Bins | None, first: int, last: int
) -> None:
    """Launch the row tiles first … last."""
    layout = {"BINS": "", "BIN_UNIT": 0, "BIN_ROWS": 0} if bins is None else bin_layout(bins, blocks.rows, blocks.keys)
    count = last - first if buffers is None else min(last - first, len(buffers.scratch))
    out = kernel_args.arguments[0].out
    launch(
        forward_kernel,
        count,
        blocks,
        out,
        *kernel_args.arguments,
        buffers,
        first,
        last,
        **kernel_args.constants,
        **layout,
    )
