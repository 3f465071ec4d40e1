"""Pooling a map equals pooling the weights once, where the number of queries of each row is known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.axes import bin_count, bin_width
from regard.reference import pooled_map, softmax
from regard.trace.pooling import bin_size, is_binning, pool


@given(
    T=st.integers(1, 30), S=st.integers(1, 30), first=st.integers(1, 4), then=st.integers(1, 4), seed=st.integers(0, 9)
)
def test_pooling_twice_equals_pooling_once(T: int, S: int, first: int, then: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = softmax(rng.normal(size=(2, T, S)))
    weights[rng.random((2, T)) < 0.3] = 0
    queries = weights.any(-1).astype(int)
    once, counts = pool(weights, queries, first * then, first * then)
    twice, counts_twice = pool(*pool(weights, queries, first, first), then, then)
    np.testing.assert_allclose(twice, once, atol=1e-12)
    np.testing.assert_array_equal(counts_twice, counts)


@given(T=st.integers(1, 40), S=st.integers(1, 40), bins=st.integers(1, 40))
def test_pooling_equals_the_reference(T: int, S: int, bins: int) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(T, S)))
    weights[T // 2] = 0
    queries = weights.any(-1).astype(int)
    cells, _ = pool(weights, queries, bin_width(T, bins), bin_width(S, bins))
    np.testing.assert_allclose(cells, pooled_map(weights, bins), atol=1e-12)


def test_nan_stays_in_its_cell() -> None:
    weights = np.eye(4)
    weights[0, 0] = np.nan
    cells, _ = pool(weights, np.ones(4, int), 2, 2)
    assert np.isnan(cells).tolist() == [[True, False], [False, False]]


def test_empty_weights_give_empty_cells() -> None:
    cells, counts = pool(np.zeros((2, 0, 3)), np.zeros((2, 0), int), 2, 2)
    assert cells.shape == (2, 0, 2)
    assert counts.shape == (2, 0)


@given(length=st.integers(0, 500), bins=st.integers(1, 300))
def test_bin_size_from_the_number_of_bins(length: int, bins: int) -> None:
    count = bin_count(length, bins)
    assert bin_size(length, count) == bin_width(length, bins)
    assert is_binning(length, count)


def test_impossible_numbers_of_bins() -> None:
    assert not is_binning(10, 9)  # bins of 2 would be 5
    assert not is_binning(3, 4)
    assert not is_binning(3, 0)
    assert not is_binning(0, 1)
