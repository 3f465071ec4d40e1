"""Fast attention in NumPy: blocks of rows, threads over heads, statistics collected while a block is in the cache."""

from regard.kernels.blocked.exact_weights import rectangle
from regard.kernels.blocked.forward import attention

__all__ = ["attention", "rectangle"]
