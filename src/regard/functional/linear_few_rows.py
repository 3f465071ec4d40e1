"""x Wᵀ + b for a few rows of x, as in decoding: W is split into bands so that all CPU threads read it.

PyTorch's matrix product uses one thread for so few rows. Split into one band of rows per thread, W is a batch of
smaller matrices, and PyTorch distributes a batch over threads. docs/log.md has measurements.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.functional.int8_weight import Int8Weight

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
