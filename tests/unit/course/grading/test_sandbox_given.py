"""The softmax that an answer may import: equal to ours, and the only module available."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from deep_learning.activations import softmax
from regard.course.catalogue import exercise
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import SOFTMAX
from regard.messages import use_language

SPACE: dict[str, Any] = {}
exec(SOFTMAX, SPACE)

NUMBERS = st.floats(-1e4, 1e4) | st.just(-np.inf)
SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, max_side=4)


@given(arrays.arrays(float, SHAPES, elements=NUMBERS), st.data())
def test_the_provided_softmax_equals_ours(x: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    np.testing.assert_allclose(SPACE["softmax"](x, axis), softmax(x, axis), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(SPACE["softmax"](x.tolist()), softmax(x), rtol=1e-12, atol=1e-300)


def test_both_refuse_an_axis_out_of_range() -> None:
    for each in (softmax, SPACE["softmax"]):
        with pytest.raises(ValueError, match="axis"):
            each(np.zeros((2, 3)), 2)


WHOLE = "import numpy as np\n{}\n\n\ndef simple_attention(Q, K, V):\n    {}\n"
BODY = "return {}(np.dot(Q, K.T) / np.sqrt(K.shape[-1]), axis=-1) @ V"


@pytest.mark.parametrize(
    ("above", "inside"),
    [
        ("from deep_learning.activations import softmax", BODY.format("softmax")),
        ("", "from deep_learning.activations import softmax\n    " + BODY.format("softmax")),
        ("import deep_learning.activations", BODY.format("deep_learning.activations.softmax")),
        ("from deep_learning import activations as act", BODY.format("act.softmax")),
    ],
)
def test_answers_that_import_it_pass(above: str, inside: str) -> None:
    verdict = grade(exercise("simple-attention"), WHOLE.format(above, inside))
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize(
    ("above", "inside"),
    [
        ("from deep_learning.attention import scaled_dot_product_attention as f", "return f(Q, K, V)[0]"),
        ("import deep_learning", "return deep_learning.attention.scaled_dot_product_attention(Q, K, V)[0]"),
        ("from deep_learning import attention", "return attention.scaled_dot_product_attention(Q, K, V)[0]"),
        ("import deep_learning.activations as act", "return act.reference.scaled_dot_product_attention(Q, K, V)[0]"),
        ("from regard.reference import softmax", BODY.format("softmax")),
        ("import regard", "return regard.attend(Q, K, V)"),
    ],
)
def test_all_other_own_modules_are_refused(above: str, inside: str) -> None:
    verdict = grade(exercise("simple-attention"), WHOLE.format(above, inside))
    assert (verdict.passed, verdict.mistake) == (False, "refused")
    assert "deep_learning.activations" in str(verdict.diagnosis)  # the allowed module is named
    with use_language("zh"):
        assert "softmax" in str(grade(exercise("simple-attention"), WHOLE.format(above, inside)).diagnosis)


def test_the_softmax_exercise_does_not_provide_softmax() -> None:
    verdict = grade(exercise("softmax"), "from deep_learning.activations import softmax")
    assert (verdict.passed, verdict.mistake) == (False, "refused")
