"""Which kind of array is this? NumPy's or PyTorch's, told without importing torch.

A tensor can only reach us when torch is already imported, so looking in `sys.modules` is enough.
"""

import sys
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""A NumPy array or a torch tensor. Only `attend`, `explain` and `Mask` take either; inside, a file knows which."""


def is_tensor(x: object) -> bool:
    """Whether `x` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_tracing() -> bool:
    """Whether torch.compile is looking: then values cannot be, and NumPy's arrays have to become tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def is_whole(x: object) -> bool:
    """Whether `x` is a whole number, Python's, NumPy's or one that torch is tracing; True and False are not."""
    torch = sys.modules.get("torch")
    traced = torch is not None and isinstance(x, torch.SymInt)
    return traced or (isinstance(x, int | np.integer) and not isinstance(x, bool))


def to_numpy(x: Array) -> np.ndarray:
    """`x` as a NumPy array, sharing memory where that is possible."""
    if is_tensor(x):
        x = x.detach().cpu()
        # NumPy has no bfloat16; float32 holds every value of it.
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()
    return np.asarray(x)


def to_kind_of(x: Array, like: Array | None) -> Array:
    """`x` as the kind of array that `like` is, on its device; None means NumPy."""
    if like is None or not is_tensor(like):
        return to_numpy(x)
    if is_tensor(x):
        return x.to(like.device)
    torch = sys.modules["torch"]
    if is_tracing():
        return torch.as_tensor(x, device=like.device)
    # A copy in native order: torch refuses negative strides and foreign bytes, and warns about read-only memory.
    x = np.asarray(x)
    return torch.as_tensor(x.astype(x.dtype.newbyteorder("=")), device=like.device)
