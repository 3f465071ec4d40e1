"""LayerNorm and RMSNorm as modules; the formulas are `functional.layer_norm` and `functional.rms_norm`."""

import torch
from torch import Tensor, nn

from regard.arrays import check_counts
from regard.functional import layer_norm, rms_norm


class LayerNorm(nn.Module):
    """Each vector with mean 0 and variance 1, then times a weight and plus a bias (Ba et al. 2016).

    >>> LayerNorm(3)(torch.tensor([1.0, 2.0, 3.0])).detach().round(decimals=2)
    tensor([-1.2200,  0.0000,  1.2200])
    """

    def __init__(self, width: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        check_counts(width=(width, 1))
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Each vector divided by its root mean square, then times a weight (Zhang and Sennrich 2019).

    plus_one   times 1 + weight instead, as Gemma; the weight is 0 at first

    >>> RMSNorm(2, eps=0.0)(torch.tensor([3.0, 4.0])).detach().round(decimals=2)
    tensor([0.8500, 1.1300])
    """

    def __init__(self, width: int, eps: float = 1e-6, plus_one: bool = False) -> None:
        super().__init__()
        check_counts(width=(width, 1))
        self.eps, self.plus_one = eps, plus_one
        self.weight = nn.Parameter(torch.zeros(width) if plus_one else torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps, self.plus_one)
