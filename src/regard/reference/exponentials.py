"""Softmax and log-sum-exp. A row that is all -inf has softmax 0, not NaN."""

import numpy as np

from regard.reference.inputs import array_likes


def computing_dtype(x: np.ndarray) -> np.dtype:
    """The dtype to compute in: float32 for half precision, float64 for integers, else its own."""
    if x.dtype == np.float16:
        return np.dtype(np.float32)
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)


@array_likes
def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """exp(x) divided by its sum along `axis`, after subtracting the maximum so that nothing overflows.

    Where everything along `axis` is -inf the result is 0, not NaN.

    >>> softmax(np.array([1.0, 0.0, 1.0]) / np.sqrt(2)).round(5)
    array([0.40111, 0.19778, 0.40111])
    >>> softmax(np.array([-np.inf, -np.inf]))
    array([0., 0.])
    """
    x = np.asarray(x)
    if x.shape[axis] == 0:
        return x.astype(x.dtype if x.dtype.kind == "f" else np.float64)
    scores = x.astype(computing_dtype(x))
    highest = scores.max(axis=axis, keepdims=True)
    # inf - inf is NaN, as it should be for an infinite score; -max - max is -inf, and exp of it is 0.
    with np.errstate(invalid="ignore", over="ignore"):
        exponentials = np.exp(scores - np.where(highest == -np.inf, 0, highest))
    total = exponentials.sum(axis=axis, keepdims=True)
    weights = exponentials / np.where(total == 0, 1, total)
    return weights.astype(x.dtype if x.dtype.kind == "f" else np.float64)


@array_likes
def log_sum_exp(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The logarithm of the sum of exponentials along `axis`; -inf for an empty axis.

    >>> float(log_sum_exp(np.array([0.0, 0.0])).round(4))
    0.6931
    """
    x = np.asarray(x)
    if x.shape[axis] == 0:
        return np.full(np.delete(x.shape, axis), -np.inf, dtype=computing_dtype(x))
    scores = x.astype(computing_dtype(x))
    highest = scores.max(axis=axis, keepdims=True)
    shift = np.where(highest == -np.inf, 0, highest)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        total = np.exp(scores - shift).sum(axis=axis, keepdims=True)
        return np.squeeze(np.log(total) + shift, axis=axis)
