"""What is read off the weights: the contract of a Record, word by word."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.records import See
from regard.reference import entropy, log_sum_exp, pooled_map, received, softmax, statistics_of, strongest


@st.composite
def weight_arrays(draw: st.DrawFn) -> np.ndarray:
    """(…, T, S) weights: rows sum to 1, some see nothing."""
    lead = draw(st.sampled_from([(), (2,), (2, 3), (0, 2)]))
    T, S = draw(st.integers(0, 11)), draw(st.integers(0, 11))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    scores = rng.standard_normal((*lead, T, S))
    scores[rng.random(scores.shape) < draw(st.sampled_from((0.0, 0.4, 1.0)))] = -np.inf
    return softmax(scores)


@given(weight_arrays(), st.integers(1, 14))
def test_a_bin_is_the_sum_over_keys_averaged_over_queries_that_look(weights: np.ndarray, bins: int) -> None:
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
def test_a_row_of_the_map_sums_to_one_or_nothing(weights: np.ndarray, bins: int) -> None:
    total = pooled_map(weights, bins).sum(-1)
    assert (np.isclose(total, 1) | (total == 0)).all()


@given(weight_arrays())
def test_a_small_map_is_the_weights_themselves(weights: np.ndarray) -> None:
    np.testing.assert_array_equal(pooled_map(weights, 11), weights)


@given(weight_arrays(), st.integers(1, 14))
def test_received_survives_pooling_when_everyone_looks(weights: np.ndarray, bins: int) -> None:
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


def test_no_entropy_is_zero_and_not_minus_zero() -> None:
    """A screen would print -0.00."""
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
def test_the_strongest_come_first(weights: np.ndarray, k: int) -> None:
    weights = weights.round(1)  # many equal ones
    indices, values = strongest(weights, k)
    k = min(k, weights.shape[-1])
    assert indices.shape == values.shape == (*weights.shape[:-1], k)
    for index in np.ndindex(weights.shape[:-1]):
        row, found = weights[index].tolist(), indices[index].tolist()
        assert found == sorted(range(len(row)), key=lambda s: (-row[s], s))[:k]  # of equal ones the earlier
        assert values[index].tolist() == [row[s] for s in found]


@pytest.mark.parametrize("asked", ["map", "lse", "entropy", "received", "top", "sink", "distance"])
def test_only_what_was_asked_for(asked: str) -> None:
    nothing = dict.fromkeys(("lse", "entropy", "received", "sink", "distance"), False) | {"map": None, "top": None}
    wanted = nothing | {asked: 2 if asked in ("map", "top") else True}
    scores = np.zeros((1, 1, 3, 3))
    found = statistics_of(softmax(scores), log_sum_exp(scores), See(**wanted))  # type: ignore[arg-type]
    assert [name for name, value in found._asdict().items() if value is not None] == [asked]


def test_a_row_of_nan_is_not_hidden_in_the_map() -> None:
    weights = np.array([[0.5, 0.5], [np.nan, np.nan], [1.0, 0.0], [1.0, 0.0]])
    pooled = pooled_map(weights, 2)
    assert np.isnan(pooled[0]).all()
    np.testing.assert_array_equal(pooled[1], [1, 0])
    assert np.isnan(entropy(weights)[1])
    assert np.isnan(received(weights)).all()
