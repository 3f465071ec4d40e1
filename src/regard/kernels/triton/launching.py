"""From tensors to the forward's launches: tiles, scratch and strips, heads in groups so that memory stays bounded."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton.blocks import Blocks, blocks_for, power_of_two, programs
from regard.kernels.triton.forward import Task, forward_kernel
from regard.kernels.triton.pooling import Pool, layout_of, map_of_strips, most_touched
from regard.kernels.triton.sight import Sight
from regard.kernels.triton.starting import launch
from regard.kernels.triton.tiles import LOG2E, Heads, Limits

ROOM = 2**24
"""Numbers in all scratch, and in all strips: 64 MiB each, or as much as the map itself, where that is more."""


class Asked(NamedTuple):
    """What the pass is to tell beside its output."""

    lse: bool = False
    maximum: bool = False
    entropy: bool = False
    bins: Bins | None = None


class Told(NamedTuple):
    """What it told: out B H T Ev; in float32 lse, maximum and entropy B H T, and sums, B H R C, of weights in bins."""

    out: Tensor
    lse: Tensor | None = None
    maximum: Tensor | None = None
    entropy: Tensor | None = None
    sums: Tensor | None = None


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
    told = _empty(q, S, Ev, asked)
    if not (B * H and T and S):
        return told
    if scale < 0:
        q, scale = -q, -scale  # scaled after a maximum is found, scores must keep their order
    blocks = blocks or blocks_for(q.dtype, max(E, Ev), T, S, asked.bins.wide if asked.bins else None)
    task = Task(
        q=Heads.of(q),
        k=Heads.of(k),
        v=Heads.of(v),
        H=H,
        served=H // k.shape[1],
        T=T,
        S=S,
        limits=Limits.of(sight, blocks.rows),
        scale=scale * LOG2E,
        cap=None if softcap is None else softcap * LOG2E,
        out=told.out,
        lse=told.lse,
        maximum=told.maximum,
        entropy=told.entropy,
    )
    if asked.bins is None or told.sums is None:
        _launch(task, (E, Ev), blocks, None, 0, B * H * -(-T // blocks.rows))
    else:
        _with_map(task, (E, Ev), blocks, asked.bins, told.sums.flatten(0, 1))
    return told


def _empty(q: Tensor, S: int, Ev: int, asked: Asked) -> Told:
    """Room for what is asked; what a call without queries or keys leaves as it is: zeros, and an LSE of -inf."""
    B, H, T, _ = q.shape

    def full(value: float, *shape: int) -> Tensor:
        return torch.full((B, H, *shape), value, dtype=torch.float32, device=q.device)

    make = q.new_empty if T and S else q.new_zeros
    return Told(
        out=make((B, H, T, Ev)),
        lse=full(-torch.inf, T) if asked.lse or asked.bins else None,
        maximum=full(-torch.inf, T) if asked.maximum else None,
        entropy=full(0, T) if asked.entropy else None,
        sums=full(0, asked.bins.R, asked.bins.C) if asked.bins else None,
    )


def _with_map(task: Task, widths: tuple[int, int], blocks: Blocks, bins: Bins, sums: Tensor) -> None:
    """Writes the sums, (B·H, R, C), heads in groups; scratch is as large as programs are many."""
    heads, tiles = len(sums), -(-task.T // blocks.rows)
    pieces = most_touched(blocks.rows, bins.high)
    room = max(ROOM, sums.numel())
    group = min(heads, max(1, room // (tiles * pieces * bins.C)))
    running = min(programs(sums.device), tiles * group, max(1, room // (bins.C * blocks.rows)))
    scratch = sums.new_empty((running, bins.C, blocks.rows))
    for first in range(0, heads, group):
        some = min(group, heads - first)
        strips = sums.new_zeros((some, tiles, pieces, bins.C))
        pool = Pool(scratch, strips, first, pieces, bins.wide, bins.high, bins.C)
        _launch(task._replace(pool=pool), widths, blocks, bins, first * tiles, (first + some) * tiles)
        sums[first : first + some] = map_of_strips(strips, bins, blocks.rows)


def _launch(task: Task, widths: tuple[int, int], blocks: Blocks, bins: Bins | None, first: int, last: int) -> None:
    """The row tiles first … last."""
    E, Ev = widths
    layout = {"BINS": "", "SHARE": 0, "TALL": 0} if bins is None else layout_of(bins, blocks.rows, blocks.keys)
    count = last - first if task.pool is None else min(last - first, len(task.pool.scratch))
    launch(
        forward_kernel,
        count,
        blocks,
        task.out,
        task,
        first,
        last,
        E=E,
        EV=Ev,
        BLOCK_E=power_of_two(E),
        BLOCK_EV=power_of_two(Ev),
        ROWS=blocks.rows,
        KEYS=blocks.keys,
        WHOLE=task.S % blocks.keys == 0,
        **layout,
    )
