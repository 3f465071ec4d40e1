"""Calls and known mistakes of `softmax`: every axis, overflow, rows of very different size, integers."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.edge_inputs import SCORES
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import EPS, zero_scores_lost


def cases(rng: np.random.Generator) -> Sequence[Call]:
    # Halves near 1000 are exact even in float32: this case tests overflow, not rounding.
    halves = rng.permuted(np.tile([-1.0, -0.5, 0.5, 1.0], (3, 1)), axis=1)
    hidden = numbers(rng, 3, 4)
    hidden[np.arange(3), rng.permutation(4)[:3]] = -np.inf
    low = np.where(np.isinf(hidden), -np.inf, halves - 16384)  # below every number that may stand for -inf
    return [
        call("softmax", numbers(rng, 3, 5), -1),
        call("softmax", numbers(rng, 4, 3), 0, about="axis-0"),
        call("softmax", numbers(rng, 2, 3, 4), -2, about="middle"),
        call("softmax", numbers(rng, 2, 4, 3), 2, about="three-axes"),
        call("softmax", numbers(rng, 5), 0, about="one-axis"),
        call("softmax", rng.permuted(np.tile(np.arange(-1, 3), (3, 1)), axis=1), 1, about="whole"),
        call("softmax", halves[:2] + 1000, -1, about="large"),
        call("softmax", halves + np.array([[1000], [-1000], [0]]), -1, about="apart"),
        call("softmax", hidden, -1, about="hidden"),
        call("softmax", low, -1, about="hidden-low"),
        call("softmax", numbers(rng, 3, 1), -1, about="one-number"),
        call("softmax", np.full((2, 3), numbers(rng, 1)), -1, about="all-equal"),
        *(call("softmax", scores(rng, 3, 4), -1, about=about) for about, scores in SCORES.items()),
        call("softmax", SCORES["zero-scores"](rng, 3, 4).T, 0, about="zero-scores"),
    ]


SHIFT = "x - x.max(axis=axis, keepdims=True)"
DIVIDE = "powers / powers.sum(axis=axis, keepdims=True)"

MISTAKES = (
    Mistake("unstable", ((SHIFT, "x"),)),
    Mistake("nan-hidden", ((SHIFT, "x"), (DIVIDE, f"np.nan_to_num({DIVIDE})"))),
    Mistake("mean-for-maximum", (("x.max(", "x.mean("),)),
    Mistake("one-maximum", ((SHIFT, "x - x.max()"),)),
    Mistake("clipped", ((SHIFT, "np.clip(x, -500, 500)"),)),
    Mistake("clipped", ((SHIFT, "np.minimum(x, 700)"),)),
    Mistake("maximum-elsewhere", (("x.max(axis=axis", "x.max(axis=-1"),)),
    Mistake("last-axis", (("axis=axis", "axis=-1"),)),
    Mistake("first-axis", (("axis=axis", "axis=0"),)),
    Mistake("whole-sum", ((DIVIDE, "powers / powers.sum()"),)),
    *(
        Mistake(
            "infinity-filled", ((SHIFT, f"(x := np.where(np.isinf(x), {fill}, x)) - x.max(axis=axis, keepdims=True)"),)
        )
        for fill in ("-1e2", "-1e3", "-1e4")
    ),
    Mistake("no-keepdims", ((", keepdims=True", ""),)),
    Mistake("not-divided", ((DIVIDE, "powers"),)),
    Mistake("no-exp", (("np.exp(shifted)", "x"),)),
    Mistake("logarithm", ((DIVIDE, "shifted - np.log(powers.sum(axis=axis, keepdims=True))"),)),
    Mistake("upside-down", ((SHIFT, "x.min(axis=axis, keepdims=True) - x"),)),
    Mistake("powers-of-two", (("np.exp(", "np.exp2("),)),
    Mistake("sigmoid", ((DIVIDE, "1 / (1 + np.exp(-x))"),)),
    Mistake("winner-takes-all", (("np.exp(shifted)", "(shifted == 0).astype(float)"),)),
    Mistake("zero-score-zero-weight", (("np.exp(shifted)", zero_scores_lost("np.exp(shifted)", "x")),)),
    *(Mistake("eps-added", ((DIVIDE, f"powers / (powers.sum(axis=axis, keepdims=True) + {eps})"),)) for eps in EPS),
    Mistake("truncated", ((DIVIDE, f"({DIVIDE}).astype(x.dtype)"),)),
    Mistake("returns-input", ((DIVIDE, "x"),)),
    Mistake("divided-first", ((SHIFT, "x / np.abs(x).max(axis=axis, keepdims=True)"),)),
    Mistake("rounded", ((DIVIDE, f"np.round({DIVIDE}, 3)"),)),
    Mistake("mutates-input", ((f"shifted = {SHIFT}", "x -= x.max(axis=axis, keepdims=True)\n    shifted = x"),)),
    Mistake(
        "hard-coded",
        source="import numpy as np\n\n\ndef softmax(x, axis):\n    return np.array([0.40111, 0.19778, 0.40111])\n",
    ),
    *(
        Mistake("small-shares-lost", ((DIVIDE, f"np.where({DIVIDE} < {least}, 0.0, {DIVIDE})"),))
        for least in ("1e-2", "1e-3", "1e-4")
    ),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
