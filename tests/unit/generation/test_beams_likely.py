"""The likeliest ids against the whole vocabulary put in order."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from regard.errors import ArgumentError
from regard.generation.beams import _there, likely
from regard.reference import log_sum_exp

# Few values, so that many are equal; what cannot be; and neighbours that are equal once a logarithm is taken off.
values = st.sampled_from([-np.inf, -3.0, 0.0, 1e-30, 1.0, 1 + 2**-52, 2.0, 1000.0]) | st.floats(-20, 20)
shapes = st.tuples(st.integers(1, 4), st.integers(1, 90))


@st.composite
def logits(draw: Any) -> np.ndarray:
    drawn = draw(arrays.arrays(np.float64, draw(shapes), elements=values))
    drawn[np.arange(len(drawn)), draw(st.integers(0, drawn.shape[1] - 1))] = 5.0  # something to choose
    return drawn.astype(draw(st.sampled_from(["float16", "float32", "float64"])))


@given(logits(), st.integers(1, 12))
def test_no_likelier_id_is_left_out(scores: np.ndarray, n: int) -> None:
    found = likely(scores, n)
    wide = scores.astype(np.float64)
    chances = wide - log_sum_exp(wide)[:, None]
    assert np.array_equal(found.chances, chances[found.rows, found.ids])
    assert (np.diff(found.rows * scores.shape[1] + found.ids) > 0).all()  # in reading order, none twice
    for row, each in enumerate(chances):
        got = found.part(row, row + 1)
        assert set(got.rows) <= {0}
        order = np.argsort(-each, kind="stable")[:n]
        assert set(order[each[order] > -np.inf].tolist()) <= set(got.ids.tolist())
        assert (got.chances > -np.inf).all()


@given(logits(), st.integers(1, 12))
def test_another_device_finds_the_same_likeliest(scores: np.ndarray, n: int) -> None:
    n = min(n, scores.shape[1])
    rows, ids, values, totals = _there(torch.from_numpy(scores), n)
    wide = scores.astype(np.float64)
    np.testing.assert_allclose(totals, log_sum_exp(wide), rtol=1e-12)
    assert np.array_equal(values, wide[rows, ids])
    for row, each in enumerate(wide):
        order = np.argsort(-each, kind="stable")[:n]
        assert set(order.tolist()) <= set(ids[rows == row].tolist())


@pytest.mark.parametrize(("low", "high", "dtype"), [(1.0, 1 + 2**-52, "float64"), (0.0, 1e-30, "float32")])
def test_neighbours_that_round_to_equals_stay_together(low: float, high: float, dtype: str) -> None:
    """The lower id of equals wins, also where they are equal only as log-probabilities."""
    found = likely(np.array([[low, high, 300.0, high]], dtype), 2)
    assert found.chances[0] == found.chances[1] == found.chances[3]
    assert found.ids.tolist() == [0, 1, 2, 3]


def test_a_large_vocabulary_gives_few() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 10_007)).astype(np.float32)
    assert len(likely(scores, 10).ids) < 5 * 20


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_is_told_with_its_row(wrong: float) -> None:
    scores = np.zeros((3, 400), np.float32)
    scores[1, 399] = wrong
    with pytest.raises(ArgumentError, match="the highest logit of row 1"):
        likely(scores, 2)
    with pytest.raises(ArgumentError, match="the highest logit of row 1"):
        _there(torch.from_numpy(scores), 2)
    scores[1] = -np.inf
    with pytest.raises(ArgumentError, match="row 1 is -inf"):
        likely(scores, 2)
