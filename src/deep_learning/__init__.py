"""The names that the source documents use, each a thin door to `regard`.

    deep_learning.activations    softmax                                            NumPy
    deep_learning.attention      003's functions and MultiHeadAttention             NumPy
    deep_learning.nn             the attention classes of 000, 001, 002 and 004     PyTorch

A door takes its document's own masks and converts them; what attention means is said in `regard` alone.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["activations", "attention", "nn"]


def __getattr__(name: str) -> ModuleType:
    """`import deep_learning` alone is enough to reach the three; `nn` is fetched only when it is asked for."""
    if name in __all__:
        return import_module(f"deep_learning.{name}")
    raise AttributeError(f"module 'deep_learning' has no attribute {name!r}")
