"""What a forward is asked to tell beside its output, and what it told. No Triton here."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.kernels.tiles import Bins


class Asked(NamedTuple):
    """What the pass is to tell beside its output; with `top` a score that so many keys of each query reach."""

    lse: bool = False
    maximum: bool = False
    entropy: bool = False
    bins: Bins | None = None
    top: int = 0


class Told(NamedTuple):
    """What it told: out B H T Ev; in float32 lse, maximum and entropy B H T, and sums, B H R C, of weights in bins.

    threshold  B H T, a score not scaled that `top` keys reach where so many are seen; not every kernel tells it
    """

    out: Tensor
    lse: Tensor | None = None
    maximum: Tensor | None = None
    entropy: Tensor | None = None
    sums: Tensor | None = None
    threshold: Tensor | None = None


def room_for(asked: Asked, q: Tensor, v: Tensor) -> Told:
    """Where it is written; what a call without queries or keys leaves as it is: zeros, and an LSE of -inf."""
    (B, H, T, _), (S, Ev) = q.shape, v.shape[-2:]

    def full(value: float, *shape: int) -> Tensor:
        room = torch.empty((B, H, *shape), dtype=torch.float32, device=q.device)
        return room if T and S else room.fill_(value)

    make = q.new_empty if T and S else q.new_zeros
    return Told(
        out=make((B, H, T, Ev)),
        lse=full(-torch.inf, T) if asked.lse or asked.bins else None,
        maximum=full(-torch.inf, T) if asked.maximum else None,
        entropy=full(0, T) if asked.entropy else None,
        sums=full(0, asked.bins.R, asked.bins.C) if asked.bins else None,
    )
