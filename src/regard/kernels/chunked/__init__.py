"""Attention with its statistics from plain torch operations, block of rows by block of rows, with a backward."""

from regard.kernels.chunked.autograd import attention
from regard.kernels.chunked.observe import rectangle

__all__ = ["attention", "rectangle"]
