"""Choice of the next id: greedy stays on its device; sampling agrees with Hugging Face's processors."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from regard.errors import ArgumentError
from regard.generation import GREEDY, Sampling
from regard.generation.sampling import _draw, scores_of


def logits(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape) * 3


# --- changes to the logits -------------------------------------------------------------------------------


def by_hugging_face(scores: np.ndarray, ids: np.ndarray, how: Sampling) -> np.ndarray:
    from transformers.generation import logits_process as hf

    chain: list[Any] = [hf.TemperatureLogitsWarper(float(how.temperature))]
    if how.repetition_penalty is not None:
        chain.insert(0, hf.RepetitionPenaltyLogitsProcessor(how.repetition_penalty))
    if how.top_k is not None:
        chain.append(hf.TopKLogitsWarper(how.top_k))
    if how.top_p is not None:
        chain.append(hf.TopPLogitsWarper(how.top_p))
    if how.min_p is not None:
        chain.append(hf.MinPLogitsWarper(how.min_p))
    process: Any = hf.LogitsProcessorList(chain)
    processed = process(torch.as_tensor(ids), torch.as_tensor(scores))
    return processed.softmax(-1).numpy()


@given(
    seed=st.integers(0, 999),
    temperature=st.sampled_from([0.3, 1.0, 1.7]),
    top_k=st.none() | st.integers(1, 20),
    top_p=st.none() | st.floats(0.01, 1.0),
    min_p=st.none() | st.floats(0.0, 1.0),
    repetition_penalty=st.none() | st.sampled_from([0.7, 1.0, 1.3]),
)
def test_same_probabilities_as_hugging_face(seed: int, **how: Any) -> None:
    sampling = Sampling(**how)
    scores = logits(seed, 3, 20)
    ids = np.random.default_rng(seed).integers(0, 20, size=(3, 6))
    seen = np.zeros((3, 20), dtype=bool)
    np.put_along_axis(seen, ids, True, axis=1)
    mine = sampling.probabilities(sampling.penalised(scores, seen))
    assert_close(mine, by_hugging_face(scores, ids, sampling), "weights")


def test_ties_are_kept_and_one_id_always_remains() -> None:
    even = np.zeros(4)
    for how in (Sampling(top_k=1), Sampling(top_p=0.01), Sampling(min_p=1.0)):
        assert how.probabilities(even).tolist() == [0.25] * 4
        assert how.probabilities(np.array([0.0, 5.0, -np.inf, 1.0])).tolist() == [0, 1, 0, 0]
    assert Sampling(top_p=1.0, min_p=0.0).probabilities(np.array([0.0, -30.0])).all()
    assert Sampling(temperature=1e-320).probabilities(np.array([1e30, -1e30, 1e30])).tolist() == [0.5, 0, 0.5]


def test_top_p_keeps_the_smallest_sufficient_set() -> None:
    scores = np.log([0.5, 0.3, 0.15, 0.05])
    kept = [np.count_nonzero(Sampling(top_p=p).probabilities(scores)) for p in (0.49, 0.51, 0.79, 0.81, 0.96)]
    assert kept == [1, 2, 2, 3, 4]
    assert Sampling(top_p=0.5).probabilities(np.log([0.5, 0.25, 0.25])).tolist() == [
        1,
        0,
        0,
    ]  # the bound itself is enough


# --- drawing ---------------------------------------------------------------------------------------------


def draw(how: Sampling, scores: Any, rows: int, steps: int = 12) -> np.ndarray:
    pick = how.start([[0]] * rows, scores.shape[-1])
    return np.stack([pick(scores) for _ in range(steps)], axis=1)


def test_same_seed_gives_same_ids_in_numpy_and_torch() -> None:
    scores = logits(0, 3, 50).astype(np.float32)
    how = Sampling(seed=7, top_p=0.95)
    first = draw(how, scores, 3)
    np.testing.assert_array_equal(draw(how, scores, 3), first)
    np.testing.assert_array_equal(draw(how, torch.as_tensor(scores), 3), first)
    assert (draw(Sampling(seed=8, top_p=0.95), scores, 3) != first).any()


def test_half_precision_logits() -> None:
    scores = torch.as_tensor(logits(0, 2, 50)).bfloat16().requires_grad_()
    np.testing.assert_array_equal(draw(Sampling(seed=1), scores, 2), draw(Sampling(seed=1), scores.double(), 2))


def test_rows_are_independent() -> None:
    scores, others = logits(0, 3, 50), logits(1, 3, 50)
    first = draw(Sampling(seed=7), scores, 3)
    np.testing.assert_array_equal(draw(Sampling(seed=7), scores[:1], 1)[0], first[0])
    np.testing.assert_array_equal(draw(Sampling(seed=7), np.stack([others[0], scores[1]]), 2)[1], first[1])


def test_equal_prompts_give_different_texts() -> None:
    same = draw(Sampling(seed=7), np.zeros((2, 50)), 2)
    assert (same[0] != same[1]).any()


def test_without_a_seed_runs_differ() -> None:
    assert (draw(Sampling(), np.zeros((1, 50)), 1) != draw(Sampling(), np.zeros((1, 50)), 1)).any()


def test_frequencies_match_probabilities() -> None:
    scores = np.log([[0.5, 0.3, 0.2, 1e-300]])
    ids = draw(Sampling(seed=0), scores, 1, steps=4000)
    shares = np.bincount(ids[0], minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2, 0], atol=0.03)  # four standard deviations


class Fixed:
    """A generator that always returns the same number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


