"""Validation of arrays that become masks, for `Mask.of` and the converters `Mask.from_…`.

A raw mask is accepted or refused by its dtype alone; a converter also checks the values, because a wrong convention
raises no error elsewhere: a 0/1 float mask added to scores masks nothing.
"""

import sys
from typing import Any

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing
from regard.errors import ArgumentError, DtypeError, ShapeError


def booleans(x: Any) -> Array:
    """`x` if it is boolean; DtypeError naming the converter if it is not."""
    x = _array(x)
    kind = kind_of(x)
    if kind == "bool":
        return x
    key = {"float": "mask-dtype-float", "whole": "mask-dtype-whole"}.get(kind, "mask-dtype-other")
    raise DtypeError(key, dtype=x.dtype, shape=tuple(x.shape))


def whole_numbers(x: Any, what: str) -> Array:
    """Ids or counts: whole numbers with at least one axis."""
    x = _array(x)
    if kind_of(x) not in ("whole", "bool"):
        raise DtypeError("mask-ids-dtype", what=what, dtype=x.dtype)
    if x.ndim == 0:
        raise ShapeError("mask-ids-shape", what=what)
    # A copy in the one dtype that NumPy and torch can both compare: a Mask is a value, and its ids are small.
    return x.astype(np.int64) if isinstance(x, np.ndarray) else x.long().clone()


def two_axes(x: Array, what: str) -> Array:
    """`x`, if it has an axis for queries and one for keys."""
    if x.ndim < 2:
        raise ShapeError("mask-too-few-axes", what=what, found=tuple(x.shape))
    return x


def zero_or_one(x: Any, what: str) -> Array:
    """A mask of 0 and 1 in any dtype; any other value raises."""
    x = _array(x)
    if kind_of(x) == "other":
        raise DtypeError("mask-dtype-other", dtype=x.dtype, shape=tuple(x.shape))
    if x.ndim == 0:
        raise ShapeError("mask-ids-shape", what=f"Mask.{what}")
    if kind_of(x) != "bool" and not is_tracing():
        other = x[(x != 0) & (x != 1)]
        if other.shape[0]:
            raise ArgumentError("mask-not-zero-one", what=what, value=other[0].item())
    return x


def zero_or_lowest(x: Any) -> Array:
    """An additive mask: 0, and -inf or the dtype's lowest number; any other value raises."""
    x = _array(x)
    if kind_of(x) != "float":
        raise DtypeError("from-additive-dtype", dtype=x.dtype)
    two_axes(x, "Mask.from_additive")
    if is_tracing():
        return x
    other = x[(x != 0) & (x > lowest(x))]
    nans = x[x != x]
    if other.shape[0] or nans.shape[0]:
        value = (other if other.shape[0] else nans)[0].item()
        raise ArgumentError("from-additive-values", value=value, lowest=lowest(x), dtype=x.dtype)
    return x


def one_row_per_sample(x: Array, what: str) -> Array:
    if x.ndim not in (1, 2):
        raise ShapeError("mask-one-row", what=what, found=tuple(x.shape))
    return x


def shape_text(x: Array) -> str:
    """An array in the name of a mask: its shape."""
    return "[…]" if is_tracing() else f"[{'×'.join(str(size) for size in x.shape)}]"


def kind_of(x: Array) -> str:
    """bool, whole, float or other."""
    if is_tensor(x):
        if x.dtype.is_complex:
            return "other"
        name = str(x.dtype).removeprefix("torch.")
        if x.dtype.is_floating_point:
            return "other" if name.startswith("float8") else "float"
        return "bool" if name == "bool" else "whole"
    return {"b": "bool", "i": "whole", "u": "whole", "f": "float"}.get(x.dtype.kind, "other")


def lowest(x: Array) -> float:
    """The lowest finite number of the array's dtype."""
    if is_tensor(x):
        import torch

        return torch.finfo(x.dtype).min
    return float(np.finfo(x.dtype).min)


def _array(x: Any) -> Array:
    if is_tensor(x):
        return x
    if isinstance(x, np.ndarray):
        return sys.modules["torch"].as_tensor(x) if is_tracing() else x
    if isinstance(x, str | bool) or callable(x):
        raise DtypeError("mask-not-array", found=repr(x) if isinstance(x, str | bool) else type(x).__name__)
    try:
        array = np.asarray(x)
    except ValueError:  # a ragged list
        raise DtypeError("mask-not-array", found=type(x).__name__) from None
    if array.dtype == object:
        raise DtypeError("mask-not-array", found=type(x).__name__)
    return array
