"""The `softmax` of document 003, in NumPy. The computation is in `regard.reference`."""

import numpy as np
from numpy.typing import ArrayLike

from deep_learning.checks import floats
from regard import reference
from regard.errors import ArgumentError

__all__ = ["softmax"]


def softmax(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """exp(x) divided by its sum along `axis`, stable for large x; 0 if all of it is -inf.

    >>> softmax([0.707, 0.0, 0.707]).round(3)
    array([0.401, 0.198, 0.401])
    """
    (array,) = floats(x=x)
    if not -array.ndim <= axis < array.ndim:
        raise ArgumentError("axis-value", axis=axis, axes=array.ndim, shape=array.shape)
    return reference.softmax(array, axis)