@given(probabilities=st.lists(st.just(0.0) | st.floats(1e-9, 1.0), min_size=1, max_size=9).filter(any))
def test_ids_with_probability_zero_are_never_drawn(probabilities: list[float]) -> None:
    possible = np.flatnonzero(probabilities)
    assert _draw(np.array(probabilities), Fixed(0.0)) == possible[0]  # type: ignore[arg-type]
    assert _draw(np.array(probabilities), Fixed(float(np.nextafter(1, 0)))) == possible[-1]  # type: ignore[arg-type]


def test_picked_ids_are_penalised() -> None:
    how = Sampling(repetition_penalty=1e9, temperature=1e-3, seed=0)
    pick = how.start([[2]], 4)
    scores = np.array([[4.0, 3.0, 5.0, 2.0]])
    assert [pick(scores).tolist() for _ in range(3)] == [[0], [1], [3]]


# --- greedy ----------------------------------------------------------------------------------------------


def test_greedy_takes_the_lowest_id_and_keeps_the_array_type(xp: Any) -> None:
    scores = xp.asarray(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]]))
    ids = GREEDY.start([[0], [0]], 3)(scores)
    assert type(ids) is type(scores)
    assert ids.tolist() == [1, 0]


# --- invalid arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperature": 0}, r"temperature must be .* greater than 0; found 0; .*use top_k=1 .*pick=GREEDY"),
        ({"temperature": -1.0}, "found -1.0"),
        ({"temperature": float("nan")}, "found nan"),
        ({"temperature": "1"}, "found '1'"),
        ({"temperature": True}, "found True"),
        ({"temperature": 10**400}, "found 1000"),  # too large for a float
        ({"top_p": 10**400}, "found 1000"),
        ({"top_k": 0}, "top_k must be a whole number of at least 1; found 0"),
        ({"top_k": 2.0}, "found 2.0"),
        ({"top_p": 0}, "top_p must be greater than 0 and at most 1; found 0"),
        ({"top_p": 1.01}, "found 1.01; 0.9 is usual"),
        ({"min_p": -0.1}, "min_p must be between 0 and 1; found -0.1"),
        ({"min_p": 2}, "found 2"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be .* greater than 0; found 0.0"),
        ({"repetition_penalty": float("inf")}, "found inf"),
        ({"seed": -1}, "seed must be a whole number of at least 0; found -1"),
        ({"seed": 0.5}, "found 0.5"),
    ],
)
def test_values_out_of_range_raise(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Sampling(**wrong)


@pytest.mark.parametrize("top_k", [8, 9, 10**12])
def test_top_k_of_the_whole_vocabulary_leaves_none_out(top_k: int) -> None:
    logits = np.random.default_rng(0).standard_normal((2, 8))
    np.testing.assert_array_equal(Sampling(top_k=top_k).probabilities(logits), Sampling().probabilities(logits))


def test_sampling_is_immutable() -> None:
    assert Sampling(top_k=3) == Sampling(top_k=3)
    with pytest.raises(AttributeError):
        Sampling().top_k = 3  # type: ignore[misc]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_logits_raise(bad: float) -> None:
    scores = np.zeros((2, 3))
    scores[1, 2] = bad
    with pytest.raises(ArgumentError, match=rf"the highest logit of row 1 is {bad}.*float32"):
        scores_of(scores)
    with pytest.raises(ArgumentError, match="of row 0 is -inf"):
        scores_of(np.full((1, 3), -np.inf))
