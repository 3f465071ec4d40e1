"""Trace.from_weights: any array of weights becomes a record, and what are no weights is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from regard import Trace
from regard.errors import ArgumentError, DtypeError
from regard.reference import pooled_map, softmax
from regard.trace.from_weights import mean_of_heads, record_of


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return softmax(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize(
    ("given_shape", "shape"),
    [
        ((3, 4), (1, 1, 3, 4)),
        ((5, 3, 4), (1, 5, 3, 4)),
        ((2, 5, 3, 4), (2, 5, 3, 4)),
        ((2, 3, 5, 3, 4), (6, 5, 3, 4)),
        ((0, 4), (1, 1, 0, 4)),
        ((3, 0), (1, 1, 3, 0)),
        ((0, 5, 3, 4), (0, 5, 3, 4)),
    ],
)
def test_axes_before_the_last_two_are_heads_then_samples(given_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
    w = weights(*given_shape)
    record = Trace.from_weights(w)[0]
    assert record.shape == shape
    np.testing.assert_array_equal(record.map, w.reshape(shape))
    np.testing.assert_array_equal(record.weights(), w.reshape(shape))


@given(
    T=st.integers(1, 20),
    S=st.integers(1, 20),
    bins=st.integers(1, 20),
    blind=st.integers(0, 20),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_the_map_is_the_reference_map(T: int, S: int, bins: int, blind: int, dtype: str) -> None:
    w = weights(2, 3, T, S).astype(dtype)
    w[:, :, : min(blind, T)] = 0
    record = Trace.from_weights(w, map=bins)[0]
    np.testing.assert_allclose(record.map, pooled_map(w, bins), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(record.weights(rows=slice(0, 2)), w[:, :, :2])


def test_a_half_is_summed_in_single_precision() -> None:
    w = np.full((1, 4096), 1 / 4096, np.float16)
    assert Trace.from_weights(w, map=1)[0].map.item() == pytest.approx(1.0, abs=1e-6)


def test_tensors_stay_tensors() -> None:
    w = torch.softmax(torch.randn(2, 9, 9, requires_grad=True), -1)
    record = Trace.from_weights(w, map=4)[0]
    assert isinstance(record.map, torch.Tensor)
    assert not record.weights().requires_grad
    np.testing.assert_allclose(record.map[0], pooled_map(w.detach().numpy(), 4), rtol=1e-5, atol=1e-7)


def test_bfloat16_rows_need_not_sum_to_one_exactly() -> None:
    w = torch.softmax(torch.randn(64, 5, generator=torch.Generator().manual_seed(0)), -1).bfloat16()
    assert (w.float().sum(-1) - 1).abs().max() > 1e-3
    assert Trace.from_weights(w)[0].shape == (1, 1, 64, 5)


def test_tokens_of_a_square_serve_both_sides() -> None:
    record = Trace.from_weights(weights(2, 2), ["a", "b"])[0]
    assert record.queries == record.keys == (("a", "b"),)
    crossing = Trace.from_weights(weights(2, 2), np.array(["a", "b"]), kind="cross")[0]
    assert crossing.queries == (("a", "b"),)
    assert crossing.keys is None
    poem = Trace.from_weights(weights(2, 3), "明月", ["the", "bright", "moon"])[0]
    assert poem.queries == (("明", "月"),)
    with pytest.raises(ArgumentError, match="names 3 tokens, but there are 2"):
        Trace.from_weights(weights(2, 2), ["a", "b", "c"])


def test_a_row_of_zeros_is_a_query_that_sees_nothing() -> None:
    w = weights(3, 3)
    w[1] = 0
    assert Trace.from_weights(w)[0].map[0, 0, 1].sum() == 0


def test_a_row_that_does_not_sum_to_one_is_named_with_its_sum() -> None:
    w = weights(2, 3, 4, 5)
    w[1, 2, 3] *= 0.5
    with pytest.raises(ArgumentError, match=r"row \(1, 2, 3\).* sums to 0.5.*softmax"):
        Trace.from_weights(w)
    w = weights(3, 4)
    w[2, 0] = np.inf
    with pytest.raises(ArgumentError, match=r"row \(0, 0, 2\).* sums to inf"):
        Trace.from_weights(w)


def test_a_row_that_cancels_is_no_row_of_zeros() -> None:
    with pytest.raises(ArgumentError, match=r"sums to 0\b"):
        Trace.from_weights(np.array([[0.5, -0.5]]))
    with pytest.raises(ArgumentError, match=r"holds -0\.5"):
        Trace.from_weights(np.array([[1.5, -0.5]]))


def test_nan_may_be_in_some_rows_but_not_in_all() -> None:
    w = weights(3, 3)
    w[1] = np.nan
    assert np.isnan(Trace.from_weights(w)[0].map[0, 0, 1]).all()
    with pytest.raises(ArgumentError, match="every row"):
        Trace.from_weights(np.full((2, 2), np.nan))


@pytest.mark.parametrize("whole", [np.eye(2, dtype=int), np.eye(2, dtype=bool), [[1, 0], [0, 1]]])
def test_whole_numbers_may_be_weights(whole: object) -> None:
    assert Trace.from_weights(whole)[0].map[0, 0].tolist() == [[1, 0], [0, 1]]


def test_rounded_weights_of_a_long_row_are_weights() -> None:
    assert Trace.from_weights(np.full((1, 100_000), 1e-5, np.float16))[0].shape == (1, 1, 1, 100_000)


@pytest.mark.parametrize("wrong", [[["a"]], np.eye(2) + 0j])
def test_only_numbers_are_weights(wrong: object) -> None:
    with pytest.raises(DtypeError, match="floating-point"):
        Trace.from_weights(wrong)


def test_lists_are_taken_where_they_are_arrays() -> None:
    assert Trace.from_weights([[0.5, 0.5], [1.0, 0.0]])[0].shape == (1, 1, 2, 2)
    with pytest.raises(DtypeError, match="found list"):
        Trace.from_weights([[0.5, 0.5], [1.0]])
    with pytest.raises(ArgumentError, match=r"found shape \(2,\)"):
        Trace.from_weights(np.array([0.5, 0.5]))


def test_a_record_may_go_without_a_map() -> None:
    record = Trace.from_weights(weights(3, 3), map=None)[0]
    assert record.map is None
    assert record.weights().shape == (1, 1, 3, 3)


def test_kind_and_map_are_checked() -> None:
    with pytest.raises(ArgumentError, match="encoder, decoder, cross, self"):
        Trace.from_weights(weights(2, 2), kind="causal")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"map=…"):
        Trace.from_weights(weights(2, 2), map=0)


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_a_tuple_of_layers_is_a_record_for_each(kind: Any, make: Any) -> None:
    layers = [softmax(np.random.default_rng(n).normal(size=(2, 3, 4, 4))) for n in range(3)]
    trace = Trace.from_weights(kind(make(each) for each in layers), list("abcd"), name="h", map=2)
    assert trace.names == ["h.0", "h.1", "h.2"]
    for record, wanted in zip(trace, layers, strict=True):
        assert record.shape == (2, 3, 4, 4)
        assert record.keys == (tuple("abcd"),)
        assert record.map.shape == (2, 3, 2, 2)
        np.testing.assert_array_equal(record.weights(), wanted)
    # Layers of different sizes, as of an encoder that pools; heads in a list are no layers.
    assert len(Trace.from_weights([np.eye(2)[None, None], np.eye(3)[None, None]])) == 2
    assert Trace.from_weights([np.eye(2)] * 3)[0].shape == (1, 3, 2, 2)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_the_mean_of_all_heads(make: Any) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 3, 4, 5)))
    mean = mean_of_heads(record_of(make(weights), list("abcd"), list("vwxyz"), name="h.0", kind="cross", map=2))
    assert (mean.name, mean.kind, mean.shape) == ("h.0.mean", "cross", (2, 1, 4, 5))
    assert (mean.queries, mean.keys) == ((tuple("abcd"),), (tuple("vwxyz"),))
    wanted = record_of(weights.mean(1, keepdims=True), map=2)
    for found, other in ((mean.weights(), wanted.weights()), (mean.map, wanted.map), (mean.sink, wanted.sink)):
        assert_close(np.asarray(found), np.asarray(other))
    np.testing.assert_array_equal(mean.weights(slice(1, 3), slice(0, 2)), mean.weights()[..., 1:3, :2])
