"""ReLU, GELU and SiLU in PyTorch: the twins of `reference.activations`. Autograd knows their slopes.

PyTorch's kernels compute half precision in float32 inside, as the reference does. Where the square of x
overflows, its slope of the tanh form is NaN and the reference's 0 or 1; no model comes near.
"""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from regard.errors import ArgumentError
from regard.words import Listed

Approximate = Literal["none", "tanh"]
ActivationName = Literal["relu", "gelu", "gelu_tanh", "silu"]
ActivationFunction = Callable[[Tensor], Tensor]


def relu(x: Tensor) -> Tensor:
    """max(x, 0).

    >>> import torch
    >>> relu(torch.tensor([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.0, 3.0]
    """
    return F.relu(x)


def gelu(x: Tensor, approximate: Approximate = "none") -> Tensor:
    """x Φ(x), with Φ the normal distribution function; `approximate="tanh"` is the form GPT-2 learned with.

    >>> import torch
    >>> [round(y, 4) for y in gelu(torch.tensor([-1.0, 0.0, 1.0])).tolist()]
    [-0.1587, 0.0, 0.8413]
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError("unknown-choice", name="approximate", value=approximate, choices="none, tanh")
    return F.gelu(floats(x), approximate=approximate)


def silu(x: Tensor) -> Tensor:
    """x σ(x), also called Swish.

    >>> import torch
    >>> [round(y, 4) for y in silu(torch.tensor([-1.0, 0.0, 1.0])).tolist()]
    [-0.2689, 0.0, 0.7311]
    """
    return F.silu(floats(x))


def _gelu_tanh(x: Tensor) -> Tensor:
    return gelu(x, approximate="tanh")


ACTIVATIONS: dict[ActivationName, ActivationFunction] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": silu,
}


def activation_called(name: ActivationName) -> ActivationFunction:
    """The activation of that name; ArgumentError with the choices where there is none."""
    if name not in ACTIVATIONS:
        raise ArgumentError("unknown-choice", name="activation", value=name, choices=Listed(ACTIVATIONS))
    return ACTIVATIONS[name]


def floats(x: Tensor) -> Tensor:
    """`x`, as float64 if it holds whole numbers."""
    return x if x.is_floating_point() else x.double()
