"""x Wᵀ + b for a few rows of x, as in decoding, where reading W is all the work and one CPU thread cannot read enough.

PyTorch's matrix product leaves the other threads idle there. Cut into as many bands of rows as there are threads, W
is a batch of smaller matrices, and a batch is shared among threads. docs/log.md has the times.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

FEW = 32
"""Rows of x up to which the bands were seen to win."""


def linear_rows(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (…, n) with a weight (m, n) as `nn.Linear` keeps it: (…, m).

    >>> linear_rows(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    tensor([[1., 2., 3.]])
    """
    return _by_bands(x, weight, bias) if _worth_it(x, weight) else F.linear(x, weight, bias)


def _worth_it(x: Tensor, weight: Tensor) -> bool:
    """Plain numbers on a CPU with threads to spare; autograd, autocast and tracing take the way they know."""
    return (
        not torch.is_grad_enabled()
        and 0 < x.numel() <= FEW * x.shape[-1]
        and x.is_cpu
        and weight.numel() >= 2**16  # below, a thread is done before the next one has started
        and x.dtype == weight.dtype
        and x.dtype in (torch.float32, torch.float64)
        and weight.is_contiguous()
        and not torch.is_autocast_enabled("cpu")
        and _threads() > 1
    )


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # a traced graph keeps the number that it was traced with
def _threads() -> int:
    return torch.get_num_threads()


def _by_bands(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    m, n = weight.shape
    bands = _threads()
    even = m - m % bands  # what is left over goes the usual way
    each = even // bands
    rows = x if x.dim() == 3 and x.shape[0] == 1 else x.reshape(1, -1, n)
    # The bands of the weight, transposed, in one operation: for so little work each one counts.
    cut = weight.as_strided((bands, n, each), (each * n, 1, n))
    out = torch.bmm(rows.expand(bands, -1, n), cut)  # bands M each
    out = (out if rows.shape[1] == 1 else out.transpose(0, 1)).reshape(*x.shape[:-1], even)
    if even < m:
        out = torch.cat([out, F.linear(x, weight[even:])], dim=-1)
    return out if bias is None else out + bias
