"""Softmax and log-sum-exp compared with arithmetic, and their edge cases."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tolerances import assert_close

from regard.reference import log_sum_exp, softmax
from regard.reference.attention import computing_dtype

ROWS = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6),
    elements=st.floats(-800, 800) | st.just(-np.inf),
)


@given(ROWS)
def test_softmax_is_exp_over_its_sum(x: np.ndarray) -> None:
    weights = softmax(x)
    assert weights.shape == x.shape
    assert weights.dtype == x.dtype
    for index in np.ndindex(x.shape[:-1]):
        row, found = x[index].tolist(), weights[index].tolist()
        if all(score == -math.inf for score in row):
            assert found == [0.0] * len(row)
            continue
        powers = [math.exp(score - max(row)) for score in row]
        np.testing.assert_allclose(found, [p / math.fsum(powers) for p in powers], rtol=1e-13, atol=0)


@given(ROWS, st.data())
def test_any_axis(x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    expected = np.moveaxis(softmax(np.moveaxis(x, axis, -1)), -1, axis)
    np.testing.assert_allclose(softmax(x, axis), expected, rtol=1e-14)
    np.testing.assert_allclose(log_sum_exp(x, axis), log_sum_exp(np.moveaxis(x, axis, -1)), rtol=1e-14)


@given(ROWS)
def test_log_sum_exp_equals_torch(x: np.ndarray) -> None:
    assert_close(log_sum_exp(x), torch.logsumexp(torch.from_numpy(x), -1), "statistic")


@given(ROWS, st.floats(-1e6, 1e6))
def test_adding_a_number_to_all_scores_changes_nothing(x: np.ndarray, shift: float) -> None:
    np.testing.assert_allclose(softmax(x + shift), softmax(x), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_no_score_is_too_large(dtype: str) -> None:
    largest = np.finfo(dtype).max
    for row in ([largest, 0, -largest], [largest, largest], [-largest, -largest], [-largest, -np.inf]):
        x = np.array(row, dtype)
        weights = softmax(x)
        assert weights.dtype == x.dtype
        np.testing.assert_array_equal(weights, (x == x.max()) / np.count_nonzero(x == x.max()))


def test_half_precision_is_summed_in_float32() -> None:
    """100,000 equal scores: in float16 their sum overflows."""
    x = np.zeros(100_000, np.float16)
    assert log_sum_exp(x).dtype == np.float32
    np.testing.assert_allclose(log_sum_exp(x), math.log(100_000), rtol=1e-6)
    np.testing.assert_array_equal(softmax(x), np.float16(1e-5))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "bool"])
def test_integers_become_float64(dtype: str) -> None:
    x = np.array([1, 0], dtype)
    assert softmax(x).dtype == np.float64
    np.testing.assert_allclose(softmax(x), [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))])
    assert softmax(np.zeros((2, 0), dtype)).dtype == np.float64
    assert computing_dtype(x) == np.float64


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_nan_score_affects_only_its_row(bad: float) -> None:
    weights = softmax(np.array([[0.0, bad], [0.0, 0.0]]))
    assert np.isnan(weights[0]).all()
    np.testing.assert_array_equal(weights[1], [0.5, 0.5])


def test_all_minus_infinity_and_empty_rows() -> None:
    assert softmax(np.zeros((2, 0))).shape == (2, 0)
    assert softmax(np.zeros((0, 2))).shape == (0, 2)
    np.testing.assert_array_equal(softmax(np.full((2, 3), -np.inf)), np.zeros((2, 3)))
    np.testing.assert_array_equal(log_sum_exp(np.full((2, 3), -np.inf)), [-np.inf, -np.inf])
    np.testing.assert_array_equal(log_sum_exp(np.zeros((2, 0))), [-np.inf, -np.inf])
    assert log_sum_exp(np.zeros((2, 0, 3)), axis=1).shape == (2, 3)
    assert log_sum_exp(np.zeros((2, 0, 3)), axis=-2).shape == (2, 3)


def test_softmax_does_not_modify_or_alias_its_argument() -> None:
    x = np.zeros((2, 3))
    x.flags.writeable = False
    assert not np.shares_memory(softmax(x), x)
    empty = np.zeros((2, 0))
    assert softmax(empty) is not empty
