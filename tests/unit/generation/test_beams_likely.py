"""`top_candidates` compared with a sort of the whole vocabulary."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from regard.errors import ArgumentError
from regard.generation.beams import _on_device, top_candidates
from regard.reference import log_sum_exp

# Few values, so that many are equal; minus infinity; and neighbours that are equal as log-probabilities.
values = st.sampled_from([-np.inf, -3.0, 0.0, 1e-30, 1.0, 1 + 2**-52, 2.0, 1000.0]) | st.floats(-20, 20)
shapes = st.tuples(st.integers(1, 4), st.integers(1, 90))


@st.composite
def logits(draw: Any) -> np.ndarray:
    drawn = draw(arrays.arrays(np.float64, draw(shapes), elements=values))
    drawn[np.arange(len(drawn)), draw(st.integers(0, drawn.shape[1] - 1))] = 5.0  # at least one finite logit
    return drawn.astype(draw(st.sampled_from(["float16", "float32", "float64"])))


@given(logits(), st.integers(1, 12))
def test_no_more_likely_id_is_missing(scores: np.ndarray, n: int) -> None:
    found = top_candidates(scores, n)
    wide = scores.astype(np.float64)
    log_probs = wide - log_sum_exp(wide)[:, None]
    assert np.array_equal(found.log_probs, log_probs[found.rows, found.ids])
    assert (np.diff(found.rows * scores.shape[1] + found.ids) > 0).all()  # sorted by row and id, without duplicates
    for row, each in enumerate(log_probs):
        got = found.of_rows(row, row + 1)
        assert set(got.rows) <= {0}
        order = np.argsort(-each, kind="stable")[:n]
        assert set(order[each[order] > -np.inf].tolist()) <= set(got.ids.tolist())
        assert (got.log_probs > -np.inf).all()


@given(logits(), st.integers(1, 12))
def test_other_device_finds_the_same_candidates(scores: np.ndarray, n: int) -> None:
    n = min(n, scores.shape[1])
    rows, ids, values, totals = _on_device(torch.from_numpy(scores), n)
    wide = scores.astype(np.float64)
    np.testing.assert_allclose(totals, log_sum_exp(wide), rtol=1e-12)
    assert np.array_equal(values, wide[rows, ids])
    for row, each in enumerate(wide):
        order = np.argsort(-each, kind="stable")[:n]
        assert set(order.tolist()) <= set(ids[rows == row].tolist())


@pytest.mark.parametrize(("low", "high", "dtype"), [(1.0, 1 + 2**-52, "float64"), (0.0, 1e-30, "float32")])
def test_ids_that_round_to_ties_are_all_kept(low: float, high: float, dtype: str) -> None:
    """The lower id of equals wins, also if they are equal only as log-probabilities."""
    found = top_candidates(np.array([[low, high, 300.0, high]], dtype), 2)
    assert found.log_probs[0] == found.log_probs[1] == found.log_probs[3]
    assert found.ids.tolist() == [0, 1, 2, 3]


def test_large_vocabulary_gives_few_candidates() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 10_007)).astype(np.float32)
    assert len(top_candidates(scores, 10).ids) < 5 * 20


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_non_finite_logits_raise_with_the_row(wrong: float) -> None:
    scores = np.zeros((3, 400), np.float32)
    scores[1, 399] = wrong
    with pytest.raises(ArgumentError, match="the highest logit of row 1"):
        top_candidates(scores, 2)
    with pytest.raises(ArgumentError, match="the highest logit of row 1"):
        _on_device(torch.from_numpy(scores), 2)
    scores[1] = -np.inf
    with pytest.raises(ArgumentError, match="row 1 is -inf"):
        top_candidates(scores, 2)
