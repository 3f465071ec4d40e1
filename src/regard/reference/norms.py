"""LayerNorm and RMSNorm over the last axis, with backward passes by hand.

    LayerNorm(x) = (x − μ) / √(σ² + ε) ∘ weight + bias       Ba et al. 2016; μ and σ² of the row, σ² with 1/D
    RMSNorm(x)   = x / √(mean(x²) + ε) ∘ weight              Zhang & Sennrich 2019; in Gemma ∘ (1 + weight)

For half precision the statistics are computed in float32: squares overflow float16 from 256 on.
"""

import math
from typing import NamedTuple

import numpy as np

from regard.errors import ArgumentError, ShapeError
from regard.reference.attention import computing_dtype, sum_to_shape
from regard.reference.inputs import array_likes

# Overflow gives inf and undefined results give NaN, without a NumPy warning: NaN in, NaN out.
_no_warnings = np.errstate(over="ignore", invalid="ignore", divide="ignore")


class NormGradients(NamedTuple):
    """The gradients of the input, and of weight and bias if given."""

    x: np.ndarray
    weight: np.ndarray | None = None
    bias: np.ndarray | None = None


@array_likes
@_no_warnings
def layer_norm(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, eps: float = 1e-5
) -> np.ndarray:
    """Each row of x (…, D) with mean 0 and variance 1, then times `weight` and plus `bias`, both (D,).

    Half precision is rounded once, at the end, as in PyTorch.

    >>> layer_norm(np.array([[1.0, 2.0, 3.0]]), eps=0.0).round(4).tolist()
    [[-1.2247, 0.0, 1.2247]]
    """
    _check(x, weight, bias, eps)
    y, _ = _centred(x, eps)
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return _as_dtype_of(y, x)


@array_likes
@_no_warnings
def layer_norm_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    eps: float = 1e-5,
) -> NormGradients:
    """The gradients of x, weight and bias, given the gradient of the output.

    With n the normalised row and dn = dO ∘ weight: dx = (dn − mean(dn) − n mean(dn ∘ n)) / σ. The two means
    come from the mean and the variance of the row: no gradient is left along 1, and none along n.
    """
    _check(x, weight, bias, eps)
    n, inverse = _centred(x, eps)
    d_output = _checked_gradient(grad_output, x).astype(n.dtype)
    d_n = d_output if weight is None else d_output * weight
    along_n = (d_n * n).mean(-1, keepdims=True)
    d_x = (d_n - d_n.mean(-1, keepdims=True) - n * along_n) * inverse
    return NormGradients(
        x=_as_dtype_of(d_x, x),
        weight=None if weight is None else _as_dtype_of(sum_to_shape(d_output * n, weight.shape), weight),
        bias=None if bias is None else _as_dtype_of(sum_to_shape(d_output, bias.shape), bias),
    )


@array_likes
@_no_warnings
def rms_norm(x: np.ndarray, weight: np.ndarray | None = None, eps: float = 1e-6, plus_one: bool = False) -> np.ndarray:
    """Each row of x (…, D) divided by its root mean square, then times `weight` (D,).

    The order is Llama's: normalised in float32, rounded to the dtype of x, and only then times `weight`.
    PyTorch multiplies first, so in half precision the last digit may differ; in float32 the two are the same.
    `plus_one` multiplies by 1 + weight, in Gemma's order: all in float32, rounded once.

    >>> rms_norm(np.array([[3.0, 4.0]]), eps=0.0).round(4).tolist()
    [[0.8485, 1.1314]]
    """
    _check(x, weight, None, eps)
    wide, _ = _divided_by_rms(x, eps)
    if plus_one and weight is not None:
        return _as_dtype_of(wide * (1 + weight.astype(wide.dtype)), x)
    n = _as_dtype_of(wide, x)
    return n if weight is None else _as_dtype_of(n * weight, x)


@array_likes
@_no_warnings
def rms_norm_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray | None = None,
    eps: float = 1e-6,
    plus_one: bool = False,
) -> NormGradients:
    """The gradients of x and weight, given the gradient of the output.

    With n the row divided by its root mean square and dn = dO ∘ weight: dx = (dn − n mean(dn ∘ n)) / rms.
    """
    _check(x, weight, None, eps)
    n, inverse = _divided_by_rms(x, eps)
    d_output = _checked_gradient(grad_output, x).astype(n.dtype)
    factor = 1 if weight is None else 1 + weight.astype(n.dtype) if plus_one else weight
    d_n = d_output * factor
    d_x = (d_n - n * (d_n * n).mean(-1, keepdims=True)) * inverse
    return NormGradients(
        x=_as_dtype_of(d_x, x),
        weight=None if weight is None else _as_dtype_of(sum_to_shape(d_output * n, weight.shape), weight),
    )


def _centred(x: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """(x − μ) / σ and 1 / σ."""
    wide = x.astype(computing_dtype(x))
    difference = wide - wide.mean(-1, keepdims=True)
    # The mean of the squared differences: mean(x²) − μ² loses precision for a row far from 0.
    inverse = 1 / np.sqrt((difference**2).mean(-1, keepdims=True) + eps)
    return difference * inverse, inverse


def _divided_by_rms(x: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """x / rms and 1 / rms."""
    wide = x.astype(computing_dtype(x))
    inverse = 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + eps)
    return wide * inverse, inverse


def _check(x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float) -> None:
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError("width-wanted", found=x.shape)
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.shape != x.shape[-1:]:
            raise ShapeError("norm-shape", name=name, wanted=x.shape[-1:], found=part.shape, x=x.shape)
    if not (math.isfinite(eps) and eps >= 0):
        raise ArgumentError("eps-value", value=eps)


def _checked_gradient(grad_output: np.ndarray, x: np.ndarray) -> np.ndarray:
    if grad_output.shape != x.shape:
        raise ShapeError("output-shape", what="grad_output", wanted=x.shape, found=grad_output.shape)
    return grad_output


def _as_dtype_of(y: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`y` in the dtype of `like`; float64 if that is an integer dtype."""
    return y.astype(like.dtype if like.dtype.kind == "f" else np.float64)
