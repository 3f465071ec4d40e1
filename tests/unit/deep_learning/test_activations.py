"""`softmax(x, axis=-1)` of 003: stable, and 0 if all scores are -inf."""

import inspect

import numpy as np
import pytest
import torch
from tolerances import assert_close

from deep_learning.activations import softmax
from regard.errors import ArgumentError, DtypeError


def test_axis_defaults_to_the_last() -> None:
    assert inspect.signature(softmax).parameters["axis"].default == -1
    x = np.arange(6.0).reshape(2, 3)
    assert_close(softmax(x), softmax(x, axis=1))
    assert_close(softmax(x, axis=0), softmax(x.T).T)


def test_a_score_of_zero_is_not_a_weight_of_zero() -> None:
    # Erratum 1: the tutorial prints [.5, 0, .5] here.
    np.testing.assert_allclose(softmax(np.array([[0.707, 0.0, 0.707]])), [[0.401, 0.198, 0.401]], atol=5e-4)


def test_only_minus_infinity_gives_a_weight_of_zero() -> None:
    assert softmax(np.array([0.0, -np.inf])).tolist() == [1.0, 0.0]
    assert softmax(np.array([-np.inf, -np.inf])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("height", [1e3, 1e38, -1e38])
def test_it_is_stable(height: float) -> None:
    assert softmax(np.array([height, height])).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_dtype_is_kept(dtype: str) -> None:
    assert softmax(np.ones(3, dtype)).dtype == dtype


def test_lists_and_integers() -> None:
    assert softmax([1, 1]).tolist() == [0.5, 0.5]


def test_errors() -> None:
    with pytest.raises(ArgumentError, match=r"axis=2 is not an axis of an array of shape \(2, 3\): it has 2"):
        softmax(np.ones((2, 3)), axis=2)
    with pytest.raises(ArgumentError, match="axis=-1"):
        softmax(1.0)
    with pytest.raises(DtypeError, match="found a torch tensor"):
        softmax(torch.ones(2))
    with pytest.raises(DtypeError, match="complex128"):
        softmax(np.ones(2, complex))
