"""The feed-forward layer, plain and gated, and its activations ReLU, GELU and SiLU, with backward passes by hand."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from regard.errors import ArgumentError, ShapeError
from regard.messages import Listed
from regard.reference.attention import computing_dtype, linear, linear_backward
from regard.reference.inputs import array_likes

Approximate = Literal["none", "tanh"]
ActivationName = Literal["relu", "gelu", "gelu_tanh", "silu"]

# The two constants of the tanh approximation: √(2/π), and the cubic term as printed in the paper.
_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBE = 0.044715

_erfc = np.frompyfunc(math.erfc, 1, 1)


class Activation(NamedTuple):
    """A function of x, and its backward pass, a function of the gradient of the output and of x."""

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
    """The gradient of x: that of the output where x > 0, else 0; also 0 at x = 0, as in PyTorch."""
    x, grad_output = np.asarray(x), _same_shape(grad_output, x)
    # `x <= 0`, not `x > 0`: for a NaN in x the gradient must not be 0, which would hide the NaN.
    return np.where(x <= 0, 0, grad_output).astype(_result_dtype(x))


@array_likes
def gelu(x: np.ndarray, approximate: Approximate = "none") -> np.ndarray:
    """x Φ(x), with Φ the cumulative distribution function of the normal distribution (Hendrycks & Gimpel 2016).

    `approximate="tanh"` is 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), as used by GPT-2.

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.1587, 0.0, 0.8413]
    """
    _check_approximation(approximate)
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
    """The gradient of x; the slope is Φ(x) + x φ(x), with φ the normal density, or that of the tanh approximation."""
    _check_approximation(approximate)
    x, grad_output = np.asarray(x), _same_shape(grad_output, x)
    # Beyond ±100 the slope is exactly 0 or 1, and the powers of x would overflow to 0 · inf.
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
    with np.errstate(over="ignore", invalid="ignore"):  # x far below 0: x / inf is 0, as it should be
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


def get_activation(name: ActivationName) -> Activation:
    """The activation of that name; ArgumentError with the choices if there is none.

    >>> get_activation("relu").forward(np.array([-1, 1])).tolist()
    [0, 1]
    """
    if name not in ACTIVATIONS:
        raise ArgumentError("unknown-choice", name="activation", value=name, choices=Listed(ACTIVATIONS))
    return ACTIVATIONS[name]


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    """Φ(x), by Python's erfc: NumPy has none, and 1 + erf loses precision far below 0."""
    return np.asarray(0.5 * _erfc(-x / math.sqrt(2))).astype(x.dtype)


def _check_approximation(approximate: str) -> None:
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


# Overflow gives inf and undefined results give NaN, without a NumPy warning: NaN in, NaN out.
_no_warnings = np.errstate(over="ignore", invalid="ignore")


class FeedForwardGradients(NamedTuple):
    """The gradients of the input and of the weights; None for a bias that was not given."""

    x: np.ndarray
    W_1: np.ndarray
    W_2: np.ndarray
    b_1: np.ndarray | None = None
    b_2: np.ndarray | None = None


class GatedFeedForwardGradients(NamedTuple):
    """The gradients of the input and of the three weights."""

    x: np.ndarray
    W_gate: np.ndarray
    W_up: np.ndarray
    W_down: np.ndarray


@array_likes
@_no_warnings
def feed_forward(
    x: np.ndarray,
    W_1: np.ndarray,
    W_2: np.ndarray,
    b_1: np.ndarray | None = None,
    b_2: np.ndarray | None = None,
    activation: ActivationName = "relu",
) -> np.ndarray:
    """f(x W_1 + b_1) W_2 + b_2 for x (…, D), W_1 (D, F), W_2 (F, D), in the dtype of x.

    >>> feed_forward(np.array([[1.0, -2.0]]), np.eye(2), 10 * np.eye(2), b_2=np.ones(2)).tolist()
    [[11.0, 1.0]]
    """
    _check_weights(x, W_1, W_2, b_1, b_2)
    f = get_activation(activation).forward
    hidden = linear(x.astype(computing_dtype(x)), W_1, b_1)  # … F
    return _as_dtype_of(linear(f(hidden), W_2, b_2), x)


@array_likes
@_no_warnings
def feed_forward_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    W_1: np.ndarray,
    W_2: np.ndarray,
    b_1: np.ndarray | None = None,
    b_2: np.ndarray | None = None,
    activation: ActivationName = "relu",
) -> FeedForwardGradients:
    """The gradients of x and of every weight, given the gradient of the output."""
    _check_weights(x, W_1, W_2, b_1, b_2)
    _check_gradient(grad_output, x, W_2)
    f = get_activation(activation)
    wide = x.astype(computing_dtype(x))
    hidden = linear(wide, W_1, b_1)
    d_activated, d_W_2, d_b_2 = linear_backward(grad_output.astype(wide.dtype), f.forward(hidden), W_2, b_2)
    d_x, d_W_1, d_b_1 = linear_backward(f.backward(d_activated, hidden), wide, W_1, b_1)
    return FeedForwardGradients(
        x=_as_dtype_of(d_x, x),
        W_1=_as_dtype_of(d_W_1, W_1),
        W_2=_as_dtype_of(d_W_2, W_2),
        b_1=None if d_b_1 is None or b_1 is None else _as_dtype_of(d_b_1, b_1),
        b_2=None if d_b_2 is None or b_2 is None else _as_dtype_of(d_b_2, b_2),
    )


