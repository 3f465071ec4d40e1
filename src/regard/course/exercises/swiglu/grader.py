"""Calls and known mistakes of `swiglu`: which of the two products has the SiLU, and gates of ±1000."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(front: tuple[int, ...], d_model: int, d_ff: int, about: str = "") -> Call:
        x, W_gate, W_up = numbers(rng, *front, d_model), numbers(rng, d_model, d_ff), numbers(rng, d_model, d_ff)
        return call("swiglu", x, W_gate, W_up, numbers(rng, d_ff, d_model), about=about)

    def whole(*shape: int) -> np.ndarray:
        return rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], shape)

    def gated(gates: Sequence[float], about: str) -> Call:
        """A gate of exactly these numbers at every position."""
        W_gate = np.array([gates, gates])
        return call("swiglu", np.eye(2), W_gate, whole(2, len(gates)), whole(len(gates), 2), about=about)

    return [
        drawn((3,), 2, 5),
        drawn((2, 4), 3, 5, about="batch"),
        drawn((4,), 3, 3, about="square-weights"),  # here a transposed or swapped weight raises no error
        drawn((1,), 4, 6, about="one-position"),
        drawn((5,), 4, 2, about="narrow"),
        drawn((3, 3), 3, 3, about="all-the-same"),
        drawn((5, 4), 3, 7, about="all-different"),
        call("swiglu", 4 * whole(3, 2), whole(2, 4), whole(2, 4), whole(4, 2), about="large"),
        gated((0.0, 0.0, 1.5, -1.5), "zeros"),
        gated((-1.0, -2.0, -0.5), "negative-gates"),
        gated((1000.0, 1.0, 900.0), "high"),
        gated((-1000.0, -900.0, 1.0), "low"),
    ]


SIGMOID = "sigmoid = (1 + np.tanh(gate / 2)) / 2"
HIDDEN = "hidden = gate * sigmoid * up"
RETURN = "return hidden @ W_down"
SPLIT = "gate, up = x @ W_gate, x @ W_up"
EXACT_GELU = """import math

import numpy as np

gelu = np.vectorize(lambda h: h * (1 + math.erf(h / math.sqrt(2))) / 2)
"""
TANH_GELU = "0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))"
OF_PRODUCT = "hidden = gate * up\n    hidden = hidden * (1 + np.tanh(hidden / 2)) / 2"
AT_THE_END = "out = (gate * up) @ W_down\n    return out * (1 + np.tanh(out / 2)) / 2"

MISTAKES = (
    Mistake("gate-and-up-swapped", ((SPLIT, "gate, up = x @ W_up, x @ W_gate"),)),
    Mistake("sigmoid-gate", ((HIDDEN, "hidden = sigmoid * up"),)),
    Mistake("relu-gate", ((HIDDEN, "hidden = np.maximum(gate, 0) * up"),)),
    Mistake("gelu-gate", ((HIDDEN, f"hidden = {TANH_GELU} * up"),)),
    Mistake("gelu-gate", (("import numpy as np", EXACT_GELU), (HIDDEN, "hidden = gelu(gate) * up"))),
    Mistake("gelu-gate", (("np.tanh(gate / 2)", "np.tanh(1.702 * gate / 2)"),)),
    Mistake("tanh-gate", ((HIDDEN, "hidden = np.tanh(gate) * up"),)),
    Mistake("tanh-gate", ((HIDDEN, "hidden = gate * np.tanh(gate) * up"),)),
    Mistake("softplus-gate", ((HIDDEN, "hidden = np.logaddexp(0, gate) * up"),)),
    Mistake(
        "softmax-gate",
        ((HIDDEN, "e = np.exp(gate - gate.max(-1, keepdims=True))\n    hidden = e / e.sum(-1, keepdims=True) * up"),),
    ),
    Mistake("no-activation", ((HIDDEN, "hidden = gate * up"),)),
    Mistake("silu-of-both", ((HIDDEN, f"{HIDDEN} * (1 + np.tanh(up / 2)) / 2"),)),
    Mistake("silu-of-product", ((HIDDEN, OF_PRODUCT),)),
    Mistake("silu-at-the-end", ((RETURN, AT_THE_END),)),
    Mistake("wrong-sign", (("np.tanh(gate / 2)", "np.tanh(-gate / 2)"),)),
    Mistake("half-the-slope", (("np.tanh(gate / 2)", "np.tanh(gate)"),)),
    Mistake("added", ((HIDDEN, "hidden = gate * sigmoid + up"),)),
    Mistake("no-up", ((HIDDEN, "hidden = gate * sigmoid"),)),
    Mistake("no-gate", ((HIDDEN, "hidden = up"),)),
    Mistake("silu-of-up-alone", ((HIDDEN, "hidden = up * (1 + np.tanh(up / 2)) / 2"),)),
    Mistake("gate-from-input", ((HIDDEN, "hidden = gate * sigmoid * gate"),)),
    Mistake("no-down", ((RETURN, "return hidden"),)),
    Mistake("transposed-weights", (("W_gate,", "W_gate.T,"), ("x @ W_up", "x @ W_up.T"), ("@ W_down", "@ W_down.T"))),
    Mistake("residual", ((RETURN, "return x + hidden @ W_down"),)),
    Mistake("returns-input", ((RETURN, "return x"),)),
    Mistake("overflows", ((SIGMOID, "sigmoid = np.exp(gate) / (1 + np.exp(gate))"),)),
    Mistake("nan-made-zero", ((SIGMOID, "sigmoid = np.nan_to_num(np.exp(gate) / (1 + np.exp(gate)))"),)),
    *(
        Mistake("cut-off", ((SPLIT, f"{SPLIT}\n    gate = np.clip(gate, -{most}, {most})"),))
        for most in (10, 20, 50, 100, 500)
    ),
    Mistake("rounded", ((RETURN, "return np.round(hidden @ W_down, 2)"),)),
    Mistake("mutates-input", ((RETURN, "out = hidden @ W_down\n    x[:] = 0\n    return out"),)),
    Mistake("hard-coded", ((RETURN, "return np.array([[4.3864, -0.2384]])"),)),
    Mistake("hard-swish", ((HIDDEN, "hidden = gate * np.clip(gate + 3, 0, 6) / 6 * up"),)),
    Mistake(
        "silu-of-input",
        (
            (SPLIT, "s = x * (1 + np.tanh(x / 2)) / 2\n    gate, up = s @ W_gate, x @ W_up"),
            (HIDDEN, "hidden = gate * up"),
        ),
    ),
    Mistake("down-twice", ((RETURN, "return ((gate * sigmoid) @ W_down) * (up @ W_down)"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
