"""Attention and input checks shared by the documents' classes. Independent of their mask conventions."""

import torch

from deep_learning.checks import last_axis
from regard.errors import DtypeError
from regard.functional.attention import scaled_dot_product_attention
from regard.masks import Mask


def attend(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention and its weights, both in the dtype of Q."""
    for name, x in (("Q", Q), ("K", K), ("V", V)):
        check_tensor(name, x)
        if not x.is_floating_point():
            raise DtypeError("float-wanted", name=name, dtype=x.dtype)
    if not Q.dtype == K.dtype == V.dtype:
        raise DtypeError("dtypes-differ", q=Q.dtype, k=K.dtype, v=V.dtype)
    output, weights = scaled_dot_product_attention(Q, K, V, mask)
    return output, weights.to(Q.dtype)


def zero_fully_masked(out: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """`out` (B, T, D), with zeros for fully masked queries, which would otherwise get the bias of the output layer."""
    unmasked = weights.detach().sum(-1) != 0  # B T, or B H T; NaN counts as not masked
    if unmasked.ndim > 2:
        unmasked = unmasked.any(1)
    return out.masked_fill(~unmasked[..., None], 0)


def check_input(name: str, x: torch.Tensor, d_model: int) -> None:
    """Raise unless `x` is a tensor of shape (B, T, d_model)."""
    check_tensor(name, x)
    if not x.is_floating_point():
        raise DtypeError("float-wanted", name=name, dtype=x.dtype)
    last_axis(name, x, d_model, axes=3)


def check_tensor(name: str, x: object) -> None:
    """Raise DtypeError unless `x` is a tensor."""
    if not isinstance(x, torch.Tensor):
        raise DtypeError("tensor-wanted", name=name, found=type(x).__name__)
