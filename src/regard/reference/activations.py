"""ReLU, GELU and SiLU: what the feed-forward part bends its numbers with, and their slopes by hand.

Each takes one array of any shape and gives one like it. Half precision is computed in float32; whole numbers
become float64, except under ReLU, which needs no fractions. Nothing here knows of weights.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from regard.errors import ArgumentError, ShapeError
from regard.reference.arrays import array_likes
from regard.reference.exponentials import computing_dtype
from regard.words import Listed

Approximate = Literal["none", "tanh"]
ActivationName = Literal["relu", "gelu", "gelu_tanh", "silu"]

# The two constants of the tanh form: √(2/π), and the cubic term as printed in the paper.
_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBE = 0.044715

_erfc = np.frompyfunc(math.erfc, 1, 1)


class Activation(NamedTuple):
    """A function of x, and its backward, which takes the output's gradient and the same x."""

    forward: Callable[[np.ndarray], np.ndarray]
    backward: Callable[[np.ndarray, np.ndarray], np.ndarray]


@array_likes
def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0).

    >>> relu(np.array([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.0, 3.0]
    """
    x = np.asarray(x)
    return np.asarray(np.maximum(x, np.zeros((), x.dtype)))


@array_likes
def relu_backward(grad_output: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The gradient of x: it passes where x > 0. At 0, where ReLU has no slope, we take 0, as PyTorch does."""
    x, grad_output = np.asarray(x), _same_shape(grad_output, x)
    # "not at or below 0" rather than "above 0": beside a NaN the gradient must not look healthy by being 0.
    return np.where(x <= 0, 0, grad_output).astype(_result_dtype(x))


@array_likes
def gelu(x: np.ndarray, approximate: Approximate = "none") -> np.ndarray:
    """x Φ(x), with Φ the distribution function of the normal distribution (Hendrycks & Gimpel 2016).

    `approximate="tanh"` is 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), which GPT-2 was trained with.

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.1587, 0.0, 0.8413]
    """
    _known_approximation(approximate)
    x = np.asarray(x)
    wide = x.astype(computing_dtype(x))
    with np.errstate(over="ignore", invalid="ignore"):  # -inf · 0 is NaN, as in torch
        if approximate == "tanh":
            y = 0.5 * wide * (1 + np.tanh(_TANH_SCALE * (wide + _TANH_CUBE * wide**3)))
        else:
            y = wide * _normal_cdf(wide)
    return np.asarray(y, _result_dtype(x))


@array_likes
def gelu_backward(grad_output: np.ndarray, x: np.ndarray, approximate: Approximate = "none") -> np.ndarray:
    """The gradient of x; the slope is Φ(x) + x φ(x), with φ the normal density, or that of the tanh form."""
    _known_approximation(approximate)
    x, grad_output = np.asarray(x), _same_shape(grad_output, x)
    # Beyond ±100 the slope is 0 or 1 to the last digit, and the powers of x would only overflow into 0 · inf.
    wide = np.clip(x.astype(computing_dtype(x)), -100, 100)
    if approximate == "tanh":
        t = np.tanh(_TANH_SCALE * (wide + _TANH_CUBE * wide**3))
        slope = 0.5 * (1 + t) + 0.5 * wide * (1 - t**2) * _TANH_SCALE * (1 + 3 * _TANH_CUBE * wide**2)
    else:
        slope = _normal_cdf(wide) + wide * np.exp(-(wide**2) / 2) / math.sqrt(2 * math.pi)
    return _times(grad_output, slope, x)


@array_likes
def silu(x: np.ndarray) -> np.ndarray:
    """x σ(x), with σ(x) = 1 / (1 + exp(−x)); also called Swish (Elfwing et al. 2017).

    >>> silu(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.2689, 0.0, 0.7311]
    """
    x = np.asarray(x)
    wide = x.astype(computing_dtype(x))
    with np.errstate(over="ignore", invalid="ignore"):  # far left: x / inf, which is the 0 we want
        return np.asarray(wide / (1 + np.exp(-wide)), _result_dtype(x))


@array_likes
def silu_backward(grad_output: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The gradient of x; the slope is σ(x) (1 + x (1 − σ(x)))."""
    x, grad_output = np.asarray(x), _same_shape(grad_output, x)
    wide = x.astype(computing_dtype(x))
    with np.errstate(over="ignore", invalid="ignore"):
        sigmoid = 1 / (1 + np.exp(-wide))
        slope = sigmoid * (1 + wide * (1 - sigmoid))
    return _times(grad_output, slope, x)


ACTIVATIONS: dict[ActivationName, Activation] = {
    "relu": Activation(relu, relu_backward),
    "gelu": Activation(gelu, gelu_backward),
    "gelu_tanh": Activation(
        lambda x: gelu(x, approximate="tanh"),
        lambda grad_output, x: gelu_backward(grad_output, x, approximate="tanh"),
    ),
    "silu": Activation(silu, silu_backward),
}


def activation_called(name: ActivationName) -> Activation:
    """The activation of that name; ArgumentError with the choices where there is none.

    >>> activation_called("relu").forward(np.array([-1, 1])).tolist()
    [0, 1]
    """
    if name not in ACTIVATIONS:
        raise ArgumentError("unknown-choice", name="activation", value=name, choices=Listed(ACTIVATIONS))
    return ACTIVATIONS[name]


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    """Φ(x), by Python's erfc: NumPy has none, and 1 + erf would lose its digits on the far left."""
    return np.asarray(0.5 * _erfc(-x / math.sqrt(2))).astype(x.dtype)


def _known_approximation(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise ArgumentError("unknown-choice", name="approximate", value=approximate, choices="none, tanh")


def _same_shape(grad_output: np.ndarray, x: np.ndarray) -> np.ndarray:
    grad_output = np.asarray(grad_output)
    if grad_output.shape != x.shape:
        raise ShapeError("output-shape", what="grad_output", wanted=x.shape, found=grad_output.shape)
    return grad_output


def _result_dtype(x: np.ndarray) -> np.dtype:
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)


def _times(grad_output: np.ndarray, slope: np.ndarray, x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(grad_output * slope, _result_dtype(x))
