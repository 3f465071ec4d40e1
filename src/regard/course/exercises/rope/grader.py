"""Calls and known mistakes of `rope`: several pairs, positions with gaps, another base, leading head axes."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    gaps = np.sort(rng.choice(np.arange(2, 30), size=3, replace=False))
    return [
        call("rope", numbers(rng, 3, 4), np.arange(3), about="counted"),
        call("rope", numbers(rng, 3, 4), gaps, about="gaps"),
        call("rope", numbers(rng, 4, 6), rng.permutation(np.arange(1, 5)), about="shuffled"),
        call("rope", numbers(rng, 3, 8), rng.integers(2000, 5000, 3), about="far"),
        call("rope", numbers(rng, 2, 6), np.array([0, rng.integers(1, 9)]), base=100.0, about="base"),
        call("rope", numbers(rng, 2, 3, 4), np.arange(5, 8), about="heads"),
        call("rope", numbers(rng, 2, 1, 5, 4), np.arange(5), about="heads"),
        call("rope", numbers(rng, 3, 2), np.array([0, 1, 2]), about="one-pair"),
        call("rope", numbers(rng, 4, 4, 4), np.arange(3, 7), about="all-the-same"),
        call("rope", numbers(rng, 2, 3, 5, 8), np.arange(5), about="all-different"),
        call("rope", numbers(rng, 3, 6), np.array([4, 4, 0]), base=500000.0, about="base"),
    ]


FREQUENCIES = "base ** (-2 * np.arange(d // 2) / d)"
ANGLES = "positions[:, None] * frequencies"
SPLIT = "x[..., : d // 2], x[..., d // 2 :]"
TURNED = "np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)"
NEIGHBOURS = (
    (SPLIT, "x[..., 0::2], x[..., 1::2]"),
    (TURNED, "np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)"),
)
MIXED = "x * np.repeat(cos, 2, axis=-1) + np.concatenate([-b, a], axis=-1) * np.repeat(sin, 2, axis=-1)"
SINUSOIDAL = "x + np.concatenate([sin, cos], axis=-1)"
OVERWRITTEN = "np.concatenate([a * cos - b * sin, b * cos + (a * cos - b * sin) * sin], axis=-1)"
EACH_COLUMN = (
    (TURNED, "x * cos + np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], axis=-1) * sin"),
    (SPLIT, "x, x"),
)

MISTAKES = (
    Mistake("interleaved", NEIGHBOURS),
    Mistake("mixed-pairings", ((TURNED, MIXED),)),
    Mistake("pairs-moved", ((SPLIT, "x[..., 0::2], x[..., 1::2]"),)),
    Mistake("backwards", ((TURNED, "np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)"),)),
    Mistake("mirrored", ((TURNED, "np.concatenate([a * cos - b * sin, b * cos - a * sin], axis=-1)"),)),
    Mistake("all-plus", ((TURNED, "np.concatenate([a * cos + b * sin, b * cos + a * sin], axis=-1)"),)),
    Mistake("sine-for-cosine", (("np.cos(angles), np.sin(angles)", "np.sin(angles), np.cos(angles)"),)),
    Mistake("cosine-only", ((TURNED, "np.concatenate([a * cos, b * cos], axis=-1)"),)),
    Mistake("halves-exchanged", ((TURNED, "np.concatenate([b * cos + a * sin, a * cos - b * sin], axis=-1)"),)),
    Mistake("overwritten", ((TURNED, OVERWRITTEN),)),
    Mistake("half-the-exponent", (("-2 * np.arange", "-np.arange"),)),
    Mistake("twice-the-exponent", (("-2 * np.arange", "-4 * np.arange"),)),
    Mistake("angle-for-each-column", ((FREQUENCIES, "base ** (-np.arange(d) / d)"), *EACH_COLUMN)),
    Mistake("angle-for-each-column", ((FREQUENCIES, "base ** (-2 * np.arange(d) / d)"), *EACH_COLUMN)),
    Mistake("one-frequency", ((FREQUENCIES, "np.ones(d // 2)"),)),
    Mistake("growing-frequencies", (("(-2 *", "(2 *"),)),
    Mistake("counts-itself", ((ANGLES, "np.arange(x.shape[-2])[:, None] * frequencies"),)),
    Mistake("starts-at-one", ((ANGLES, "(positions[:, None] + 1) * frequencies"),)),
    Mistake("base-fixed", (("base **", "10000.0 **"),)),
    Mistake("added", ((TURNED, SINUSOIDAL),)),
    Mistake("not-turned", ((TURNED, "x.copy()"),)),
    Mistake("from-the-first", ((ANGLES, "(positions - positions[0])[:, None] * frequencies"),)),
    Mistake("last-is-full", ((FREQUENCIES, "base ** (-np.arange(d // 2) / max(d // 2 - 1, 1))"),)),
)

GRADER = Grader(cases, MISTAKES)
