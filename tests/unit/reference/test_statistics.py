"""Statistics of attention weights, compared with the definitions of a Record."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.records import See
from regard.reference import entropy, log_sum_exp, pooled_map, received, softmax, statistics_of, top_keys


@st.composite
def weight_arrays(draw: st.DrawFn) -> np.ndarray:
    """(…, T, S) weights: rows sum to 1 or are fully masked."""
    lead = draw(st.sampled_from([(), (2,), (2, 3), (0, 2)]))
    T, S = draw(st.integers(0, 11)), draw(st.integers(0, 11))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    scores = rng.standard_normal((*lead, T, S))
    scores[rng.random(scores.shape) < draw(st.sampled_from((0.0, 0.4, 1.0)))] = -np.inf
    return softmax(scores)


@given(weight_arrays(), st.integers(1, 14))
def test_a_bin_is_the_sum_over_keys_averaged_over_unmasked_queries(weights: np.ndarray, bins: int) -> None:
    T, S = weights.shape[-2:]
    pooled = pooled_map(weights, bins)
    high, wide = max(1, math.ceil(T / bins)), max(1, math.ceil(S / bins))
    assert pooled.shape == (*weights.shape[:-2], math.ceil(T / high), math.ceil(S / wide))
    assert max(pooled.shape[-2:]) <= bins
    for index in np.ndindex(pooled.shape):
        *lead, r, c = index
        sheet = weights[tuple(lead)]
        rows = [t for t in range(r * high, min(T, (r + 1) * high)) if sheet[t].any()]
        sums = [math.fsum(sheet[t, c * wide : (c + 1) * wide].tolist()) for t in rows]
        assert math.isclose(pooled[index], math.fsum(sums) / len(rows) if rows else 0.0, abs_tol=1e-12)


@given(weight_arrays(), st.integers(1, 14))
def test_a_row_of_the_map_sums_to_one_or_zero(weights: np.ndarray, bins: int) -> None:
    total = pooled_map(weights, bins).sum(-1)
    assert (np.isclose(total, 1) | (total == 0)).all()


@given(weight_arrays())
def test_a_small_map_equals_the_weights(weights: np.ndarray) -> None:
    np.testing.assert_array_equal(pooled_map(weights, 11), weights)


@given(weight_arrays(), st.integers(1, 14))
def test_pooling_keeps_received_without_masked_queries(weights: np.ndarray, bins: int) -> None:
    """With one row bin per query, summing the map over queries gives what each key bin received."""
    T, S = weights.shape[-2:]
    wide = max(1, math.ceil(S / bins))
    if T == 0 or bins < T:
        return
    binned = np.add.reduceat(received(weights), np.arange(0, S, wide), axis=-1) if S else received(weights)
    np.testing.assert_allclose(pooled_map(weights, bins).sum(-2), binned, atol=1e-12)


def test_entropy_in_nats() -> None:
    weights = np.array([[1.0, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(entropy(weights), [0, math.log(4), math.log(2), 0], atol=1e-15)


def test_zero_entropy_is_not_minus_zero() -> None:
    """It would be printed as -0.00."""
    assert not np.signbit(entropy(np.array([[1.0, 0.0], [0.0, 0.0]]))).any()


@given(weight_arrays())
def test_entropy_is_between_zero_and_the_logarithm(weights: np.ndarray) -> None:
    found = entropy(weights)
    assert found.shape == weights.shape[:-1]
    assert (found >= 0).all()
    assert (found <= math.log(max(1, weights.shape[-1])) + 1e-12).all()


@given(weight_arrays())
def test_received_is_the_column_sum(weights: np.ndarray) -> None:
    np.testing.assert_array_equal(received(weights), weights.sum(-2))
    np.testing.assert_allclose(received(weights).sum(-1), (weights.sum(-1) > 0.5).sum(-1), atol=1e-9)


@given(weight_arrays(), st.integers(1, 14))
def test_top_keys_are_in_descending_order(weights: np.ndarray, k: int) -> None:
    weights = weights.round(1)  # many ties
    indices, values = top_keys(weights, k)
    k = min(k, weights.shape[-1])
    assert indices.shape == values.shape == (*weights.shape[:-1], k)
    for index in np.ndindex(weights.shape[:-1]):
        row, found = weights[index].tolist(), indices[index].tolist()
        assert found == sorted(range(len(row)), key=lambda s: (-row[s], s))[:k]  # ties by position
        assert values[index].tolist() == [row[s] for s in found]


@pytest.mark.parametrize("requested", ["map", "lse", "max_score", "entropy", "received", "top", "sink", "distance"])
def test_only_requested_statistics_are_computed(requested: str) -> None:
    nothing: dict[str, bool | None] = {"map": None, "lse": False, "sink": False}
    wanted = nothing | {requested: 2 if requested in ("map", "top") else True}
    scores = np.zeros((1, 1, 3, 3))
    found = statistics_of(softmax(scores), log_sum_exp(scores), See(**wanted))  # type: ignore[arg-type]
    assert [name for name, value in found._asdict().items() if value is not None] == [requested]


def test_a_row_of_nan_gives_nan_in_the_map() -> None:
    weights = np.array([[0.5, 0.5], [np.nan, np.nan], [1.0, 0.0], [1.0, 0.0]])
    pooled = pooled_map(weights, 2)
    assert np.isnan(pooled[0]).all()
    np.testing.assert_array_equal(pooled[1], [1, 0])
    assert np.isnan(entropy(weights)[1])
    assert np.isnan(received(weights)).all()
