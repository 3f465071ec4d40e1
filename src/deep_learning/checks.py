"""Checks of arguments: array types, dtypes and positive integers.

The shapes of q, k and v are checked against each other by `regard`.
"""

import numpy as np

from regard.arrays import Array, check_counts, is_tensor
from regard.errors import ArgumentError, DtypeError, ShapeError


def count(name: str, value: int, least: int = 1) -> int:
    """`value`, if it is an integer of at least `least`; else ArgumentError.

    >>> count("num_heads", 8)
    8
    """
    if np.ndim(value):  # an array instead of a number: show only its shape
        raise ArgumentError("count-wanted", name=name, least=least, value=f"{type(value).__name__} {np.shape(value)}")
    check_counts(**{name: (value, least)})
    return int(value)


def floats(**arrays: Array) -> list[np.ndarray]:
    """The arrays by name, as NumPy arrays of one floating-point dtype; lists and integers are converted.

    >>> [x.dtype.name for x in floats(Q=[[1, 0]], K=np.ones((3, 2), dtype=np.float32))]
    ['float64', 'float64']
    """
    found = [_floating(name, x) for name, x in arrays.items()]
    dtype = np.result_type(*found)
    return [x.astype(dtype, copy=False) for x in found]


def last_axis(name: str, x: Array, d_model: int, axes: int | None = None) -> None:
    """Raise ShapeError unless `x` is `d_model` wide and, where `axes` is given, has that many axes."""
    found = tuple(x.shape)
    if not found or found[-1] != d_model or (axes is not None and len(found) != axes):
        wanted = f"(…, {d_model})" if axes is None else f"(B, T, {d_model})"
        raise ShapeError("input-shape", name=name, wanted=wanted, found=found)


def numpy_array(name: str, x: Array) -> np.ndarray:
    """`x`, an array or a list of lists, as a NumPy array; DtypeError for a tensor and for a ragged list."""
    if is_tensor(x):
        raise DtypeError("numpy-wanted", name=name)
    try:
        return np.asarray(x)
    except ValueError:  # NumPy's error for rows of different lengths
        raise DtypeError("not-an-array", name=name, found=type(x).__name__) from None


def _floating(name: str, x: Array) -> np.ndarray:
    array = numpy_array(name, x)
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise DtypeError("float-wanted", name=name, dtype=array.dtype)
    return array
