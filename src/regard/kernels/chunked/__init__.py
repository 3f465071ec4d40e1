"""Attention and its statistics from plain torch operations, one block of rows at a time, with a backward."""

from regard.kernels.chunked.forward import attention, rectangle

__all__ = ["attention", "rectangle"]