@array_likes
@_no_warnings
def gated_feed_forward(
    x: np.ndarray,
    W_gate: np.ndarray,
    W_up: np.ndarray,
    W_down: np.ndarray,
    activation: ActivationName = "silu",
) -> np.ndarray:
    """(f(x W_gate) ∘ x W_up) W_down for x (…, D), W_gate and W_up (D, F), W_down (F, D), in the dtype of x.

    >>> gated_feed_forward(np.array([[3.0]]), np.eye(1), 2 * np.eye(1), np.eye(1), activation="relu").tolist()
    [[18.0]]
    """
    _check_gated_weights(x, W_gate, W_up, W_down)
    f = get_activation(activation).forward
    wide = x.astype(computing_dtype(x))
    hidden = f(linear(wide, W_gate)) * linear(wide, W_up)  # … F
    return _as_dtype_of(linear(hidden, W_down), x)


@array_likes
@_no_warnings
def gated_feed_forward_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    W_gate: np.ndarray,
    W_up: np.ndarray,
    W_down: np.ndarray,
    activation: ActivationName = "silu",
) -> GatedFeedForwardGradients:
    """The gradients of x and of the three weights; x feeds both gate and up, so its gradient is the sum of two."""
    _check_gated_weights(x, W_gate, W_up, W_down)
    _check_gradient(grad_output, x, W_down)
    f = get_activation(activation)
    wide = x.astype(computing_dtype(x))
    gate, up = linear(wide, W_gate), linear(wide, W_up)
    activated = f.forward(gate)
    d_hidden, d_W_down, _ = linear_backward(grad_output.astype(wide.dtype), activated * up, W_down)
    d_x_gate, d_W_gate, _ = linear_backward(f.backward(d_hidden * up, gate), wide, W_gate)
    d_x_up, d_W_up, _ = linear_backward(d_hidden * activated, wide, W_up)
    return GatedFeedForwardGradients(
        x=_as_dtype_of(d_x_gate + d_x_up, x),
        W_gate=_as_dtype_of(d_W_gate, W_gate),
        W_up=_as_dtype_of(d_W_up, W_up),
        W_down=_as_dtype_of(d_W_down, W_down),
    )


def _check_weights(
    x: np.ndarray, W_1: np.ndarray, W_2: np.ndarray, b_1: np.ndarray | None, b_2: np.ndarray | None
) -> None:
    F = _columns("W_1", W_1, _width(x), x)
    D = _columns("W_2", W_2, F, x)
    for name, b, wanted in (("b_1", b_1, (F,)), ("b_2", b_2, (D,))):
        if b is not None and b.shape != wanted:
            raise ShapeError("part-shape", name=name, wanted=wanted, found=b.shape, x=x.shape)


def _check_gated_weights(x: np.ndarray, W_gate: np.ndarray, W_up: np.ndarray, W_down: np.ndarray) -> None:
    D = _width(x)
    F = _columns("W_gate", W_gate, D, x)
    if W_up.shape != (D, F):
        raise ShapeError("part-shape", name="W_up", wanted=(D, F), found=W_up.shape, x=x.shape)
    _columns("W_down", W_down, F, x)


def _width(x: np.ndarray) -> int:
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError("width-wanted", found=x.shape)
    return int(x.shape[-1])


def _columns(name: str, W: np.ndarray, rows: int, x: np.ndarray) -> int:
    """The number of columns of W; ShapeError unless it has `rows` rows and at least one column."""
    if W.ndim != 2 or W.shape[0] != rows or W.shape[1] == 0:
        raise ShapeError("part-shape", name=name, wanted=f"({rows}, ≥ 1)", found=W.shape, x=x.shape)
    return int(W.shape[1])


def _check_gradient(grad_output: np.ndarray, x: np.ndarray, W_last: np.ndarray) -> None:
    wanted = (*x.shape[:-1], W_last.shape[1])
    if grad_output.shape != wanted:
        raise ShapeError("output-shape", what="grad_output", wanted=wanted, found=grad_output.shape)


def _as_dtype_of(y: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`y` in the dtype of `like`; float64 if that is an integer dtype."""
    return y.astype(like.dtype if like.dtype.kind == "f" else np.float64)
