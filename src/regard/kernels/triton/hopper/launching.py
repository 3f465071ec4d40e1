"""From tensors to the launches on Hopper GPUs, and which calls fit. Others stay with Triton."""

from typing import Any

import torch
import triton
from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton.asked import Asked, Told
from regard.kernels.triton.hopper.crew import ROWS, SECOND, TOGETHER, WIDTHS, Crew, crew_for
from regard.kernels.triton.hopper.forward import forward_kernel
from regard.kernels.triton.hopper.second import second_kernel
from regard.kernels.triton.hopper.tensors import GLUON, bins_fit, described, layout_for, programs_for, with_map
from regard.kernels.triton.hopper.turns import Task
from regard.kernels.triton.hopper.weighing import Pool
from regard.kernels.triton.sight import Sight
from regard.kernels.triton.starting import FUSED, on_device
from regard.kernels.triton.tiles import LOG2E, can_be_described


def fits(*tensors: Tensor, sight: Sight, scale: float, softcap: float | None, bins: Bins | None) -> bool:
    """Whether it can: half precision, heads 64 or 128 wide, all keys seen or those up to an edge, bins that fit."""
    q, *_ = tensors
    E = q.shape[3]
    return (
        E in WIDTHS
        and all(x.shape[3] == E and can_be_described(x) for x in tensors)
        and q.dtype in GLUON
        and q.shape[2] >= ROWS
        and sight.queries is None
        and sight.left is None
        and softcap is None
        and scale > 0
        and (bins is None or bins_fit(bins))
    )


def forward(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, told: Told, *, scale: float, asked: Asked, crew: Crew | None = None
) -> None:
    """Writes what was asked for into `told`. q B H T E, k and v B G S E; a call that `fits`."""
    causal = sight.right is not None
    crew = crew or crew_for(q.shape[3], is_map=asked.bins is not None, is_entropy=asked.entropy, is_causal=causal)
    task = _task(q, k, sight, scale, told.out, told.lse, told.entropy)
    flags = {"LSE": told.lse is not None, "ENTROPY": told.entropy is not None}

    def launch(task: Task, pool: Pool, programs: int, layout: dict[str, Any]) -> None:
        with on_device(q):
            forward_kernel[(programs,)](
                task,
                pool,
                described(q, ROWS),
                described(k, crew.keys),
                described(v, crew.keys),
                CONSUMERS=crew.consumers,
                KEY_STAGES=crew.key_stages,
                VALUE_STAGES=crew.value_stages,
                REGISTERS=crew.registers,
                LATER=crew.later,
                CAUSAL=causal,
                query_layout=layout_for(q.dtype, ROWS, q.shape[3]),
                key_layout=layout_for(q.dtype, crew.keys, q.shape[3]),
                num_warps=4,
                **FUSED,
                **flags,
                **layout,
            )

    if asked.bins is None or told.sums is None:
        tiles = task.heads * triton.cdiv(task.T, crew.rows)
        launch(task, _no_pool(told.out), programs_for(tiles, q.device), {"BINS": "", "SHARE": 0, "PIECES": 1})
    else:
        with_map(task, asked.bins, told.sums.flatten(0, 1), crew.consumers, launch)


def map_of(q: Tensor, k: Tensor, lse: Tensor, sight: Sight, *, scale: float, bins: Bins) -> Tensor:
    """Sums of weights over the bins, B H R C, from the LSE, B H T in nats; a call that `fits`."""
    sums = lse.new_zeros(*lse.shape[:2], bins.R, bins.C)
    task = _task(q, k, sight, scale, sums, _base_two(lse), None)

    def launch(task: Task, pool: Pool, programs: int, layout: dict[str, Any]) -> None:
        _second(task, pool, q, k, programs, sight, by_keys=False, layout=layout)

    with_map(task, bins, sums.flatten(0, 1), SECOND.consumers, launch)
    return sums


def received_of(q: Tensor, k: Tensor, lse: Tensor, sight: Sight, *, scale: float) -> Tensor:
    """What each key received from all queries, B H S, from the LSE, B H T in nats; a call that `fits`."""
    found = lse.new_empty(*lse.shape[:2], k.shape[2])
    task = _task(q, k, sight, scale, found, _base_two(lse), None)
    programs = programs_for(task.heads * triton.cdiv(task.S, SECOND.rows), q.device)
    layout = {"BINS": "", "SHARE": 0, "PIECES": 1}
    _second(task, _no_pool(found), k, q, programs, sight, by_keys=True, layout=layout)
    return found


def _second(
    task: Task,
    pool: Pool,
    own: Tensor,
    passing: Tensor,
    programs: int,
    sight: Sight,
    *,
    by_keys: bool,
    layout: dict[str, Any],
) -> None:
    assert SECOND.consumers == 3, "as the kernel is written"
    with on_device(own):
        second_kernel[(programs,)](
            task,
            pool,
            described(own, ROWS),
            described(passing, SECOND.keys),
            STAGES=SECOND.key_stages,
            REGISTERS=SECOND.registers,
            BY_KEYS=by_keys,
            CAUSAL=sight.right is not None,
            own_layout=layout_for(own.dtype, ROWS, own.shape[3]),
            passing_layout=layout_for(own.dtype, SECOND.keys, own.shape[3]),
            num_warps=4,
            **FUSED,
            **layout,
        )


def _task(
    q: Tensor, k: Tensor, sight: Sight, scale: float, out: Tensor, lse: Tensor | None, entropy: Tensor | None
) -> Task:
    (B, H, T, _), (G, S) = q.shape, k.shape[1:3]
    return Task(
        first=0,
        heads=B * H,
        together=TOGETHER,
        H=H,
        served=H // G,
        T=T,
        S=S,
        edge=0 if sight.right is None else sight.offset + sight.right,
        scale=scale * LOG2E,
        out=out,
        lse=out if lse is None else lse,
        entropy=out if entropy is None else entropy,
    )


def _no_pool(x: Tensor) -> Pool:
    return Pool(x, x, 1, 1, 1)


def _base_two(lse: Tensor) -> Tensor:
    """What is taken off the scores; infinity where a query sees nothing."""
    return torch.where(lse == -torch.inf, torch.inf, lse * LOG2E).contiguous()
