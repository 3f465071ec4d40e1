"""NumPy arrays, torch tensors and numbers: type checks and conversions that do not import torch.

A tensor can only be passed in when torch is already imported, so checking `sys.modules` is enough.
"""

import math
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from regard.errors import ArgumentError

Array: TypeAlias = Any
"""A NumPy array or a torch tensor. Only `attend`, `explain` and `Mask` accept both; other code expects one of them."""


def is_tensor(x: object) -> bool:
    """Whether `x` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_tracing() -> bool:
    """Whether torch.compile is tracing: then values cannot be read, and NumPy arrays must become tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def is_integer(x: object) -> bool:
    """Whether `x` is an integer of Python or NumPy, or one that torch is tracing; booleans are not."""
    torch = sys.modules.get("torch")
    traced = torch is not None and isinstance(x, torch.SymInt)
    return traced or (isinstance(x, int | np.integer) and not isinstance(x, bool))


def to_numpy(x: Array) -> np.ndarray:
    """`x` as a NumPy array, sharing memory where possible."""
    if is_tensor(x):
        x = x.detach().cpu()
        # NumPy has no bfloat16; float32 holds every value of it.
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()
    return np.asarray(x)


def convert_like(x: Array, like: Array | None) -> Array:
    """`x` in the array type of `like`, on its device; None means NumPy."""
    if like is None or not is_tensor(like):
        return to_numpy(x)
    if is_tensor(x):
        return x.to(like.device)
    torch = sys.modules["torch"]
    if is_tracing():
        return torch.as_tensor(x, device=like.device)
    # A copy in native byte order: torch refuses negative strides and other orders, and warns about read-only memory.
    x = np.asarray(x)
    return torch.as_tensor(x.astype(x.dtype.newbyteorder("=")), device=like.device)


def concatenated(parts: Sequence[Array], axis: int = 0) -> Array:
    """Arrays of one kind joined along an axis."""
    if not is_tensor(parts[0]):
        return np.concatenate(parts, axis)
    return sys.modules["torch"].cat(tuple(parts), axis)


def check_counts(**counts: tuple[int, int]) -> None:
    """Raise ArgumentError unless each value is an integer of at least the given minimum: name=(value, minimum)."""
    for name, (value, least) in counts.items():
        if not is_integer(value) or value < least:
            raise ArgumentError("count-wanted", name=name, value=value, least=least)


def is_number(x: object) -> bool:
    """Whether `x` is a finite number; True and False are not."""
    try:
        return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x)
    except OverflowError:  # an integer too large for a float
        return False
