"""Softmax and log-sum-exp in PyTorch: the counterpart of `reference.exponentials`. Softmax of all -inf is 0."""

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
    masked = (scores == -torch.inf).all(dim=axis, keepdim=True)
    weights = torch.softmax(scores.masked_fill(masked, 0), dim=axis).masked_fill(masked, 0)
    return weights.to(x.dtype)


def log_sum_exp(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of the sum of exponentials along `axis`; -inf for an empty axis."""
    scores = x.to(computing_dtype(x))
    if scores.shape[axis] == 0:
        return scores.sum(dim=axis) - torch.inf
    return torch.logsumexp(scores, dim=axis)
