"""Calls and known mistakes of `feed-forward`: position of the activation and the biases, with and without a batch."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(front: tuple[int, ...], d_model: int, d_ff: int, about: str = "") -> Call:
        W_1, W_2 = numbers(rng, d_model, d_ff), numbers(rng, d_ff, d_model)
        b_1, b_2 = numbers(rng, d_ff), numbers(rng, d_model)
        return call("feed_forward", numbers(rng, *front, d_model), W_1, b_1, W_2, b_2, about=about)

    def whole(shape: tuple[int, ...]) -> np.ndarray:
        return rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], shape)

    return [
        drawn((3,), 2, 5),
        drawn((2, 4), 3, 5, about="batch"),
        drawn((4,), 3, 3, about="square-weights"),  # here a transposed or swapped weight raises no error
        drawn((1,), 4, 6, about="one-position"),
        drawn((5,), 4, 2, about="narrow"),
        call("feed_forward", 10 * whole((3, 2)), whole((2, 4)), whole((4,)), whole((4, 2)), whole((2,)), about="large"),
        call(
            "feed_forward", whole((3, 2)) / 1000, whole((2, 4)), np.zeros(4), whole((4, 2)), np.zeros(2), about="faint"
        ),
        drawn((3, 3), 3, 3, about="all-the-same"),
        drawn((5, 4), 3, 7, about="all-different"),
        call("feed_forward", np.eye(3), -np.eye(3), np.ones(3), whole((3, 3)), whole((3,)), about="zeros"),
        call("feed_forward", np.eye(2), np.full((2, 3), -2.0), np.ones(3), whole((3, 2)), whole((2,)), about="bent"),
    ]


FIRST = "x @ W_1 + b_1"
ACTIVATION = "np.maximum(hidden, 0)"
RETURN = "return hidden @ W_2 + b_2"
EXACT_GELU = """import math

import numpy as np

gelu = np.vectorize(lambda h: h * (1 + math.erf(h / math.sqrt(2))) / 2)
"""

MISTAKES = (
    Mistake("no-relu", ((ACTIVATION, "hidden"),)),
    Mistake("relu-at-the-end", ((ACTIVATION, "hidden"), (RETURN, "return np.maximum(hidden @ W_2 + b_2, 0)"))),
    Mistake("relu-twice", ((RETURN, "return np.maximum(hidden @ W_2 + b_2, 0)"),)),
    Mistake("relu-on-input", ((FIRST, "np.maximum(x, 0) @ W_1 + b_1"), (ACTIVATION, "hidden"))),
    Mistake("relu-before-bias", ((FIRST, "np.maximum(x @ W_1, 0) + b_1"), (ACTIVATION, "hidden"))),
    Mistake("minimum", ((ACTIVATION, "np.minimum(hidden, 0)"),)),
    Mistake("absolute", ((ACTIVATION, "np.abs(hidden)"),)),
    *(
        Mistake("leaky", ((ACTIVATION, f"np.where(hidden > 0, hidden, {slope} * hidden)"),))
        for slope in (0.01, 0.05, 0.1, 0.2)
    ),
    Mistake("elu", ((ACTIVATION, "np.where(hidden > 0, hidden, np.exp(hidden) - 1)"),)),
    Mistake("clipped", ((ACTIVATION, "np.clip(hidden, 0, 6)"),)),
    Mistake(
        "gelu", ((ACTIVATION, "0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))"),)
    ),
    Mistake("gelu", (("import numpy as np", EXACT_GELU), (ACTIVATION, "gelu(hidden)"))),
    Mistake("gelu", ((ACTIVATION, "hidden / (1 + np.exp(-1.702 * hidden))"),)),
    Mistake("squared", ((ACTIVATION, "np.maximum(hidden, 0) ** 2"),)),
    Mistake("silu", ((ACTIVATION, "hidden / (1 + np.exp(-hidden))"),)),
    Mistake("softplus", ((ACTIVATION, "np.log1p(np.exp(hidden))"),)),
    Mistake("sigmoid", ((ACTIVATION, "1 / (1 + np.exp(-hidden))"),)),
    Mistake("tanh", ((ACTIVATION, "np.tanh(hidden)"),)),
    Mistake("step", ((ACTIVATION, "(hidden > 0) * 1.0"),)),
    Mistake("no-first-bias", ((FIRST, "x @ W_1"),)),
    Mistake("no-second-bias", ((RETURN, "return hidden @ W_2"),)),
    Mistake("no-biases", ((FIRST, "x @ W_1"), (RETURN, "return hidden @ W_2"))),
    Mistake("transposed-weights", (("W_1 +", "W_1.T +"), ("W_2 +", "W_2.T +"))),
    Mistake("weights-swapped", ((FIRST, "x @ W_2 + b_2"), (RETURN, "return hidden @ W_1 + b_1"))),
    Mistake("residual", ((RETURN, "return x + hidden @ W_2 + b_2"),)),
    Mistake("first-half", ((RETURN, "return hidden"),)),
    Mistake("returns-input", ((RETURN, "return x"),)),
    Mistake("rounded", ((RETURN, "return np.round(hidden @ W_2 + b_2, 2)"),)),
    Mistake("mutates-input", ((RETURN, "out = hidden @ W_2 + b_2\n    x[:] = 0\n    return out"),)),
    Mistake("hard-coded", ((RETURN, "return np.array([[11.5, 0.5]])"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
