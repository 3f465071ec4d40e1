"""Fast attention in NumPy: blocks of rows, threads over heads, statistics collected while a block is in the cache."""

from regard.kernels.blocked.forward import attention
from regard.kernels.blocked.scores import rectangle

__all__ = ["attention", "rectangle"]
