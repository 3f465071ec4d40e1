"""Trace.from_weights: any array of weights becomes a record; arrays that are no weights are refused."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from tolerances import assert_close

from regard import Trace
from regard.errors import ArgumentError, DtypeError
from regard.reference import pooled_map, softmax
from regard.trace.from_weights import mean_of_heads, record_from_weights


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
    fully_masked=st.integers(0, 20),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_map_equals_the_reference(T: int, S: int, bins: int, fully_masked: int, dtype: str) -> None:
    w = weights(2, 3, T, S).astype(dtype)
    w[:, :, : min(fully_masked, T)] = 0
    record = Trace.from_weights(w, map=bins)[0]
    np.testing.assert_allclose(present(record.map), pooled_map(w, bins), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(record.weights(rows=slice(0, 2)), w[:, :, :2])


def test_half_precision_is_summed_in_single_precision() -> None:
    w = np.full((1, 4096), 1 / 4096, np.float16)
    assert present(Trace.from_weights(w, map=1)[0].map).item() == pytest.approx(1.0, abs=1e-6)


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


def test_tokens_of_self_attention_are_used_for_both_sides() -> None:
    record = Trace.from_weights(weights(2, 2), ["a", "b"])[0]
    assert record.query_tokens == record.key_tokens == (("a", "b"),)
    cross = Trace.from_weights(weights(2, 2), np.array(["a", "b"]), kind="cross")[0]
    assert cross.query_tokens == (("a", "b"),)
    assert cross.key_tokens is None
    poem = Trace.from_weights(weights(2, 3), "明月", ["the", "bright", "moon"])[0]
    assert poem.query_tokens == (("明", "月"),)
    with pytest.raises(ArgumentError, match="names 3 tokens, but there are 2"):
        Trace.from_weights(weights(2, 2), ["a", "b", "c"])


def test_row_of_zeros_is_a_fully_masked_query() -> None:
    w = weights(3, 3)
    w[1] = 0
    assert present(Trace.from_weights(w)[0].map)[0, 0, 1].sum() == 0


def test_error_names_the_row_that_does_not_sum_to_one() -> None:
    w = weights(2, 3, 4, 5)
    w[1, 2, 3] *= 0.5
    with pytest.raises(ArgumentError, match=r"row \(1, 2, 3\).* sums to 0.5.*softmax"):
        Trace.from_weights(w)
    w = weights(3, 4)
    w[2, 0] = np.inf
    with pytest.raises(ArgumentError, match=r"row \(0, 0, 2\).* sums to inf"):
        Trace.from_weights(w)


def test_row_that_sums_to_zero_is_not_fully_masked() -> None:
    with pytest.raises(ArgumentError, match=r"sums to 0\b"):
        Trace.from_weights(np.array([[0.5, -0.5]]))
    with pytest.raises(ArgumentError, match=r"holds -0\.5"):
        Trace.from_weights(np.array([[1.5, -0.5]]))


def test_nan_is_allowed_in_some_rows_but_not_in_all() -> None:
    w = weights(3, 3)
    w[1] = np.nan
    assert np.isnan(present(Trace.from_weights(w)[0].map)[0, 0, 1]).all()
    with pytest.raises(ArgumentError, match="every row"):
        Trace.from_weights(np.full((2, 2), np.nan))


@pytest.mark.parametrize("integers", [np.eye(2, dtype=int), np.eye(2, dtype=bool), [[1, 0], [0, 1]]])
def test_integers_are_accepted_as_weights(integers: object) -> None:
    assert present(Trace.from_weights(integers)[0].map)[0, 0].tolist() == [[1, 0], [0, 1]]


def test_rounded_weights_of_a_long_row_are_accepted() -> None:
    assert Trace.from_weights(np.full((1, 100_000), 1e-5, np.float16))[0].shape == (1, 1, 1, 100_000)


@pytest.mark.parametrize("wrong", [[["a"]], np.eye(2) + 0j])
def test_other_dtypes_are_refused(wrong: object) -> None:
    with pytest.raises(DtypeError, match="floating-point"):
        Trace.from_weights(wrong)


def test_lists_are_accepted_unless_ragged() -> None:
    assert Trace.from_weights([[0.5, 0.5], [1.0, 0.0]])[0].shape == (1, 1, 2, 2)
    with pytest.raises(DtypeError, match="found list"):
        Trace.from_weights([[0.5, 0.5], [1.0]])
    with pytest.raises(ArgumentError, match=r"found shape \(2,\)"):
        Trace.from_weights(np.array([0.5, 0.5]))


def test_record_without_a_map() -> None:
    record = Trace.from_weights(weights(3, 3), map=None)[0]
    assert record.map is None
    assert record.weights().shape == (1, 1, 3, 3)


def test_wrong_kind_and_map_are_refused() -> None:
    with pytest.raises(ArgumentError, match="encoder, decoder, cross, self"):
        Trace.from_weights(weights(2, 2), kind="causal")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"map=…"):
        Trace.from_weights(weights(2, 2), map=0)


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_tuple_of_layers_gives_one_record_per_layer(kind: Any, make: Any) -> None:
    layers = [softmax(np.random.default_rng(n).normal(size=(2, 3, 4, 4))) for n in range(3)]
    trace = Trace.from_weights(kind(make(each) for each in layers), list("abcd"), name="h", map=2)
    assert trace.names == ["h.0", "h.1", "h.2"]
    for record, wanted in zip(trace, layers, strict=True):
        assert record.shape == (2, 3, 4, 4)
        assert record.key_tokens == (tuple("abcd"),)
        assert present(record.map).shape == (2, 3, 2, 2)
        np.testing.assert_array_equal(record.weights(), wanted)
    # Layers may have different sizes, as in an encoder that pools; a list of heads is not a list of layers.
    assert len(Trace.from_weights([np.eye(2)[None, None], np.eye(3)[None, None]])) == 2
    assert Trace.from_weights([np.eye(2)] * 3)[0].shape == (1, 3, 2, 2)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_mean_of_all_heads(make: Any) -> None:
    weights = softmax(np.random.default_rng(0).normal(size=(2, 3, 4, 5)))
    mean = mean_of_heads(
        record_from_weights(make(weights), list("abcd"), list("vwxyz"), name="h.0", kind="cross", map=2)
    )
    assert (mean.name, mean.kind, mean.shape) == ("h.0.mean", "cross", (2, 1, 4, 5))
    assert (mean.query_tokens, mean.key_tokens) == ((tuple("abcd"),), (tuple("vwxyz"),))
    wanted = record_from_weights(weights.mean(1, keepdims=True), map=2)
    for found, other in ((mean.weights(), wanted.weights()), (mean.map, wanted.map), (mean.sink, wanted.sink)):
        assert_close(np.asarray(found), np.asarray(other))
    np.testing.assert_array_equal(mean.weights(slice(1, 3), slice(0, 2)), mean.weights()[..., 1:3, :2])
