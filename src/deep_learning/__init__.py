"""The names that the source documents use, each a thin wrapper around `regard`.

    deep_learning.activations    softmax                                            NumPy
    deep_learning.attention      003's functions and MultiHeadAttention             NumPy
    deep_learning.nn             the attention classes of 000, 001, 002 and 004     PyTorch

Each wrapper accepts the masks of its document and converts them. Attention itself is computed by `regard`.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["activations", "attention", "nn"]


def __getattr__(name: str) -> ModuleType:
    """Import the three modules on first access: `nn` needs torch, the others do not."""
    if name in __all__:
        return import_module(f"deep_learning.{name}")
    raise AttributeError(f"module 'deep_learning' has no attribute {name!r}")
