"""Rollout, entropy, sink, distance and value-weighted attention against brute force, and their errors."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

import regard
from regard import Mask, See
from regard.errors import ArgumentError, NotKeptError, TooLargeError, UnknownNameError
from regard.reference import softmax
from regard.reference import statistics as brute
from regard.trace import Trace
from regard.trace.from_weights import record_from_weights
from regard.trace.measures import (
    attention_rollout,
    distance_profile,
    mean_distance,
    mean_entropy,
    sink_share,
    value_norms,
    value_weighted,
    visibility,
)


def some_weights(T: int, S: int, seed: int = 0, B: int = 2, H: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = softmax(rng.normal(size=(B, H, T, S)) * 2)
    weights[rng.random((B, H, T)) < 0.2] = 0
    return weights


def mean_over_unmasked(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    unmasked = weights.any(-1)
    found: np.ndarray = (values * unmasked).sum(-1) / np.maximum(unmasked.sum(-1), 1)
    return found


@pytest.fixture(params=["at once", "row by row"])
def block_sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with one block, and with one block per row."""
    if request.param == "row by row":
        monkeypatch.setattr(visibility, "WEIGHTS_AT_A_TIME", 1)


# --- one number per head ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("block_sizes")
@pytest.mark.parametrize(("T", "S"), [(1, 1), (5, 5), (3, 7)])
def test_against_brute_force(T: int, S: int) -> None:
    weights = some_weights(T, S)
    record = record_from_weights(weights)
    distances = np.abs(np.arange(T)[:, None] + S - T - np.arange(S))
    assert_close(mean_entropy(record), mean_over_unmasked(brute.entropy(weights), weights))
    assert_close(sink_share(record), brute.sink(weights))
    assert_close(mean_distance(record), mean_over_unmasked((weights * distances).sum(-1), weights))
    assert_close(distance_profile(record), brute.distance(weights))


@given(T=st.integers(1, 9), extra=st.integers(0, 3), seed=st.integers(0, 50))
def test_kept_statistics_equal_computed_ones(T: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(1, 2, T, 4)), rng.normal(size=(1, 2, T + extra, 4))
    statistics: dict[str, Any] = {"entropy": True, "sink": True, "distance": True}
    _, kept = regard.attend(q, k, k, mask=Mask.causal(), see=See(map=None, **statistics))
    _, exact = regard.attend(q, k, k, mask=Mask.causal(), see=See(map=None, lse=False, sink=False, qk=True))
    for measure in (mean_entropy, sink_share, distance_profile):
        assert_close(measure(kept), measure(exact))


def test_measures_of_tensors_equal_those_of_arrays() -> None:
    weights = some_weights(6, 6)
    record, tensors = record_from_weights(weights), record_from_weights(torch.tensor(weights))
    for measure in (mean_entropy, sink_share, mean_distance, distance_profile):
        assert isinstance(measure(tensors), np.ndarray)
        assert_close(measure(tensors), measure(record))


