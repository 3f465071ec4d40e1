"""The deep stack of lesson 7: every backward pass against finite differences."""

import numpy as np
import pytest

from regard.course.drawings.lesson_07 import STYLES, Style, _backward, _forward, _layer, stack_gradients


@pytest.mark.parametrize("part", ["attention", "feed-forward"])
@pytest.mark.parametrize("style", STYLES)
def test_the_gradient_of_a_sub_layer(style: Style, part: str) -> None:
    random = np.random.default_rng(1)
    layer, x = _layer(random, 8), random.normal(size=(3, 8))
    gradient, direction = random.normal(size=(2, 3, 8))
    found, _ = _backward(style, part, gradient, x, layer)
    above, below = (_forward(style, part, x + sign * 1e-6 * direction, layer) for sign in (1, -1))
    assert np.isclose((found * direction).sum(), (gradient * (above - below)).sum() / 2e-6, rtol=1e-5)


def test_residuals_and_norms_together_keep_the_gradient() -> None:
    first = {style: stack_gradients(style).inputs[0] for style in STYLES}
    assert first["neither"] < 1e-6
    assert first["no norm"] > 1e4
    assert 0.1 < first["post-norm"] < 10
    assert 0.1 < first["pre-norm"] < 10
