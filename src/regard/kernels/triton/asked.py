"""What a forward is asked to tell beside its output, and what it told. No Triton here."""

from typing import NamedTuple

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
