"""Feed-forward, plain and gated: the formula element by element, shapes, dtypes, errors."""

from typing import Any

import numpy as np
import pytest

from regard.errors import ArgumentError, ShapeError
from regard.reference.position_wise import (
    feed_forward,
    feed_forward_backward,
    gated_feed_forward,
    gated_feed_forward_backward,
)

RNG = np.random.default_rng(0)
W_1, W_2, b_1, b_2 = (RNG.standard_normal(shape) for shape in ((3, 5), (5, 3), (5,), (3,)))
W_up = RNG.standard_normal((3, 5))


def test_feed_forward_element_by_element() -> None:
    x = RNG.standard_normal((2, 3))
    for row, out in zip(x, feed_forward(x, W_1, W_2, b_1, b_2), strict=True):
        hidden = [max(0.0, sum(row[d] * W_1[d, f] for d in range(3)) + b_1[f]) for f in range(5)]
        expected = [sum(hidden[f] * W_2[f, d] for f in range(5)) + b_2[d] for d in range(3)]
        np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_gated_feed_forward_element_by_element() -> None:
    x = RNG.standard_normal((2, 3))
    for row, out in zip(x, gated_feed_forward(x, W_1, W_up, W_2), strict=True):
        gate, up = row @ W_1, row @ W_up
        expected = (gate / (1 + np.exp(-gate)) * up) @ W_2
        np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_positions_are_independent() -> None:
    x = RNG.standard_normal((2, 7, 3))
    order = RNG.permutation(7)
    np.testing.assert_allclose(feed_forward(x, W_1, W_2)[:, order], feed_forward(x[:, order], W_1, W_2))


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0, 3), (2, 1, 4, 3)])
def test_any_leading_axes_and_empty_ones(shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    assert feed_forward(x, W_1, W_2, b_1, b_2).shape == shape
    assert gated_feed_forward(x, W_1, W_up, W_2).shape == shape
    grads = feed_forward_backward(x, x, W_1, W_2, b_1, b_2)
    assert [g.shape for g in grads if g is not None] == [shape, (3, 5), (5, 3), (5,), (3,)]
    gated = gated_feed_forward_backward(x, x, W_1, W_up, W_2)
    assert [g.shape for g in gated] == [shape, (3, 5), (3, 5), (5, 3)]


def test_a_missing_bias_has_no_gradient() -> None:
    grads = feed_forward_backward(np.ones((2, 3)), np.ones((2, 3)), W_1, W_2, b_2=b_2)
    assert grads.b_1 is None
    np.testing.assert_array_equal(grads.b_2, [2, 2, 2])


def test_half_precision_is_computed_in_float32() -> None:
    # Hidden activations of 4e4 · 4 overflow float16; the output does not.
    x, up, down = np.full((1, 4), 100, np.float16), np.full((4, 2), 400, np.float16), np.full((2, 1), 1e-1)
    y = feed_forward(x, up, down.astype(np.float16))
    assert y.dtype == np.float16
    assert y[0, 0] == pytest.approx(2 * 1.6e5 * 0.1, rel=1e-3)


def test_nan_affects_only_its_position() -> None:
    x = np.ones((4, 3))
    x[1, 0] = np.nan
    for y in (feed_forward(x, W_1, W_2), gated_feed_forward(x, W_1, W_up, W_2)):
        assert np.isnan(y).any(-1).tolist() == [False, True, False, False]


def test_arguments_are_not_modified() -> None:
    given = (np.ones((2, 3)), W_1.copy(), W_2.copy(), b_1.copy(), b_2.copy())
    for array in given:
        array.flags.writeable = False
    feed_forward_backward(given[0], *given, activation="gelu")


@pytest.mark.parametrize("activation", ["swiglu", "", None])
def test_an_unknown_activation_is_refused(activation: str) -> None:
    with pytest.raises(ArgumentError, match="choose one of: relu, gelu, gelu_tanh, silu"):
        feed_forward(np.ones((2, 3)), W_1, W_2, activation=activation)  # type: ignore[arg-type]


WRONG = {
    "W_1 as nn.Linear keeps it": ({"W_1": W_1.T}, "W_1", "(3, ≥ 1)", "(5, 3)"),
    "W_1 with three axes": ({"W_1": W_1[None]}, "W_1", "(3, ≥ 1)", "(1, 3, 5)"),
    "W_1 without columns": ({"W_1": W_1[:, :0]}, "W_1", "(3, ≥ 1)", "(3, 0)"),
    "W_2 of another width": ({"W_2": W_2[:4]}, "W_2", "(5, ≥ 1)", "(4, 3)"),
    "b_1 that would broadcast": ({"b_1": b_1[:1]}, "b_1", "(5,)", "(1,)"),
    "b_2 that would broadcast": ({"b_2": b_2[None]}, "b_2", "(3,)", "(1, 3)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_weights_that_do_not_fit_are_refused(case: str) -> None:
    changed, name, wanted, found = WRONG[case]
    parts: dict[str, Any] = {"W_1": W_1, "W_2": W_2, "b_1": b_1, "b_2": b_2} | changed
    for call in (
        lambda: feed_forward(np.ones((2, 3)), **parts),
        lambda: feed_forward_backward(np.ones((2, 3)), np.ones((2, 3)), **parts),
    ):
        with pytest.raises(ShapeError) as caught:
            call()
        for text in (caught.value.text("en"), caught.value.text("zh")):
            assert text.startswith(name)
            assert wanted in text
            assert found in text
            assert "weight.T" in text


def test_gated_weights_that_do_not_fit_are_refused() -> None:
    x = np.ones((2, 3))
    for weights, name in (
        ((W_1.T, W_up, W_2), "W_gate"),
        ((W_1, W_up[:, :1], W_2), "W_up"),
        ((W_1, W_up, W_2.T), "W_down"),
    ):
        for call in (
            lambda w=weights: gated_feed_forward(x, *w),
            lambda w=weights: gated_feed_forward_backward(x, x, *w),
        ):
            with pytest.raises(ShapeError, match=f"^{name} must have shape"):
                call()


@pytest.mark.parametrize("shape", [(), (2, 0)])
def test_x_needs_a_width(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="x needs a last axis of at least one number"):
        feed_forward(np.ones(shape), W_1, W_2)


def test_a_gradient_of_another_shape_is_refused() -> None:
    x = np.ones((2, 3))
    with pytest.raises(ShapeError, match=r"grad_output must have shape \(2, 3\); found \(1, 3\)"):
        feed_forward_backward(x[:1], x, W_1, W_2)
    with pytest.raises(ShapeError, match=r"grad_output must have shape \(2, 3\); found \(1, 3\)"):
        gated_feed_forward_backward(x[:1], x, W_1, W_up, W_2)
