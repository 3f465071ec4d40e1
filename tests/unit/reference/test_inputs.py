"""Every public function that takes arrays also takes lists and tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard import reference as R
from regard.errors import ShapeError
from regard.records import See

I = [[1.0, 0.5], [0.25, 1.0]]  # noqa: E741
ONES = [1.0, 2.0]
HERE = [0, 1]
TABLE = [[0.0], [1.0], [2.0], [3.0]]
SEEN = [[True, False], [True, True]]
WIDE = [[0.5] * 8, [-0.5] * 8]

Maker = Callable[[Any], Any]
CALLS: dict[str, Callable[[Maker], Any]] = {
    "additive_attention": lambda to: R.additive_attention(to(I), to(I), to(I), to(I), to(I), to(ONES), to(SEEN)),
    "additive_attention_backward": lambda to: R.additive_attention_backward(
        to(I), to(I), to(I), to(I), to(I), to(I), to(ONES), to(SEEN)
    ),
    "elman": lambda to: R.elman(to([I]), to([ONES]), to(I), to(I), to(ONES), to(ONES)),
    "elman_backward": lambda to: R.elman_backward(to([I]), to([I]), to([ONES]), to(I), to(I), to(ONES), to(ONES)),
    "elman_cell": lambda to: R.elman_cell(to(I), to(I), to(I), to(I), to(ONES), to(ONES)),
    "elman_cell_backward": lambda to: R.elman_cell_backward(to(I), to(I), to(I), to(I), to(I), to(ONES), to(ONES)),
    "lstm": lambda to: R.lstm(to([I]), to([ONES]), to([ONES]), to(WIDE), to(WIDE), to(WIDE[0]), to(WIDE[0])),
    "lstm_backward": lambda to: R.lstm_backward(
        to([I]), to([I]), to([ONES]), to([ONES]), to(WIDE), to(WIDE), to(WIDE[0]), to(WIDE[0])
    ),
    "lstm_cell": lambda to: R.lstm_cell(to(I), to(I), to(I), to(WIDE), to(WIDE), to(WIDE[0]), to(WIDE[0])),
    "lstm_cell_backward": lambda to: R.lstm_cell_backward(
        to(I), to(I), to(I), to(I), to(I), to(WIDE), to(WIDE), to(WIDE[0]), to(WIDE[0])
    ),
    "multiplicative_attention": lambda to: R.multiplicative_attention(to(I), to(I), to(I), to(I), to(SEEN)),
    "multiplicative_attention_backward": lambda to: R.multiplicative_attention_backward(
        to(I), to(I), to(I), to(I), to(I), to(SEEN)
    ),
    "alibi_bias": lambda to: R.alibi_bias(1, 2, 2, like=to(I)),
    "alibi_bias_at": lambda to: R.alibi_bias_at(1, to(HERE), to(HERE)),
    "alibi_slopes": lambda to: R.alibi_slopes(2, like=to(I)),
    "attention_scores": lambda to: R.attention_scores(to(I), to(I), to(SEEN), bias=to(I)),
    "distance": lambda to: R.distance(to(I)),
    "max_score": lambda to: R.max_score(to(I)),
    "entropy": lambda to: R.entropy(to(I)),
    "feed_forward": lambda to: R.feed_forward(to(I), to(I), to(I), to(ONES), b_2=to(ONES)),
    "feed_forward_backward": lambda to: R.feed_forward_backward(to(I), to(I), to(I), to(I), to(ONES), to(ONES)),
    "gated_feed_forward": lambda to: R.gated_feed_forward(to(I), to(I), to(I), to(I)),
    "gated_feed_forward_backward": lambda to: R.gated_feed_forward_backward(*[to(I)] * 5),
    "gelu": lambda to: R.gelu(to(I)),
    "gelu_backward": lambda to: R.gelu_backward(to(I), to(I)),
    "layer_norm": lambda to: R.layer_norm(to(I), to(ONES), bias=to(ONES)),
    "layer_norm_backward": lambda to: R.layer_norm_backward(to(I), to(I), to(ONES), to(ONES)),
    "learned_at": lambda to: R.learned_at(to(I), to(HERE)),
    "learned_positions": lambda to: R.learned_positions(to(I), 2),
    "linear": lambda to: R.linear(to(I), to(I), to(ONES)),
    "log_sum_exp": lambda to: R.log_sum_exp(to(I)),
    "merge_heads": lambda to: R.merge_heads(to([I])),
    "multi_head_attention": lambda to: R.multi_head_attention(to(I), to(I), to(I), projections(to), 2),
    "multi_head_attention_backward": lambda to: R.multi_head_attention_backward(
        to(I), to(I), to(I), to(I), projections(to), 2
    ),
    "pooled_map": lambda to: R.pooled_map(to(I), 1),
    "received": lambda to: R.received(to(I)),
    "relative_bias": lambda to: R.relative_bias(to(TABLE), 2, 2),
    "relative_bias_at": lambda to: R.relative_bias_at(to(TABLE), to(HERE), to(HERE)),
    "relu": lambda to: R.relu(to(I)),
    "relu_backward": lambda to: R.relu_backward(to(I), to(I)),
    "rms_norm": lambda to: R.rms_norm(to(I), to(ONES)),
    "rms_norm_backward": lambda to: R.rms_norm_backward(to(I), to(I), to(ONES)),
    "rotary_angles": lambda to: R.rotary_angles(to(HERE), 2),
    "rotary_frequencies": lambda to: R.rotary_frequencies(2, like=to(I)),
    "rotations_at": lambda to: R.rotations_at(to(HERE), 2, like=to(I)),
    "rotate": lambda to: R.rotate(to(I), to(HERE)),
    "scaled_dot_product_attention": lambda to: R.scaled_dot_product_attention(to(I), to(I), to(I), mask=to(SEEN)),
    "scaled_dot_product_attention_backward": lambda to: R.scaled_dot_product_attention_backward(*[to(I)] * 4),
    "silu": lambda to: R.silu(to(I)),
    "silu_backward": lambda to: R.silu_backward(to(I), to(I)),
    "sink": lambda to: R.sink(to(I)),
    "sinusoidal_at": lambda to: R.sinusoidal_at(to(HERE), 2),
    "sinusoidal_positions": lambda to: R.sinusoidal_positions(2, 2, like=to(I)),
    "softmax": lambda to: R.softmax(to(I)),
    "split_heads": lambda to: R.split_heads(to(I), 2),
    "statistics_of": lambda to: R.statistics_of(to(I), to(ONES), See(map=2, top=1)),
    "top_keys": lambda to: R.top_keys(to(I), 1, scores=to(I)),
    "apply_rotations": lambda to: R.apply_rotations(to(I), R.Rotations(to([[1.0], [0.0]]), to([[0.0], [1.0]]))),
}
NUMBERS_ALONE = {"relative_position_buckets"}


def projections(to: Maker) -> R.Projections:
    return R.Projections(to(I), to(I), to(I), to(I), b_q=to(ONES))


def leaf(x: Any) -> torch.Tensor:
    """A tensor that requires grad, if its dtype allows it."""
    made = torch.tensor(x)
    return made.double().requires_grad_() if made.is_floating_point() else made


def parts(x: Any) -> list[Any]:
    return [part for one in x for part in parts(one)] if isinstance(x, tuple) else [] if x is None else [x]


@pytest.mark.parametrize("name", CALLS)
def test_lists_and_tensors_give_the_same_arrays(name: str) -> None:
    right = parts(CALLS[name](np.array))
    for to in (list, leaf):
        found = parts(CALLS[name](to))
        for one, wanted in zip(found, right, strict=True):
            assert isinstance(one, np.ndarray | np.generic)
            assert one.dtype == wanted.dtype
            np.testing.assert_array_equal(one, wanted)


def test_every_function_is_tested() -> None:
    public = {name for name in R.__all__ if name.islower()}
    assert CALLS.keys() | NUMBERS_ALONE == public


@pytest.mark.parametrize("x", [[[1.0], [1.0, 2.0]], ["a", "b"], [None]], ids=["ragged", "words", "nothing"])
def test_an_argument_that_is_not_an_array_is_named(x: list[Any]) -> None:
    with pytest.raises(ShapeError, match="q cannot be made into an array"):
        R.scaled_dot_product_attention(x, I, v=I)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="v cannot be made into an array"):
        R.scaled_dot_product_attention(I, I, v=x)  # type: ignore[arg-type]


def test_bfloat16_becomes_float32() -> None:
    assert R.softmax(torch.zeros(2, dtype=torch.bfloat16)).dtype == np.float32  # type: ignore[arg-type]


def test_too_many_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        R.received(np.array(I), I)  # type: ignore[call-arg]
