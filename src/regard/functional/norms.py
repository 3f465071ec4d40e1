"""LayerNorm and RMSNorm in PyTorch: the counterparts of `reference.norms`, differentiable by autograd."""

import math

import torch.nn.functional as F
from torch import Tensor

from regard.errors import ArgumentError, ShapeError
from regard.functional.attention import computing_dtype
from regard.functional.position_wise import floats


def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Each row of x (…, D) with mean 0 and variance 1, then times `weight` and plus `bias`, both (D,).

    >>> import torch
    >>> [round(y, 4) for y in layer_norm(torch.tensor([1.0, 2.0, 3.0]), eps=0.0).tolist()]
    [-1.2247, 0.0, 1.2247]
    """
    _check(x, weight, bias, eps)
    x = floats(x)
    if all(part is None or part.dtype == x.dtype for part in (weight, bias)):
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)
    # A half-precision model may have norms in float32; PyTorch's kernels accept mixed dtypes only on some devices.
    y = F.layer_norm(x.to(computing_dtype(x)), x.shape[-1:], eps=eps)
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return y.to(x.dtype)


def rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = 1e-6, plus_one: bool = False) -> Tensor:
    """Each row of x (…, D) divided by its root mean square, then times `weight` (D,).

    The order is Llama's: normalised in float32, rounded to the dtype of x, and only then times `weight`.
    `F.rms_norm` with a weight would multiply before it rounds. `plus_one` multiplies by 1 + weight, in Gemma's order:
    all in float32, rounded once.

    >>> import torch
    >>> [round(y, 4) for y in rms_norm(torch.tensor([3.0, 4.0]), eps=0.0).tolist()]
    [0.8485, 1.1314]
    """
    _check(x, weight, None, eps)
    x = floats(x)
    wide = x.to(computing_dtype(x))
    if x.is_cuda:
        n = F.rms_norm(wide, x.shape[-1:], eps=eps)
    else:  # the formula: PyTorch has a kernel for GPUs only, and its CPU fallback takes twice as long for one row
        n = wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
    if plus_one and weight is not None:
        return (n * (1 + weight.to(n.dtype))).to(x.dtype)
    n = n.to(x.dtype)
    return n if weight is None else (n * weight).to(x.dtype)


def _check(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> None:
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError("width-wanted", found=tuple(x.shape))
    wanted = x.shape[-1:]
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.shape != wanted:
            raise ShapeError("norm-shape", name=name, wanted=tuple(wanted), found=tuple(part.shape), x=tuple(x.shape))
    if not (math.isfinite(eps) and eps >= 0):
        raise ArgumentError("eps-value", value=eps)
