"""The NumPy exercises of lessons 2 to 6: their solutions equal `regard.reference`.

Stubs, right answers and mistakes of all exercises are tested in test_exercises.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from deep_learning import attention as documents
from deep_learning.activations import softmax
from regard import Mask, reference
from regard.course.catalogue import exercise
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.generation import Sampling
from regard.layer_checks import Projections


def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    return reference.scaled_dot_product_attention(Q, K, V)[0]


def heads_without_weights(Q: np.ndarray, K: np.ndarray, V: np.ndarray, n_heads: int) -> np.ndarray:
    same = Projections(*[np.eye(Q.shape[-1])] * 4)
    return reference.multi_head_attention(Q[None], K[None], V[None], same, n_heads)[0][0]


def drawn_from(
    logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    top_k = None if top_k is None else min(top_k, len(logits))
    return Sampling(temperature=temperature, top_k=top_k, top_p=top_p).probabilities(logits)


JUDGES: dict[str, dict[str, Callable[..., Any]]] = {
    "sampling": {
        "next_probabilities": drawn_from,
        "pick": lambda p, u: next(at for at, end in enumerate(np.cumsum(p)) if u < end),
    },
    "softmax": {"softmax": softmax},
    "simple-attention": {"simple_attention": attend},
    "self-attention": {
        "compute_qkv": lambda X, *weights: tuple(reference.linear(X, W) for W in weights),
        "self_attention": attend,
    },
    "multi-head-attention": {"multi_head_attention": heads_without_weights},
    "scaled-dot-product": {"scaled_dot_product_attention": reference.scaled_dot_product_attention},
    "causal-mask": {"create_causal_mask": documents.create_causal_mask},
    "padding-mask": {"create_padding_mask": documents.create_padding_mask},
    "split-heads": {"split_heads": reference.split_heads},
    "merge-heads": {"merge_heads": reference.merge_heads},
    "positional-encoding": {"positional_encoding": reference.sinusoidal_positions},
    "alibi": {"alibi_slopes": reference.alibi_slopes, "alibi_bias": reference.alibi_bias},
    "sliding-window": {"sliding_window_mask": lambda T, S, window: Mask.window(window - 1, 0).dense(T, S)},
    "layer-norm": {"layer_norm": lambda x, gamma, beta, eps=1e-5: reference.layer_norm(x, gamma, beta, eps)},
    "rms-norm": {"rms_norm": reference.rms_norm},
    "feed-forward": {"feed_forward": lambda x, W_1, b_1, W_2, b_2: reference.feed_forward(x, W_1, W_2, b_1, b_2)},
    "gelu-feed-forward": {
        "gelu_feed_forward": lambda x, W_1, b_1, W_2, b_2: reference.feed_forward(x, W_1, W_2, b_1, b_2, "gelu_tanh")
    },
    "swiglu": {"swiglu": reference.gated_feed_forward},
    "cross-attention": {
        "cross_attention": lambda x, memory, W_q, W_k, W_v: attend(x @ W_q, memory @ W_k, memory @ W_v)
    },
}


@pytest.mark.parametrize("name", JUDGES)
def test_the_solution_equals_the_reference(name: str) -> None:
    tried = exercise(name)
    assert tried.grader is not None
    for seed in range(5):
        calls = tried.grader.cases(np.random.default_rng(seed))
        answers = in_process(tried.solution, calls, "numpy").answers
        for call, answer in zip(calls, answers, strict=True):
            expected = JUDGES[name][call.target](*call.args, **call.kwargs)
            pairs = (
                zip(expected, answer.value, strict=True) if isinstance(expected, tuple) else [(expected, answer.value)]
            )
            for right, given in pairs:
                assert_close(given, right, "output", dtype="float64")


@pytest.mark.parametrize("name", ["simple-attention", "self-attention", "scaled-dot-product", "multi-head-attention"])
def test_the_softmax_of_plain_calls_is_not_saturated(name: str) -> None:
    """With a saturated softmax a missing scale would not be detected."""
    tried = exercise(name)
    assert tried.grader is not None
    for seed in range(20):
        Q, K, *_ = next(
            call.args for call in tried.grader.cases(np.random.default_rng(seed)) if call.target != "compute_qkv"
        )
        assert np.median(softmax(Q @ K.T / np.sqrt(Q.shape[-1])).max(axis=-1)) < 0.9


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("softmax", "def softmax(x, axis):\n    import numpy as np\n    return np.ones_like(x) / x.shape[axis]"),
        ("simple-attention", "def simple_attention(Q, K, V):\n    return (Q @ K.T) @ V"),
        ("causal-mask", "import numpy as np\ndef create_causal_mask(n):\n    return np.full((n, n), -np.inf)"),
        ("split-heads", "def split_heads(x, n):\n    return x.reshape(len(x), n, -1, x.shape[2] // n)[..., ::-1]"),
        ("layer-norm", "def layer_norm(x, g, b, eps=1e-5):\n    return g * (x / x.std(-1, keepdims=True)) + b"),
        ("feed-forward", "def feed_forward(x, W, b, U, c):\n    return (x @ W + b).clip(0, 6) @ U + c"),
    ],
)
def test_wrong_programs_without_a_known_mistake_fail_too(name: str, source: str) -> None:
    assert not grade(exercise(name), source, run=in_process).passed
