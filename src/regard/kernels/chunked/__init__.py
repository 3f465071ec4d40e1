"""Attention with its statistics from plain torch operations, block of rows by block of rows, with a backward."""

from regard.kernels.chunked.function import attention
from regard.kernels.chunked.zoom import rectangle

__all__ = ["attention", "rectangle"]
