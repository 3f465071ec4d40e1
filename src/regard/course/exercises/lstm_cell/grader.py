"""Calls and known mistakes of `lstm-cell`: the order of the gates, both biases, and gates of ±1000."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def step(B: int, D: int, H: int, about: str, **given: np.ndarray) -> Call:
        arguments = {
            "x": numbers(rng, B, D),
            "h": numbers(rng, B, H, spread=0.5),
            "c": numbers(rng, B, H),
            "W_ih": numbers(rng, 4 * H, D, spread=0.8),
            "W_hh": numbers(rng, 4 * H, H, spread=0.8),
            "b_ih": numbers(rng, 4 * H, spread=0.5),
            "b_hh": numbers(rng, 4 * H, spread=0.5),
        }
        return call("lstm_cell", *(arguments | given).values(), about=about)

    def gates(i: float, f: float, g: float, o: float, about: str, **given: np.ndarray) -> Call:
        """The same gates for all numbers: h is 0, and the weights of x too."""
        bias = np.repeat([i, f, g, o], 2)
        return step(2, 3, 2, about, h=np.zeros((2, 2)), W_ih=np.zeros((8, 3)), b_ih=bias, b_hh=np.zeros(8), **given)

    return [
        step(2, 3, 4, "plain"),
        step(1, 4, 2, "one-sample"),
        step(3, 2, 5, "all-different"),
        step(4, 4, 4, "all-the-same"),
        step(2, 3, 1, "one-wide"),
        step(2, 3, 4, "first", h=np.zeros((2, 4)), c=np.zeros((2, 4))),
        step(2, 3, 4, "large-state", c=numbers(rng, 2, 4, spread=20.0)),
        step(2, 3, 2, "no-input", x=np.zeros((2, 3))),
        gates(-1000.0, 1000.0, 1000.0, 1000.0, "keeps", c=rng.choice([-30.0, -12.0, 15.0, 25.0], (2, 2))),
        gates(1000.0, -1000.0, -1000.0, 1000.0, "overwrites"),
        gates(1000.0, 1000.0, 0.5, -1000.0, "silent"),
        gates(0.0, 0.0, 0.0, 0.0, "zeros"),
    ]


GATES = "gates = x @ W_ih.T + b_ih + h @ W_hh.T + b_hh"
SPLIT = "i, f, g, o = np.split(gates, 4, axis=-1)"
CELL = "c_new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)"
HIDDEN = "h_new = sigmoid(o) * np.tanh(c_new)"
RETURN = "return h_new, c_new"
SIGMOID = "return (1 + np.tanh(z / 2)) / 2"

MISTAKES = (
    Mistake("order-ifog", ((SPLIT, SPLIT.replace("i, f, g, o", "i, f, o, g")),)),
    Mistake("order-igfo", ((SPLIT, SPLIT.replace("i, f, g, o", "i, g, f, o")),)),
    Mistake("order-figo", ((SPLIT, SPLIT.replace("i, f, g, o", "f, i, g, o")),)),
    Mistake("order-fiog", ((SPLIT, SPLIT.replace("i, f, g, o", "f, i, o, g")),)),
    Mistake("order-iofg", ((SPLIT, SPLIT.replace("i, f, g, o", "i, o, f, g")),)),
    Mistake("interleaved-gates", ((SPLIT, "i, f, g, o = (gates[:, n::4] for n in range(4))"),)),
    Mistake("sigmoid-for-g", ((CELL, CELL.replace("np.tanh(g)", "sigmoid(g)")),)),
    Mistake("no-tanh-for-g", ((CELL, CELL.replace("np.tanh(g)", "g")),)),
    Mistake("tanh-for-gates", ((SIGMOID, "return np.tanh(z)"),)),
    Mistake("no-sigmoid", ((SIGMOID, "return z"),)),
    Mistake("relu-for-tanh", (("np.tanh(g)", "np.maximum(g, 0)"), ("np.tanh(c_new)", "np.maximum(c_new, 0)"))),
    Mistake("steep-sigmoid", ((SIGMOID, "return (1 + np.tanh(z)) / 2"),)),
    Mistake("no-tanh-of-c", ((HIDDEN, "h_new = sigmoid(o) * c_new"),)),
    Mistake("sigmoid-of-c", ((HIDDEN, "h_new = sigmoid(o) * sigmoid(c_new)"),)),
    Mistake("old-c", ((HIDDEN, "h_new = sigmoid(o) * np.tanh(c)"),)),
    Mistake("no-output-gate", ((HIDDEN, "h_new = np.tanh(c_new)"),)),
    Mistake("no-forget-gate", ((CELL, CELL.replace("sigmoid(f) * c", "c")),)),
    Mistake("no-input-gate", ((CELL, CELL.replace("sigmoid(i) * ", "")),)),
    Mistake("c-forgotten", ((CELL, "c_new = sigmoid(i) * np.tanh(g)"),)),
    Mistake("forgets-h", ((CELL, CELL.replace("sigmoid(f) * c", "sigmoid(f) * h")),)),
    Mistake("coupled", ((CELL, "c_new = sigmoid(f) * c + (1 - sigmoid(f)) * np.tanh(g)"),)),
    Mistake("forget-inverted", ((CELL, CELL.replace("sigmoid(f)", "(1 - sigmoid(f))")),)),
    Mistake("forget-bias-added", (("sigmoid(f)", "sigmoid(f + 1)"),)),
    Mistake("no-b-hh", ((GATES, GATES.replace(" + b_hh", "")),)),
    Mistake("no-b-ih", ((GATES, GATES.replace(" + b_ih", "")),)),
    Mistake("no-biases", ((GATES, "gates = x @ W_ih.T + h @ W_hh.T"),)),
    Mistake("no-h", ((GATES, "gates = x @ W_ih.T + b_ih + b_hh"),)),
    Mistake("no-x", ((GATES, "gates = b_ih + h @ W_hh.T + b_hh"),)),
    Mistake("c-for-h", ((GATES, GATES.replace("h @ W_hh", "c @ W_hh")),)),
    Mistake("returns-swapped", ((RETURN, "return c_new, h_new"),)),
    Mistake("returns-h-only", ((RETURN, "return h_new, h_new"),)),
    Mistake("returns-old-c", ((RETURN, "return h_new, c"),)),
    Mistake("residual", ((HIDDEN, f"{HIDDEN} + h"),)),
    Mistake("overflows", ((SIGMOID, "return np.exp(z) / (1 + np.exp(z))"),)),
    Mistake("mutates-input", ((CELL, "c *= sigmoid(f)\n    c += sigmoid(i) * np.tanh(g)\n    c_new = c"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
