"""LayerNorm and RMSNorm: properties of a row, half precision, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError, ShapeError
from regard.reference.norms import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward

RNG = np.random.default_rng(0)


@given(st.integers(2, 17), st.floats(-1e3, 1e3), st.floats(1e-2, 1e3), st.integers(0, 99))
def test_a_normed_row_has_mean_0_and_variance_1(D: int, shift: float, scale: float, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((3, D)) * scale + shift
    y = layer_norm(x, eps=0.0)
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-9)
    np.testing.assert_allclose(y.var(-1), 1, rtol=1e-9)
    np.testing.assert_allclose((rms_norm(x, eps=0.0) ** 2).mean(-1), 1, rtol=1e-9)


def test_layer_norm_ignores_shift_and_scale_and_rms_norm_only_scale() -> None:
    x = RNG.standard_normal((4, 7))
    np.testing.assert_allclose(layer_norm(3 * x + 5, eps=0.0), layer_norm(x, eps=0.0))
    np.testing.assert_allclose(rms_norm(3 * x, eps=0.0), rms_norm(x, eps=0.0))
    assert not np.allclose(rms_norm(x + 5, eps=0.0), rms_norm(x, eps=0.0))


def test_weight_and_bias_are_applied_after_the_norm() -> None:
    x, weight, bias = RNG.standard_normal((4, 7)), RNG.standard_normal(7), RNG.standard_normal(7)
    np.testing.assert_allclose(layer_norm(x, weight, bias), layer_norm(x) * weight + bias)
    np.testing.assert_allclose(layer_norm(x, bias=bias), layer_norm(x) + bias)
    np.testing.assert_allclose(rms_norm(x, weight), rms_norm(x) * weight)


def test_a_constant_row_gives_zero_not_nan() -> None:
    assert layer_norm(np.full((1, 5), 3.0)).tolist() == [[0.0] * 5]
    assert rms_norm(np.zeros((1, 5))).tolist() == [[0.0] * 5]


def test_a_row_far_from_zero_keeps_its_precision() -> None:
    # mean(x²) − mean(x)² would be 0 or negative here in float32.
    x = np.array([[4096.0, 4097.0, 4098.0]], np.float32)
    np.testing.assert_allclose(layer_norm(x, eps=0.0), [[-1.2247449, 0, 1.2247449]], rtol=1e-6)


def test_statistics_of_half_precision_are_computed_in_float32() -> None:
    x = np.array([[300.0, -300.0, 6e4, -6e4]], np.float16)  # every square overflows float16
    for norm in (layer_norm, rms_norm):
        y = norm(x)
        assert y.dtype == np.float16
        np.testing.assert_array_equal(y, norm(x.astype(np.float32)).astype(np.float16))


def test_rms_norm_rounds_before_the_weight_as_llama_does() -> None:
    x, weight = (RNG.standard_normal(shape).astype(np.float16) for shape in ((50, 16), (16,)))
    rounded_first = rms_norm(x) * weight
    np.testing.assert_array_equal(rms_norm(x, weight), rounded_first, strict=True)
    rounded_last = (rms_norm(x.astype(np.float32)) * weight).astype(np.float16)
    assert (rms_norm(x, weight) != rounded_last).any()  # the two orders do differ


def test_the_result_has_the_dtype_of_x_for_any_weight_dtype() -> None:
    weight = np.ones(3, np.float32)
    for norm in (layer_norm, rms_norm):
        assert norm(np.ones((2, 3), np.float16), weight).dtype == np.float16
        assert norm(np.array([[1, 2, 3]])).dtype == np.float64


def test_nan_and_overflow_affect_only_their_row() -> None:
    x = np.ones((3, 4), np.float32) * np.arange(4, dtype=np.float32)
    x[1, 0], x[2, 0] = np.nan, np.inf
    for norm in (layer_norm, rms_norm):
        assert np.isnan(norm(x)).any(-1).tolist() == [False, True, True]


@pytest.mark.parametrize("shape", [(5,), (0, 5), (2, 0, 5)])
def test_one_row_and_no_rows(shape: tuple[int, ...]) -> None:
    x, weight = np.ones(shape), np.ones(5)
    assert layer_norm(x, weight, weight).shape == shape
    assert rms_norm(x, weight).shape == shape
    assert [g.shape for g in layer_norm_backward(x, x, weight, weight) if g is not None] == [
        shape,
        (5,),
        (5,),
    ]
    assert [g.shape for g in rms_norm_backward(x, x, weight) if g is not None] == [shape, (5,)]


def test_gradients_are_orthogonal_to_shift_and_scale() -> None:
    x, grad = RNG.standard_normal((4, 7)), RNG.standard_normal((4, 7))
    d_layer, d_rms = layer_norm_backward(grad, x, eps=0.0).x, rms_norm_backward(grad, x, eps=0.0).x
    np.testing.assert_allclose(d_layer.sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose((d_layer * x).sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose((d_rms * x).sum(-1), 0, atol=1e-12)


def test_missing_weight_and_bias_have_no_gradient() -> None:
    x = np.ones((2, 3))
    assert layer_norm_backward(x, x)[1:] == (None, None)
    assert rms_norm_backward(x, x)[1:] == (None, None)


@pytest.mark.parametrize("shape", [(), (4, 0)])
def test_x_needs_a_width(shape: tuple[int, ...]) -> None:
    for norm in (layer_norm, rms_norm):
        with pytest.raises(ShapeError, match="x needs a last axis of at least one number"):
            norm(np.ones(shape))


def test_weights_that_would_broadcast_are_refused() -> None:
    x = np.ones((2, 3))
    for call, name in (
        (lambda: layer_norm(x, np.ones(1)), "weight"),
        (lambda: layer_norm(x, bias=np.ones((2, 3))), "bias"),
        (lambda: rms_norm(x, np.ones((1, 3))), "weight"),
        (lambda: rms_norm_backward(x, x, np.ones(1)), "weight"),
        (lambda: layer_norm_backward(x, x, bias=np.ones(1)), "bias"),
    ):
        with pytest.raises(ShapeError) as caught:
            call()
        for text in (caught.value.text("en"), caught.value.text("zh")):
            assert text.startswith(name)
            assert "(3,)" in text


@pytest.mark.parametrize("eps", [-1e-5, float("nan"), float("inf")])
def test_eps_is_not_negative_and_finite(eps: float) -> None:
    for norm in (layer_norm, rms_norm):
        with pytest.raises(ArgumentError, match="eps must be a finite number of at least 0; found"):
            norm(np.ones((2, 3)), eps=eps)


def test_a_gradient_of_another_shape_is_refused() -> None:
    for backward in (layer_norm_backward, rms_norm_backward):
        with pytest.raises(ShapeError, match=r"grad_output must have shape \(2, 3\); found \(2, 1\)"):
            backward(np.ones((2, 1)), np.ones((2, 3)))
