"""ReLU, GELU and SiLU: known values, tails, unusual inputs."""

import math
import re

import numpy as np
import pytest

from regard.errors import ArgumentError, ShapeError
from regard.reference.position_wise import (
    ACTIVATIONS,
    ActivationName,
    gelu,
    gelu_backward,
    get_activation,
    relu,
    relu_backward,
    silu,
    silu_backward,
)

NAMES = list(ACTIVATIONS)


def test_known_values() -> None:
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert relu(x).tolist() == [0, 0, 0, 1, 2]
    np.testing.assert_allclose(gelu(x), [-0.04550026, -0.15865525, 0, 0.84134475, 1.95449974], atol=1e-8)
    np.testing.assert_allclose(
        gelu(x, approximate="tanh"), [-0.04540231, -0.15880801, 0, 0.84119199, 1.95459769], atol=1e-8
    )
    np.testing.assert_allclose(silu(x), [-0.23840584, -0.26894142, 0, 0.73105858, 1.76159416], atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_the_output_has_the_shape_and_dtype_of_the_input(name: ActivationName) -> None:
    f = ACTIVATIONS[name]
    for dtype in (np.float16, np.float32, np.float64):
        for shape in ((), (0,), (3,), (2, 0, 5), (2, 3, 5)):
            x = np.ones(shape, dtype)
            for y in (f.forward(x), f.backward(x, x)):
                assert (y.shape, y.dtype) == (x.shape, x.dtype)


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu"])
def test_integers_become_float64_where_needed(name: ActivationName) -> None:
    y = ACTIVATIONS[name].forward(np.array([-1, 0, 1]))
    np.testing.assert_array_equal(y, ACTIVATIONS[name].forward(np.array([-1.0, 0.0, 1.0])), strict=True)


def test_relu_keeps_integers() -> None:
    assert relu(np.array([-1, 2])).dtype == np.int64


def test_relu_has_slope_zero_at_zero() -> None:
    assert relu_backward(np.ones(3), np.array([-1.0, 0.0, 1.0])).tolist() == [0, 0, 1]


def test_half_precision_is_computed_in_float32() -> None:
    x = np.linspace(-6, 6, 41).astype(np.float16)
    for name in NAMES:
        wide = ACTIVATIONS[name].forward(x.astype(np.float32)).astype(np.float16)
        np.testing.assert_array_equal(ACTIVATIONS[name].forward(x), wide, strict=True)


def test_gelu_is_precise_far_below_zero() -> None:
    # 1 + erf(-10/√2) is exactly 0 in float64; the tail is 7.6e-24.
    assert gelu(np.array(-10.0)) == pytest.approx(-5 * math.erfc(10 / math.sqrt(2)), rel=1e-14)
    assert gelu(np.array(-10.0)) < 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1e2, 1e20, 3e38])
def test_the_slope_of_large_inputs_is_0_or_1_without_overflow(name: ActivationName, size: float) -> None:
    x = np.array([-size, size], np.float32)
    np.testing.assert_array_equal(ACTIVATIONS[name].forward(x), np.maximum(x, 0))
    np.testing.assert_array_equal(ACTIVATIONS[name].backward(np.ones(2, np.float32), x), [0, 1])


@pytest.mark.parametrize("name", NAMES)
def test_nan_gives_nan(name: ActivationName) -> None:
    x = np.array([np.nan, 1.0])
    assert np.isnan(ACTIVATIONS[name].forward(x)).tolist() == [True, False]
    assert ACTIVATIONS[name].backward(np.ones(2), x)[0] != 0


def test_lists() -> None:
    assert relu([-1.0, 2.0]).tolist() == [0, 2]  # type: ignore[arg-type]
    assert silu([0.0]).tolist() == [0]  # type: ignore[arg-type]


def test_an_unknown_activation_lists_the_choices() -> None:
    with pytest.raises(ArgumentError) as caught:
        get_activation("swish")  # type: ignore[arg-type]
    for text in (caught.value.text("en"), caught.value.text("zh")):
        assert "activation='swish'" in text
        assert re.search("relu(, |、)gelu(, |、)gelu_tanh(, |、)silu", text)


def test_an_unknown_approximation_lists_the_choices() -> None:
    for call in (lambda: gelu(np.ones(2), "erf"), lambda: gelu_backward(np.ones(2), np.ones(2), "erf")):  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="approximate='erf'; choose one of: none, tanh"):
            call()


@pytest.mark.parametrize("backward", [relu_backward, gelu_backward, silu_backward])
def test_a_gradient_of_another_shape_is_refused(backward) -> None:  # type: ignore[no-untyped-def]
    # (2, 1) would broadcast to a result of the wrong shape.
    with pytest.raises(ShapeError, match=r"grad_output must have shape \(2, 3\); found \(2, 1\)"):
        backward(np.ones((2, 1)), np.ones((2, 3)))
