"""Calls and known mistakes of `gelu-feed-forward`: each factor of GELU, other activations, and numbers around ±1000."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(front: tuple[int, ...], d_model: int, d_ff: int, about: str = "") -> Call:
        W_1, W_2 = numbers(rng, d_model, d_ff), numbers(rng, d_ff, d_model)
        b_1, b_2 = numbers(rng, d_ff), numbers(rng, d_model)
        return call("gelu_feed_forward", numbers(rng, *front, d_model), W_1, b_1, W_2, b_2, about=about)

    def whole(shape: tuple[int, ...]) -> np.ndarray:
        return rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], shape)

    def between(values: Sequence[float], about: str) -> Call:
        """Exactly these numbers before GELU, at every position."""
        W_1 = np.array([values, values])
        W_2, b_2 = whole((len(values), 2)), whole((2,))
        return call("gelu_feed_forward", np.eye(2), W_1, np.zeros(len(values)), W_2, b_2, about=about)

    return [
        drawn((3,), 2, 5),
        drawn((2, 4), 3, 5, about="batch"),
        drawn((4,), 3, 3, about="square-weights"),  # here a transposed or swapped weight raises no error
        drawn((1,), 4, 6, about="one-position"),
        drawn((5,), 4, 2, about="narrow"),
        drawn((3, 3), 3, 3, about="all-the-same"),
        drawn((5, 4), 3, 7, about="all-different"),
        between((0.0, 1.5, -1.5), "zeros"),
        between((-0.5, -1.0, -2.0, -3.0), "negative"),
        between((2.0, 2.5, 3.0, 3.5), "positive"),
        between((1000.0, 1.0, 30.0, 8.0), "high"),
        between((-1000.0, 1.0, -30.0, -8.0), "low"),
    ]


FIRST = "h = x @ W_1 + b_1"
INNER = "inner = np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)"
HIDDEN = "hidden = h / 2 * (1 + np.tanh(inner))"
RETURN = "return hidden @ W_2 + b_2"
GELU = "def gelu(h):\n    return h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))\n"
ERF = "import math\n\nimport numpy as np\n\nerf = np.vectorize(math.erf)\n"
BOTH = "import numpy as np"

MISTAKES = (
    Mistake("relu", ((HIDDEN, "hidden = np.maximum(h, 0)"),)),
    Mistake("exact", ((BOTH, ERF), (HIDDEN, "hidden = h / 2 * (1 + erf(h / np.sqrt(2)))"))),
    Mistake("sigmoid-form", ((HIDDEN, "hidden = h * (1 + np.tanh(1.702 * h / 2)) / 2"),)),
    Mistake("silu", ((HIDDEN, "hidden = h * (1 + np.tanh(h / 2)) / 2"),)),
    Mistake("tanh", ((HIDDEN, "hidden = np.tanh(h)"),)),
    Mistake("no-activation", ((HIDDEN, "hidden = h"),)),
    Mistake("no-half", ((HIDDEN, "hidden = h * (1 + np.tanh(inner))"),)),
    Mistake("no-one", ((HIDDEN, "hidden = h / 2 * np.tanh(inner)"),)),
    Mistake("no-h", ((HIDDEN, "hidden = (1 + np.tanh(inner)) / 2"),)),
    Mistake("wrong-sign", ((HIDDEN, "hidden = h / 2 * (1 - np.tanh(inner))"),)),
    Mistake("no-cube", ((INNER, "inner = np.sqrt(2 / np.pi) * h"),)),
    Mistake("square", ((INNER, "inner = np.sqrt(2 / np.pi) * (h + 0.044715 * h**2)"),)),
    Mistake("cube-subtracted", ((INNER, "inner = np.sqrt(2 / np.pi) * (h - 0.044715 * h**3)"),)),
    Mistake("cube-of-both", ((INNER, "inner = np.sqrt(2 / np.pi) * (h + (0.044715 * h) ** 3)"),)),
    Mistake("cube-outside", ((INNER, "inner = np.sqrt(2 / np.pi) * h + 0.044715 * h**3"),)),
    Mistake("wrong-root", ((INNER, "inner = np.sqrt(2 * np.pi) * (h + 0.044715 * h**3)"),)),
    Mistake("wrong-root", ((INNER, "inner = 2 / np.pi * (h + 0.044715 * h**3)"),)),
    Mistake("wrong-root", ((INNER, "inner = np.sqrt(2) / np.pi * (h + 0.044715 * h**3)"),)),
    Mistake("wrong-root", ((INNER, "inner = np.sqrt(np.pi / 2) * (h + 0.044715 * h**3)"),)),
    *(Mistake("wrong-constant", (("0.044715", other),)) for other in ("0.44715", "0.0044715", "0.04715", "0.004715")),
    Mistake("no-root", ((INNER, "inner = h + 0.044715 * h**3"),)),
    Mistake(
        "at-the-end",
        ((BOTH, f"{BOTH}\n\n\n{GELU}"), (HIDDEN, "hidden = h"), (RETURN, f"{RETURN[:7]}gelu({RETURN[7:]})")),
    ),
    Mistake("twice", ((BOTH, f"{BOTH}\n\n\n{GELU}"), (RETURN, f"{RETURN[:7]}gelu({RETURN[7:]})"))),
    Mistake("on-input", ((BOTH, f"{BOTH}\n\n\n{GELU}"), (FIRST, "h = gelu(x) @ W_1 + b_1"), (HIDDEN, "hidden = h"))),
    Mistake("before-bias", ((BOTH, f"{BOTH}\n\n\n{GELU}"), (HIDDEN, "hidden = gelu(x @ W_1) + b_1"))),
    Mistake("no-first-bias", ((FIRST, "h = x @ W_1"),)),
    Mistake("no-second-bias", ((RETURN, "return hidden @ W_2"),)),
    Mistake("no-biases", ((FIRST, "h = x @ W_1"), (RETURN, "return hidden @ W_2"))),
    Mistake("transposed-weights", (("W_1 +", "W_1.T +"), ("W_2 +", "W_2.T +"))),
    Mistake("weights-swapped", ((FIRST, "h = x @ W_2 + b_2"), (RETURN, "return hidden @ W_1 + b_1"))),
    Mistake("residual", ((RETURN, "return x + hidden @ W_2 + b_2"),)),
    Mistake("first-half", ((RETURN, "return hidden"),)),
    Mistake("returns-input", ((RETURN, "return x"),)),
    Mistake("overflows", ((HIDDEN, "e = np.exp(2 * inner)\n    hidden = h / 2 * (1 + (e - 1) / (e + 1))"),)),
    Mistake(
        "overflows",
        ((HIDDEN, "up, down = np.exp(inner), np.exp(-inner)\n    hidden = h / 2 * (1 + (up - down) / (up + down))"),),
    ),
    Mistake(
        "nan-made-zero",
        ((HIDDEN, "e = np.exp(2 * inner)\n    hidden = np.nan_to_num(h / 2 * (1 + (e - 1) / (e + 1)))"),),
    ),
    *(Mistake("cut-off", ((FIRST, f"{FIRST}\n    h = np.clip(h, -{most}, {most})"),)) for most in (10, 20, 50, 100)),
    Mistake("rounded", ((RETURN, "return np.round(hidden @ W_2 + b_2, 2)"),)),
    Mistake("mutates-input", ((RETURN, "out = hidden @ W_2 + b_2\n    x[:] = 0\n    return out"),)),
    Mistake("hard-coded", ((RETURN, "return np.array([[9.7531, -1.2469]])"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
