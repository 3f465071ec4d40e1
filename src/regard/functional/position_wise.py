"""Feed-forward, plain and gated, its activations, norms, and matrix products with few rows, in PyTorch.

All but the last are the counterparts of `reference.position_wise` and `reference.norms`, differentiable by autograd.
PyTorch's matrix product uses one CPU thread for a few rows, as in decoding. Split into one band of rows per thread, W
is a batch of smaller matrices, and PyTorch distributes a batch over threads. docs/log.md has measurements.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.axes import Shape
from regard.errors import ArgumentError, ShapeError
from regard.functional.attention import computing_dtype, linear
from regard.functional.int8_weight import Int8Weight
from regard.messages import Listed

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
    """x Φ(x), with Φ the normal distribution function; `approximate="tanh"` is the approximation used by GPT-2.

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


def get_activation(name: ActivationName) -> ActivationFunction:
    """The activation of that name; ArgumentError with the choices if there is none."""
    if name not in ACTIVATIONS:
        raise ArgumentError("unknown-choice", name="activation", value=name, choices=Listed(ACTIVATIONS))
    return ACTIVATIONS[name]


def floats(x: Tensor) -> Tensor:
    """`x`, converted to float64 if it is an integer tensor."""
    return x if x.is_floating_point() else x.double()


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
            raise _shape_error(name, b, wanted, x)
    f = get_activation(activation)
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
        raise _shape_error("W_up", W_up, (D, F), x)
    _columns("W_down", W_down, F, x)
    f = get_activation(activation)
    x = floats(x)
    hidden = f(linear(x, W_gate)) * linear(x, W_up)  # … F
    return linear(hidden, W_down)


def _width(x: Tensor) -> int:
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError("width-wanted", found=tuple(x.shape))
    return x.shape[-1]


def _columns(name: str, W: Tensor, rows: int, x: Tensor) -> int:
    """The number of columns of W; ShapeError unless it has `rows` rows and at least one column."""
    if W.ndim != 2 or W.shape[0] != rows or W.shape[1] == 0:
        raise _shape_error(name, W, f"({rows}, ≥ 1)", x)
    return W.shape[1]


def _shape_error(name: str, found: Tensor, wanted: Shape | str, x: Tensor) -> ShapeError:
    return ShapeError("part-shape", name=name, wanted=wanted, found=tuple(found.shape), x=tuple(x.shape))


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
    _check_norm(x, weight, bias, eps)
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
    _check_norm(x, weight, None, eps)
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


def _check_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> None:
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError("width-wanted", found=tuple(x.shape))
    wanted = x.shape[-1:]
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.shape != wanted:
            raise ShapeError("norm-shape", name=name, wanted=tuple(wanted), found=tuple(part.shape), x=tuple(x.shape))
    if not (math.isfinite(eps) and eps >= 0):
        raise ArgumentError("eps-value", value=eps)


MAX_ROWS = 32
"""The largest number of rows of x for which bands were measured to be faster."""


def linear_rows(x: Tensor, weight: Tensor | Int8Weight, bias: Tensor | None = None) -> Tensor:
    """x (…, n) with a weight (m, n) stored as in `nn.Linear`, or as 8-bit integers: (…, m).

    >>> linear_rows(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    tensor([[1., 2., 3.]])
    """
    if isinstance(weight, Int8Weight):
        return weight.product(x, bias)
    return _linear_by_bands(x, weight, bias) if _is_faster_by_bands(x, weight) else F.linear(x, weight, bias)


def _is_faster_by_bands(x: Tensor, weight: Tensor) -> bool:
    """True for plain tensors on a CPU with several threads; not with autograd, autocast or tracing."""
    return (
        not torch.is_grad_enabled()
        and 0 < x.numel() <= MAX_ROWS * x.shape[-1]
        and x.is_cpu
        and weight.numel() >= 2**16  # for less, starting a thread takes longer than the work
        and x.dtype == weight.dtype
        and x.dtype in (torch.float32, torch.float64)
        and weight.is_contiguous()
        and not torch.is_autocast_enabled("cpu")
        and _threads() > 1
    )


def _threads() -> int:
    return torch.get_num_threads()


# A traced graph keeps the number from the time of tracing. torch.compiler.assume_constant_result does the same, but
# imports torch._dynamo, which takes longer than all of this package.
_threads._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _linear_by_bands(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    m, n = weight.shape
    bands = _threads()
    even = m - m % bands  # the remaining rows go through F.linear
    each = even // bands
    rows = x if x.dim() == 3 and x.shape[0] == 1 else x.reshape(1, -1, n)
    # The bands of the weight, transposed, in one operation: the overhead of each operation matters here.
    cut = weight.as_strided((bands, n, each), (each * n, 1, n))
    out = torch.bmm(rows.expand(bands, -1, n), cut)  # bands M each
    out = (out if rows.shape[1] == 1 else out.transpose(0, 1)).reshape(*x.shape[:-1], even)
    if even < m:
        out = torch.cat([out, F.linear(x, weight[even:])], dim=-1)
    return out if bias is None else out + bias
