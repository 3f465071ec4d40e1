"""The feed-forward part in PyTorch: the twin of `reference.feed_forward`. Autograd does its backward.

Weights stand as in the formulas, D × F and back, used as `x @ W`; `nn.Linear` keeps their transposes. It
knows nothing of modules.
"""

from torch import Tensor

from regard.axes import Shape
from regard.errors import ShapeError
from regard.functional.activations import ActivationName, activation_called, floats
from regard.functional.heads import linear


def feed_forward(
    x: Tensor,
    W_1: Tensor,
    W_2: Tensor,
    b_1: Tensor | None = None,
    b_2: Tensor | None = None,
    activation: ActivationName = "relu",
) -> Tensor:
    """f(x W_1 + b_1) W_2 + b_2 for x (…, D), W_1 (D, F), W_2 (F, D) (Vaswani et al. 2017, section 3.3).

    >>> import torch
    >>> feed_forward(torch.tensor([[1.0, -2.0]]), torch.eye(2), 10 * torch.eye(2), b_2=torch.ones(2)).tolist()
    [[11.0, 1.0]]
    """
    F = _columns("W_1", W_1, _width(x), x)
    D = _columns("W_2", W_2, F, x)
    for name, b, wanted in (("b_1", b_1, (F,)), ("b_2", b_2, (D,))):
        if b is not None and tuple(b.shape) != wanted:
            raise _misfit(name, b, wanted, x)
    f = activation_called(activation)
    hidden = linear(floats(x), W_1, b_1)  # … F
    return linear(f(hidden), W_2, b_2)


def gated_feed_forward(
    x: Tensor,
    W_gate: Tensor,
    W_up: Tensor,
    W_down: Tensor,
    activation: ActivationName = "silu",
) -> Tensor:
    """(f(x W_gate) ∘ x W_up) W_down: SwiGLU, or with `activation="gelu"` GeGLU (Shazeer 2020).

    >>> import torch
    >>> one = torch.eye(1)
    >>> gated_feed_forward(torch.tensor([[3.0]]), one, 2 * one, one, activation="relu").tolist()
    [[18.0]]
    """
    D = _width(x)
    F = _columns("W_gate", W_gate, D, x)
    if tuple(W_up.shape) != (D, F):
        raise _misfit("W_up", W_up, (D, F), x)
    _columns("W_down", W_down, F, x)
    f = activation_called(activation)
    x = floats(x)
    hidden = f(linear(x, W_gate)) * linear(x, W_up)  # … F
    return linear(hidden, W_down)


def _width(x: Tensor) -> int:
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError("width-wanted", found=tuple(x.shape))
    return x.shape[-1]


def _columns(name: str, W: Tensor, rows: int, x: Tensor) -> int:
    """How many columns W has, once it has as many rows as it must and is not empty."""
    if W.ndim != 2 or W.shape[0] != rows or W.shape[1] == 0:
        raise _misfit(name, W, f"({rows}, ≥ 1)", x)
    return W.shape[1]


def _misfit(name: str, found: Tensor, wanted: Shape | str, x: Tensor) -> ShapeError:
    return ShapeError("part-shape", name=name, wanted=wanted, found=tuple(found.shape), x=tuple(x.shape))
