"""Pooling a map again is the same as pooling the weights once, where the queries behind each row are known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.axes import bin_count, bin_width
from regard.reference import pooled_map, softmax
from regard.trace.pooling import bin_size, is_binning, pool


@given(
    T=st.integers(1, 30), S=st.integers(1, 30), first=st.integers(1, 4), then=st.integers(1, 4), seed=st.integers(0, 9)
)
def test_twice_is_as_once(T: int, S: int, first: int, then: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = softmax(rng.normal(size=(2, T, S)))
    weights[rng.random((2, T)) < 0.3] = 0
    looking = weights.any(-1).astype(int)
    once, counts = pool(weights, looking, first * then, first * then)
    twice, counts_twice = pool(*pool(weights, looking, first, first), then, then)
    np.testing.assert_allclose(twice, once, atol=1e-12)
    np.testing.assert_array_equal(counts_twice, counts)


@given(T=st.integers(1, 40), S=st.integers(1, 40), bins=st.integers(1, 40))
def test_once_is_the_reference(T: int, S: int, bins: int) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(T, S)))
    weights[T // 2] = 0
    looking = weights.any(-1).astype(int)
    cells, _ = pool(weights, looking, bin_width(T, bins), bin_width(S, bins))
    np.testing.assert_allclose(cells, pooled_map(weights, bins), atol=1e-12)


def test_nan_stays_in_its_cell() -> None:
    weights = np.eye(4)
    weights[0, 0] = np.nan
    cells, _ = pool(weights, np.ones(4, int), 2, 2)
    assert np.isnan(cells).tolist() == [[True, False], [False, False]]


def test_nothing_pools_to_nothing() -> None:
    cells, looking = pool(np.zeros((2, 0, 3)), np.zeros((2, 0), int), 2, 2)
    assert cells.shape == (2, 0, 2)
    assert looking.shape == (2, 0)


@given(length=st.integers(0, 500), bins=st.integers(1, 300))
def test_the_size_of_a_bin_can_be_told_from_their_number(length: int, bins: int) -> None:
    count = bin_count(length, bins)
    assert bin_size(length, count) == bin_width(length, bins)
    assert is_binning(length, count)


def test_some_numbers_of_bins_cannot_be() -> None:
    assert not is_binning(10, 9)  # bins of 2 would be 5
    assert not is_binning(3, 4)
    assert not is_binning(3, 0)
    assert not is_binning(0, 1)
