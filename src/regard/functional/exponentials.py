"""Softmax, with a row that has nothing to choose from defined as zero. Twin of `reference.softmax`."""

import torch
from torch import Tensor


def computing_dtype(x: Tensor) -> torch.dtype:
    """The dtype to compute in: float32 for half precision, else its own."""
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum along `axis`; 0 where everything is -inf, with zero gradients."""
    if not x.is_floating_point():
        x = x.double()
    scores = x.to(computing_dtype(x))
    nothing = (scores == -torch.inf).all(dim=axis, keepdim=True)
    weights = torch.softmax(scores.masked_fill(nothing, 0), dim=axis).masked_fill(nothing, 0)
    return weights.to(x.dtype)


def log_sum_exp(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of the sum of exponentials along `axis`; -inf where there is nothing to sum."""
    scores = x.to(computing_dtype(x))
    if scores.shape[axis] == 0:
        return scores.sum(dim=axis) - torch.inf
    return torch.logsumexp(scores, dim=axis)