def test_sink_is_the_first_key_after_padding() -> None:
    q = np.zeros((2, 1, 4, 2))
    keep = np.array([[True] * 4, [False, False, True, True]])
    _, record = regard.attend(q, q, q, mask=Mask.causal() & Mask.from_keep(keep), see=See(qk=True))
    assert_close(sink_share(record)[:, 0], np.array([(1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, (1 + 1 / 2) / 2]))


def test_table_of_layers_and_heads() -> None:
    wide, narrow = some_weights(4, 4, H=3), some_weights(4, 4, H=2)
    table = Trace([record_from_weights(wide), record_from_weights(narrow)]).measure("sink")
    assert table.shape == (2, 3)
    assert_close(table[0], brute.sink(wide).mean(0))
    assert np.isnan(table[1, 2])


def test_measures_that_are_not_defined_raise() -> None:
    cross = record_from_weights(some_weights(4, 6), kind="cross")
    with pytest.raises(ArgumentError, match="attends from one text to another"):
        mean_distance(cross)
    with pytest.raises(UnknownNameError, match="choose one of entropy, sink, distance"):
        Trace([cross]).measure("entropie")
    with pytest.raises(ArgumentError, match="no records"):
        Trace().measure("sink")
    q = np.random.default_rng(0).normal(size=(1, 1, 30, 4))
    _, coarse = regard.attend(q, q, q, see=See(map=8, sink=False))
    for measure in (mean_entropy, sink_share, mean_distance, distance_profile):
        with pytest.raises(NotKeptError, match="qk=True"):
            measure(coarse)


# --- rollout ----------------------------------------------------------------------------------------------


def rollout_by_hand(layers: list[np.ndarray]) -> np.ndarray:
    """The definition of Abnar and Zuidema, for B H T T without fully masked rows."""
    T = layers[0].shape[-1]
    rolled = np.broadcast_to(np.eye(T), (layers[0].shape[0], T, T))
    for weights in layers:
        rolled = (weights.mean(1) / 2 + np.eye(T) / 2) @ rolled
    return rolled


@pytest.mark.usefixtures("block_sizes")
def test_rollout_equals_the_definition() -> None:
    rng = np.random.default_rng(0)
    layers = [softmax(rng.normal(size=(2, 3, 7, 7)) * 2) for _ in range(3)]
    trace = Trace(record_from_weights(weights, list("abcdefg"), name=f"h.{n}") for n, weights in enumerate(layers))
    expected = rollout_by_hand(layers)
    (record,) = trace.rollout()
    assert_close(record.weights()[:, 0], expected.astype(np.float32))
    assert (record.name, record.shape, record.key_tokens) == ("rollout", (2, 1, 7, 7), (tuple("abcdefg"),))
    (last,) = trace.rollout(rows=slice(-2, None))
    assert_close(last.weights()[:, 0], expected[:, -2:].astype(np.float32))
    assert last.query_tokens == (("f", "g"),)
    (tensors,) = Trace(record_from_weights(torch.tensor(weights)) for weights in layers).rollout()
    assert_close(tensors.weights()[:, 0], expected.astype(np.float32))


def test_rollout_of_a_fully_masked_query() -> None:
    weights = np.array([[0.0, 0], [0.5, 0.5]])
    (record,) = Trace([record_from_weights(weights)]).rollout()
    assert record.weights()[0, 0].tolist() == [[1, 0], [0.25, 0.75]]


def test_rollout_can_be_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    Trace([record_from_weights(np.eye(2), ["I", "see"])]).rollout().show(width=60, lang="en")
    assert "rollout" in capsys.readouterr().out


def test_rollout_refuses_records_that_cannot_be_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    square, cross, step = (
        record_from_weights(np.eye(3)),
        record_from_weights(np.eye(3), kind="cross"),
        record_from_weights(np.full((1, 3), 1 / 3)),
    )
    for records in ([square, record_from_weights(np.eye(4))], [step]):
        with pytest.raises(ArgumentError, match=r"choose with trace\.select or a slice"):
            Trace(records).rollout()
    sides = [
        record_from_weights(np.eye(3), kind="encoder"),
        record_from_weights(np.eye(3), kind="decoder"),
    ]  # of one size
    for records, kinds in (([cross], "cross"), ([square, cross], "self, cross"), (sides, "encoder, decoder")):
        with pytest.raises(ArgumentError, match=rf"cannot be multiplied .* here are: {kinds}; choose one side"):
            Trace(records).rollout()
    twice = [record_from_weights(np.eye(3), name=name) for name in ("h.0", "h.1", "h.0", "h.1")]
    with pytest.raises(ArgumentError, match=r"'h\.0#1' is of a later run; .* trace\[:2\]"):
        Trace(twice).rollout()
    assert len(Trace(twice)[:2].rollout()) == 1
    with pytest.raises(ArgumentError, match="no records"):
        attention_rollout(Trace())
    bad = np.eye(3)
    bad[1] = np.nan
    with pytest.raises(ArgumentError, match="first at query 1"):
        Trace([square, record_from_weights(bad)]).rollout()
    monkeypatch.setattr("regard.trace.measures.per_head.CHECK_MEMORY_FROM", 1)
    monkeypatch.setattr("regard.memory.available_bytes", lambda: 8)
    with pytest.raises(TooLargeError, match=r"rows=slice\(-1, None\)"):
        Trace([square]).rollout()


# --- value-weighted ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("block_sizes")
@pytest.mark.parametrize("grouped", [False, True])
def test_value_weighted_equals_brute_force(grouped: bool) -> None:
    B, H, T, S, Ev, D = 2, 4, 5, 7, 3, 6
    rng = np.random.default_rng(0)
    weights = softmax(rng.normal(size=(B, H, T, S)))
    v, W_o = rng.normal(size=(B, 2 if grouped else H, S, Ev)), rng.normal(size=(H * Ev, D))
    expected = np.zeros_like(weights)
    for b, h, i, j in np.ndindex(B, H, T, S):
        moved = v[b, h // 2 if grouped else h, j] @ W_o[h * Ev : (h + 1) * Ev]
        expected[b, h, i, j] = weights[b, h, i, j] * np.linalg.norm(moved)
    expected /= expected.sum(-1, keepdims=True)
    record = value_weighted(record_from_weights(weights), v, W_o)
    assert_close(record.weights(), expected)
    assert_close(record.weights(slice(1, 3), slice(2, 6)), expected[..., 1:3, 2:6])
    assert_close(record.map, expected.astype(np.float32))
    coarse = value_weighted(record_from_weights(weights), v, W_o, bins=3)
    assert_close(coarse.map, brute.pooled_map(expected, 3).astype(np.float32))


def test_key_with_a_value_of_zero_gets_no_weight() -> None:
    v = np.ones((1, 1, 3, 2))
    v[..., 0, :] = 0
    record = value_weighted(record_from_weights(np.array([[1, 0, 0], [0.5, 0.25, 0.25]])), v)
    assert record.weights()[0, 0].tolist() == [[0, 0, 0], [0, 0.5, 0.5]]


def test_value_weighted_tensors_stay_tensors() -> None:
    weights = torch.softmax(torch.randn(1, 2, 3, 3), -1)
    record = value_weighted(record_from_weights(weights), torch.randn(1, 2, 3, 4), torch.randn(8, 5))
    assert isinstance(record.weights(), torch.Tensor)
    assert isinstance(record.map, torch.Tensor)


def test_values_of_the_wrong_shape_are_refused() -> None:
    record = record_from_weights(some_weights(4, 5))
    with pytest.raises(ArgumentError, match=r"shape \(2, 3, 4, 6\) do not fit"):
        value_weighted(record, np.ones((2, 3, 4, 6)))
    with pytest.raises(ArgumentError, match=r"wanted \(18, d_model\)"):
        value_weighted(record, np.ones((2, 3, 5, 6)), np.ones((6, 18)))
    assert value_norms(np.ones((2, 3, 5, 6)), 3).shape == (2, 3, 5)
