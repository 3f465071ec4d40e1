"""From tensors to the forward's launches: tiles, scratch and strips, heads in groups so that memory stays bounded."""

import torch
from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.forward import Task, forward_kernel
from regard.kernels.triton.launch import Inputs, launch
from regard.kernels.triton.mask_bands import Sight
from regard.kernels.triton.pooling import Pool, join, layout_of, strips_of_head
from regard.kernels.triton.support import Asked, Told, room_for
from regard.kernels.triton.tile_sizes import Blocks, blocks_for, power_of_two, programs
from regard.kernels.triton.tiles import LOG2E, Limits, parts_of_walk, tensors_in_tiles

ROOM = 2**24
"""Numbers in all scratch, and in all strips: 64 MiB each, or as much as the map itself, where that is more, or what one
head needs.
"""


@torch.no_grad()
def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sight: Sight,
    *,
    scale: float,
    softcap: float | None = None,
    asked: Asked,
    blocks: Blocks | None = None,
) -> Told:
    """q B H T E, k B G S E, v B G S Ev, of one dtype on one device."""
    B, H, T, E = q.shape
    S, Ev = v.shape[-2:]
    is_empty = not (B * H and T and S)
    if blocks is None and not asked.maximum and not is_empty and hopper.is_at_hand(q.device):
        quick = _by_hopper(q, k, v, sight, scale, softcap, asked)
        if quick is not None:
            return quick
    told = room_for(asked, q, v)
    if is_empty:
        return told
    if scale < 0:
        q, scale = -q, -scale  # scaled after a maximum is found, scores must keep their order
    blocks = blocks or blocks_for(q.dtype, max(E, Ev), T, S, asked.bins.wide if asked.bins else None)
    task = Task(
        H=H,
        served=H // k.shape[1],
        T=T,
        S=S,
        scale=scale * LOG2E,
        cap=None if softcap is None else softcap * LOG2E,
        out=told.out,
        lse=told.lse,
        maximum=told.maximum,
        entropy=told.entropy,
    )
    inputs = _inputs(task, q, k, v, Limits.of(sight, blocks.rows), blocks)
    if asked.bins is None or told.sums is None:
        _launch(inputs, None, blocks, None, 0, B * H * -(-T // blocks.rows))
    else:
        _with_map(inputs, blocks, asked.bins, told.sums.flatten(0, 1))
    return told


def _by_hopper(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float, softcap: float | None, asked: Asked
) -> Told | None:
    """What the kernels for Hopper GPUs tell; None where they cannot."""
    from regard.kernels.triton.hopper import launch as quicker

    if not quicker.fits(q, k, v, sight=sight, scale=scale, softcap=softcap, bins=asked.bins):
        return None
    room = room_for(asked, q, v)
    return quicker.forward(q, k, v, sight, room, scale=scale, asked=asked)


def _inputs(task: Task, q: Tensor, k: Tensor, v: Tensor, limits: Limits, blocks: Blocks) -> Inputs:
    E, Ev = k.shape[3], v.shape[3]
    constants = {"E": E, "EV": Ev, "BLOCK_E": power_of_two(E), "BLOCK_EV": power_of_two(Ev)}
    constants |= {"ROWS": blocks.rows, "KEYS": blocks.keys} | parts_of_walk(limits, task.S % blocks.keys == 0)
    tensors, by_engine = tensors_in_tiles((q, blocks.rows), (k, blocks.keys), (v, blocks.keys))
    return Inputs((task, *tensors, limits), constants | {"TMA": by_engine})


def _with_map(inputs: Inputs, blocks: Blocks, bins: Bins, sums: Tensor) -> None:
    """Writes the sums, (B·H, R, C), heads in groups; scratch is as large as programs are many."""
    heads, tiles = len(sums), -(-inputs.arguments[0].T // blocks.rows)
    of_head = strips_of_head(inputs.arguments[0].T, bins, blocks.rows)
    room = max(ROOM, sums.numel())
    group = min(heads, max(1, room // (of_head * bins.C)))
    running = min(programs(sums.device), tiles * group, max(1, room // (bins.C * blocks.rows)))
    scratch = sums.new_empty((running, bins.C, blocks.rows))
    for first in range(0, heads, group):
        some = min(group, heads - first)
        strips = sums.new_zeros((some, of_head, bins.C))
        pool = Pool(scratch, strips, first, of_head, bins.wide, bins.high, bins.C)
        _launch(inputs, pool, blocks, bins, first * tiles, (first + some) * tiles)
        join(strips, bins, blocks.rows, sums[first : first + some])


def _launch(inputs: Inputs, pool: Pool | None, blocks: Blocks, bins: Bins | None, first: int, last: int) -> None:
    """The row tiles first … last."""
    layout = {"BINS": "", "SHARE": 0, "TALL": 0} if bins is None else layout_of(bins, blocks.rows, blocks.keys)
    count = last - first if pool is None else min(last - first, len(pool.scratch))
    out = inputs.arguments[0].out
    launch(forward_kernel, count, blocks, out, *inputs.arguments, pool, first, last, **inputs.constants, **layout)
