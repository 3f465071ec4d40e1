"""Calls and known slips of `merge-heads`: what one split undoes, with sizes that fit no other order of the axes."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(B: int, H: int, T: int, E: int, about: str = "") -> Call:
        return call("merge_heads", numbers(rng, B, H, T, E), about=about)

    return [
        drawn(2, 3, 4, 2),
        drawn(1, 2, 5, 3, about="one-sample"),
        drawn(2, 3, 3, 3, about="same-sizes"),  # the wrong order of the axes has the right shape here
        drawn(3, 1, 2, 4, about="one-head"),
        drawn(2, 4, 3, 1, about="one-wide"),
        drawn(2, 3, 1, 2, about="one-position"),
        drawn(3, 3, 3, 3, about="all-the-same"),
        drawn(5, 2, 7, 3, about="all-different"),
    ]


TURNED = "x.transpose(0, 2, 1, 3)"
RETURN = "turned.reshape(B, T, H * E)"

SLIPS = (
    Slip("by-reshape", ((RETURN, "x.reshape(B, T, H * E)"),)),
    Slip("interleaved", ((TURNED, "x.transpose(0, 2, 3, 1)"),)),
    Slip("not-joined", ((RETURN, "turned"),)),
    Slip("along-positions", ((RETURN, "x.reshape(B, H * T, E)"),)),
    Slip("columns-before-positions", ((TURNED, "x.transpose(0, 3, 1, 2)"),)),
    Slip("batch-and-positions", ((RETURN, "x.transpose(2, 0, 1, 3).reshape(T, B, H * E)"),)),
    Slip("columns-first", ((RETURN, f"{RETURN}.transpose(0, 2, 1)"),)),
    Slip("batch-lost", ((RETURN, "turned.reshape(B * T, H * E)"),)),
    Slip("squeezed", ((RETURN, f"np.squeeze({RETURN})"),)),
    Slip("sum-of-heads", ((RETURN, "x.sum(axis=1)"),)),
    Slip("mean-of-heads", ((RETURN, "x.mean(axis=1)"),)),
    Slip("first-head", ((RETURN, "x[:, 0]"),)),
    Slip("heads-reversed", ((TURNED, "x[:, ::-1].transpose(0, 2, 1, 3)"),)),
    Slip("rounded", ((RETURN, f"np.round({RETURN}, 1)"),)),
    Slip("mutates-input", ((TURNED, f"{TURNED}.copy()\n    x[:] = 0"),)),
    Slip("hard-coded", ((RETURN, "np.array([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])"),)),
)

GRADER = Grader(cases, SLIPS)
