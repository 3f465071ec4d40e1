"""Calls and known mistakes of `split-heads`: all sizes differ, so that no other axis order fits."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(B: int, T: int, d_model: int, n_heads: int, about: str = "") -> Call:
        return call("split_heads", numbers(rng, B, T, d_model), n_heads, about=about)

    return [
        drawn(2, 4, 6, 2),
        drawn(1, 5, 6, 3, about="one-sample"),
        drawn(2, 3, 9, 3, about="same-sizes"),  # a wrong axis order has the right shape here
        drawn(3, 2, 4, 1, about="one-head"),
        drawn(2, 3, 4, 4, about="one-wide"),
        drawn(2, 1, 6, 3, about="one-position"),
        drawn(3, 3, 9, 3, about="all-the-same"),
        drawn(5, 7, 6, 2, about="all-different"),
    ]


PARTS = "x.reshape(B, T, n_heads, d_model // n_heads)"
RETURN = "parts.transpose(0, 2, 1, 3)"

MISTAKES = (
    Mistake("by-reshape", ((RETURN, "x.reshape(B, n_heads, T, d_model // n_heads)"),)),
    Mistake(
        "interleaved",
        ((PARTS, "x.reshape(B, T, d_model // n_heads, n_heads)"), (RETURN, "parts.transpose(0, 3, 1, 2)")),
    ),
    Mistake("heads-behind", ((RETURN, "parts"),)),
    Mistake("heads-first", ((RETURN, "parts.transpose(2, 0, 1, 3)"),)),
    Mistake("positions-last", ((RETURN, "parts.transpose(0, 2, 3, 1)"),)),
    Mistake("width-for-heads", ((PARTS, "x.reshape(B, T, d_model // n_heads, n_heads)"),)),
    Mistake("heads-in-batch", ((RETURN, f"{RETURN}.reshape(B * n_heads, T, d_model // n_heads)"),)),
    Mistake("batch-and-positions", ((RETURN, "parts.transpose(1, 2, 0, 3)"),)),
    Mistake("heads-reversed", ((RETURN, f"{RETURN}[:, ::-1]"),)),
    Mistake("every-head-first", ((RETURN, f"np.repeat({RETURN}[:, :1], n_heads, axis=1)"),)),
    Mistake("every-head-all", ((RETURN, "np.repeat(x[:, None], n_heads, axis=1)"),)),
    Mistake("not-split", ((RETURN, "x"),)),
    Mistake("rounded", ((RETURN, f"np.round({RETURN}, 1)"),)),
    Mistake("mutates-input", ((PARTS, f"{PARTS}.copy()\n    x[:] = 0"),)),
    Mistake("hard-coded", ((RETURN, "np.array([[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]])"),)),
)

GRADER = Grader(cases, MISTAKES)
