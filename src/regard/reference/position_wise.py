"""The feed-forward part: each position by itself, widened, bent, narrowed again. Backward by hand.

    plain  f(x W_1 + b_1) W_2 + b_2             Vaswani et al. 2017, section 3.3, with f = ReLU
    gated  (f(x W_gate) ∘ x W_up) W_down        Shazeer 2020: f = SiLU makes SwiGLU, f = GELU makes GeGLU

Weights stand as in the formulas, D × F and back, used as `x @ W`; `nn.Linear` keeps their transposes. Half
precision is computed in float32 throughout and rounded once, at the end.
"""

from typing import NamedTuple

import numpy as np

from regard.errors import ShapeError
from regard.reference.activations import ActivationName, activation_called
from regard.reference.arrays import array_likes
from regard.reference.exponentials import computing_dtype
from regard.reference.heads import linear, linear_backward

# What is too large becomes inf and what is undefined NaN, without a warning on the way: NaN in, NaN out.
_honest = np.errstate(over="ignore", invalid="ignore")


class FeedForwardGradients(NamedTuple):
    """Gradients of the input and of the weights; a bias that was not there has none."""

    x: np.ndarray
    W_1: np.ndarray
    W_2: np.ndarray
    b_1: np.ndarray | None = None
    b_2: np.ndarray | None = None


class GatedFeedForwardGradients(NamedTuple):
    """Gradients of the input and of the three weights."""

    x: np.ndarray
    W_gate: np.ndarray
    W_up: np.ndarray
    W_down: np.ndarray


@array_likes
@_honest
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
    f = activation_called(activation).forward
    hidden = linear(x.astype(computing_dtype(x)), W_1, b_1)  # … F
    return _rounded(linear(f(hidden), W_2, b_2), x)


@array_likes
@_honest
def feed_forward_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    W_1: np.ndarray,
    W_2: np.ndarray,
    b_1: np.ndarray | None = None,
    b_2: np.ndarray | None = None,
    activation: ActivationName = "relu",
) -> FeedForwardGradients:
    """The gradients of x and of every weight, given that of the output: through W_2, the bend, and W_1."""
    _check_weights(x, W_1, W_2, b_1, b_2)
    _check_gradient(grad_output, x, W_2)
    f = activation_called(activation)
    wide = x.astype(computing_dtype(x))
    hidden = linear(wide, W_1, b_1)
    d_bent, d_W_2, d_b_2 = linear_backward(grad_output.astype(wide.dtype), f.forward(hidden), W_2, b_2)
    d_x, d_W_1, d_b_1 = linear_backward(f.backward(d_bent, hidden), wide, W_1, b_1)
    return FeedForwardGradients(
        x=_rounded(d_x, x),
        W_1=_rounded(d_W_1, W_1),
        W_2=_rounded(d_W_2, W_2),
        b_1=None if d_b_1 is None or b_1 is None else _rounded(d_b_1, b_1),
        b_2=None if d_b_2 is None or b_2 is None else _rounded(d_b_2, b_2),
    )


@array_likes
@_honest
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
    f = activation_called(activation).forward
    wide = x.astype(computing_dtype(x))
    hidden = f(linear(wide, W_gate)) * linear(wide, W_up)  # … F
    return _rounded(linear(hidden, W_down), x)


@array_likes
@_honest
def gated_feed_forward_backward(
    grad_output: np.ndarray,
    x: np.ndarray,
    W_gate: np.ndarray,
    W_up: np.ndarray,
    W_down: np.ndarray,
    activation: ActivationName = "silu",
) -> GatedFeedForwardGradients:
    """The gradients of x and of the three weights; x feeds the gate and what passes it, so its two add up."""
    _check_gated_weights(x, W_gate, W_up, W_down)
    _check_gradient(grad_output, x, W_down)
    f = activation_called(activation)
    wide = x.astype(computing_dtype(x))
    gate, up = linear(wide, W_gate), linear(wide, W_up)
    opened = f.forward(gate)
    d_hidden, d_W_down, _ = linear_backward(grad_output.astype(wide.dtype), opened * up, W_down)
    d_x_gate, d_W_gate, _ = linear_backward(f.backward(d_hidden * up, gate), wide, W_gate)
    d_x_up, d_W_up, _ = linear_backward(d_hidden * opened, wide, W_up)
    return GatedFeedForwardGradients(
        x=_rounded(d_x_gate + d_x_up, x),
        W_gate=_rounded(d_W_gate, W_gate),
        W_up=_rounded(d_W_up, W_up),
        W_down=_rounded(d_W_down, W_down),
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
    """How many columns W has, once it has as many rows as it must and is not empty."""
    if W.ndim != 2 or W.shape[0] != rows or W.shape[1] == 0:
        raise ShapeError("part-shape", name=name, wanted=f"({rows}, ≥ 1)", found=W.shape, x=x.shape)
    return int(W.shape[1])


def _check_gradient(grad_output: np.ndarray, x: np.ndarray, W_last: np.ndarray) -> None:
    wanted = (*x.shape[:-1], W_last.shape[1])
    if grad_output.shape != wanted:
        raise ShapeError("output-shape", what="grad_output", wanted=wanted, found=grad_output.shape)


def _rounded(y: np.ndarray, like: np.ndarray) -> np.ndarray:
    """`y` in the dtype of `like`; float64 where that holds whole numbers."""
    return y.astype(like.dtype if like.dtype.kind == "f" else np.float64)
