"""What callers bring as numbers, read as NumPy arrays: nested lists, torch's tensors, whatever says it is an array.

It knows nothing of shapes: what an array should look like is asked where it is used.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from regard.errors import ShapeError
from regard.kinds import is_tensor, to_numpy

P = ParamSpec("P")
R = TypeVar("R")


def as_array(what: str, x: Any) -> np.ndarray:
    """x as an array, if it is rectangular; a tensor leaves its gradients behind.

    >>> as_array("x", [[1, 0]])
    array([[1, 0]])
    """
    if is_tensor(x):
        return to_numpy(x)
    try:
        return np.asarray(x)
    except (ValueError, OverflowError):
        raise ShapeError("ids-ragged", what=what) from None


def array_likes(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with lists and tensors among its arguments read as arrays, and those in a NamedTuple too.

    >>> array_likes(np.transpose)([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    names = tuple(signature(function).parameters)

    @wraps(function)
    def taking(*args: P.args, **kwargs: P.kwargs) -> R:
        read = [*map(_read, names, args), *args[len(names) :]]  # of too many, Python says so itself
        return function(*read, **{name: _read(name, x) for name, x in kwargs.items()})

    return taking


def _read(name: str, x: Any) -> Any:
    """An argument as an array, if it is like one; a number, a Mask or a word stays what it is."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    if hasattr(x, "_make"):  # a NamedTuple
        return x._make(map(_read, x._fields, x))
    if not (isinstance(x, list | tuple) or hasattr(x, "__array__")):
        return x
    array = as_array(name, x)
    if array.dtype.kind not in "biufc":
        raise ShapeError("ids-ragged", what=name)
    return array
