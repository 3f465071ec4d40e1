"""Calls and known mistakes of `bug-no-warm-up`: steps before, at and after the peak, for several warm-ups.

The rates of the first updates are near 1e-7, so the absolute tolerance is far below that.
"""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def some(low: int, high: int, count: int) -> np.ndarray:
        """Different random steps in order."""
        return np.sort(rng.choice(np.arange(low, high), count, replace=False))

    def rates(steps: np.ndarray, about: str, *sizes: int) -> Call:
        return call("learning_rates", steps, *sizes, about=about)

    d_model, warmup = int(rng.integers(60, 300)), int(rng.integers(20, 60))
    around = np.array([warmup - 1, warmup, warmup + 1])
    return [
        rates(np.array([1, 2, 3, *some(4, 16, 2)]), "start"),
        rates(some(100, 4000, 5), "rising"),
        rates(np.array([3999, 4000, 4001]), "peak"),
        rates(some(4100, 100_000, 5), "falling"),
        rates(np.array([1, *some(2, warmup, 4), *around[1:], *some(warmup + 2, 1000, 3)]), "whole", d_model, warmup),
        rates(around, "peak", int(rng.integers(1000, 3000)), warmup),
        rates(np.array([1, 2, 9, *some(10, 50, 2)]), "one-step", 64, 1),
        rates(rng.permutation([5, 3, 3, 8, 40, 1]), "any-order", 16, 6),
        rates(np.array([int(rng.integers(1, 30))]), "single", 100, 10),
        rates(np.array([1, 10**6, 10**7]), "late", 1024, 10_000),
    ]


RISING = "rising = steps * warmup**-1.5"
FALLING = "falling = steps**-0.5"
LOWER = "np.minimum(rising, falling)"
SCALE = "d_model**-0.5"
RETURN = f"return {SCALE} * {LOWER}"


def _pieces(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """One formula up to the warm-up, another one behind it."""
    return ((LOWER, f"np.where(steps <= warmup, {before}, {after})"),)


MISTAKES = (
    Mistake("untouched", (("-1.5", "-0.5"),)),
    Mistake("no-warm-up", ((LOWER, "falling"),)),
    Mistake("higher-of-both", (("np.minimum", "np.maximum"),)),
    Mistake("never-falls", ((LOWER, "np.minimum(rising, warmup**-0.5)"),)),
    Mistake("only-rises", ((LOWER, "rising"),)),
    Mistake("rises-to-one", ((RISING, "rising = steps / warmup"),)),
    Mistake("jump-at-the-peak", _pieces("steps / warmup", "falling")),
    Mistake("falls-too-fast", ((FALLING, "falling = warmup**0.5 / steps"),)),
    Mistake("falls-from-one", _pieces("steps / warmup", "np.sqrt(warmup / steps)")),
    Mistake("counted-from-the-peak", _pieces("rising", "np.maximum(steps - warmup, 1) ** -0.5")),
    Mistake("constant-warm-up", _pieces("warmup**-0.5 + 0 * steps", "falling")),
    Mistake("power-two", (("-1.5", "-2.0"),)),
    Mistake("quadratic-warm-up", ((RISING, "rising = steps**2 * warmup**-2.5"),)),
    Mistake("warm-up-fixed", (("warmup**-1.5", "4000**-1.5"),)),
    Mistake("counted-from-zero", ((RISING, "rising = (steps - 1) * warmup**-1.5"),)),
    Mistake(
        "counted-from-zero",
        (
            (RISING, "steps = steps - 1\n    rising = steps * warmup**-1.5"),
            (FALLING, "falling = np.maximum(steps, 1) ** -0.5"),
        ),
    ),
    Mistake("one-step-ahead", ((RISING, "steps = steps + 1\n    rising = steps * warmup**-1.5"),)),
    Mistake("width-missing", ((RETURN, f"return {LOWER}"),)),
    Mistake("times-width", ((SCALE, "d_model**0.5"),)),
    Mistake("no-root-of-width", ((SCALE, "1 / d_model"),)),
    Mistake("root-missing", ((FALLING, "falling = 1 / steps"),)),
    Mistake("linear-fall", _pieces("rising", "warmup**-0.5 * np.maximum(2 - steps / warmup, 0)")),
    Mistake("cosine", _pieces("rising", "warmup**-0.5 * (1 + np.cos(np.pi * np.minimum(steps / warmup - 1, 1))) / 2")),
    Mistake("jump-at-the-peak", ((LOWER, "np.where(steps < warmup, steps / warmup, falling)"),)),
    Mistake("width-fixed", ((SCALE, "512**-0.5"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-6, atol=1e-12))
