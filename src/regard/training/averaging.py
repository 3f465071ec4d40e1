"""The mean of several checkpoints' weights: a better model than each of them (Vaswani et al. 2017, section 6.1)."""

from collections.abc import Iterable

import torch
from torch import Tensor


def averaged(models: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight, added up in float64 and given back in its own dtype.

    >>> averaged([{"w": torch.tensor([1.0])}, {"w": torch.tensor([2.0])}])["w"].item()
    1.5
    """
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for count, weights in enumerate(models, 1):
        for name, weight in weights.items():
            dtypes[name] = weight.dtype
            sums[name] = weight.to(torch.float64, copy=True) if count == 1 else sums[name].add_(weight)
    return {name: (total / count).to(dtypes[name]) for name, total in sums.items()}
