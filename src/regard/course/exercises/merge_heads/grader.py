"""Calls and known mistakes of `merge-heads`: the inverse of splitting, with sizes that fit no other axis order."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(B: int, H: int, T: int, E: int, about: str = "") -> Call:
        return call("merge_heads", numbers(rng, B, H, T, E), about=about)

    return [
        drawn(2, 3, 4, 2),
        drawn(1, 2, 5, 3, about="one-sample"),
        drawn(2, 3, 3, 3, about="same-sizes"),  # a wrong axis order has the right shape here
        drawn(3, 1, 2, 4, about="one-head"),
        drawn(2, 4, 3, 1, about="one-wide"),
        drawn(2, 3, 1, 2, about="one-position"),
        drawn(3, 3, 3, 3, about="all-the-same"),
        drawn(5, 2, 7, 3, about="all-different"),
    ]


TURNED = "x.transpose(0, 2, 1, 3)"
RETURN = "turned.reshape(B, T, H * E)"

MISTAKES = (
    Mistake("by-reshape", ((RETURN, "x.reshape(B, T, H * E)"),)),
    Mistake("interleaved", ((TURNED, "x.transpose(0, 2, 3, 1)"),)),
    Mistake("not-joined", ((RETURN, "turned"),)),
    Mistake("along-positions", ((RETURN, "x.reshape(B, H * T, E)"),)),
    Mistake("columns-before-positions", ((TURNED, "x.transpose(0, 3, 1, 2)"),)),
    Mistake("batch-and-positions", ((RETURN, "x.transpose(2, 0, 1, 3).reshape(T, B, H * E)"),)),
    Mistake("columns-first", ((RETURN, f"{RETURN}.transpose(0, 2, 1)"),)),
    Mistake("batch-lost", ((RETURN, "turned.reshape(B * T, H * E)"),)),
    Mistake("squeezed", ((RETURN, f"np.squeeze({RETURN})"),)),
    Mistake("sum-of-heads", ((RETURN, "x.sum(axis=1)"),)),
    Mistake("mean-of-heads", ((RETURN, "x.mean(axis=1)"),)),
    Mistake("first-head", ((RETURN, "x[:, 0]"),)),
    Mistake("heads-reversed", ((TURNED, "x[:, ::-1].transpose(0, 2, 1, 3)"),)),
    Mistake("rounded", ((RETURN, f"np.round({RETURN}, 1)"),)),
    Mistake("mutates-input", ((TURNED, f"{TURNED}.copy()\n    x[:] = 0"),)),
    Mistake("hard-coded", ((RETURN, "np.array([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])"),)),
    Mistake("positions-into-batch", ((RETURN, "x.transpose(2, 0, 1, 3).reshape(B, T, H * E)"),)),
)

GRADER = Grader(cases, MISTAKES)
