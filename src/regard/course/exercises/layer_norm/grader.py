"""Calls and known mistakes of `layer-norm`: the axis, the variance, and an eps large enough to matter."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(*shape: int) -> tuple[np.ndarray, ...]:
        # A spread so large that the default eps has no visible effect; the calls about eps use other inputs.
        gamma = np.round(numbers(rng, shape[-1], spread=0.5) + 1, 2)
        return np.round(numbers(rng, *shape, spread=5.0) + 1, 2), gamma, numbers(rng, shape[-1])

    _, gamma, beta = drawn(4)
    # Rows whose variance is about 1e-6, below the eps of 1e-5; the last one does not vary at all.
    faint = rng.permuted(np.tile([-0.001, 0.0, 0.0005, 0.002], (3, 1)), axis=1)
    faint[-1] = 0.001
    return [
        call("layer_norm", *drawn(3, 5)),
        call("layer_norm", *drawn(2, 3, 4), about="batch"),
        call("layer_norm", *drawn(2, 4), 0.5, about="large-eps"),
        call("layer_norm", faint, gamma, beta, about="faint"),
        call("layer_norm", *drawn(2, 3), 1e-3, about="given-eps"),
        call("layer_norm", *drawn(1, 6), about="one-row"),
        call("layer_norm", *drawn(3, 3), about="all-the-same"),
        call("layer_norm", *drawn(3, 3, 3), about="all-the-same"),
        call("layer_norm", np.zeros((2, 4)), gamma, beta, about="zeros"),
        call("layer_norm", drawn(2, 4)[0] + 1000, -gamma, beta, about="far"),
    ]


CENTRED = "(x - mean) / np.sqrt(variance + eps)"
RETURN = "return gamma * normal + beta"
OTHER = ("1e-1", "1e-2", "1e-3", "1e-4", "1e-6", "1e-7", "1e-8", "1e-9", "1e-10", "1e-12")

MISTAKES = (
    Mistake("first-axis", (("axis=-1", "axis=0"),)),
    Mistake("axis-one", (("axis=-1", "axis=1"),)),
    Mistake("last-two-axes", (("axis=-1", "axis=(-2, -1)"),)),
    Mistake("whole-array", (("axis=-1, keepdims=True", ""),)),
    Mistake(
        "sample-variance",
        ((".mean(axis=-1, keepdims=True)  #", ".sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)  #"),),
    ),
    Mistake("eps-outside", ((CENTRED, "(x - mean) / (np.sqrt(variance) + eps)"),)),
    Mistake("no-eps", ((" + eps", ""),)),
    Mistake("eps-fixed", ((" + eps", " + 1e-5"),)),
    *(Mistake("eps-other", (("eps: float = 1e-5", f"eps: float = {eps}"),)) for eps in OTHER),
    Mistake("by-variance", ((CENTRED, "(x - mean) / (variance + eps)"),)),
    Mistake("not-divided", ((CENTRED, "x - mean"),)),
    Mistake("not-centred", ((CENTRED, "x / np.sqrt(variance + eps)"),)),
    Mistake("rms-norm", ((CENTRED, "x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)"),)),
    Mistake("min-max", ((CENTRED, "(x - x.min(-1, keepdims=True)) / (np.ptp(x, -1)[..., None] + eps)"),)),
    Mistake("no-gamma-beta", ((RETURN, "return normal"),)),
    Mistake("no-beta", ((RETURN, "return gamma * normal"),)),
    Mistake("no-gamma", ((RETURN, "return normal + beta"),)),
    Mistake("gamma-beta-swapped", ((RETURN, "return beta * normal + gamma"),)),
    Mistake("beta-first", ((RETURN, "return gamma * (normal + beta)"),)),
    Mistake("gamma-plus-one", ((RETURN, "return (1 + gamma) * normal + beta"),)),
    Mistake("residual", ((RETURN, "return x + gamma * normal + beta"),)),
    Mistake("returns-input", ((RETURN, "return x"),)),
    Mistake("rounded", ((RETURN, "return np.round(gamma * normal + beta, 3)"),)),
    Mistake("mutates-input", ((f"normal = {CENTRED}", "x -= mean\n    normal = x / np.sqrt(variance + eps)"),)),
    Mistake("hard-coded", ((RETURN, "return np.array([[-1.2247, 0.0, 1.2247]])"),)),
    Mistake("each-sample", (("axis=-1", "axis=tuple(range(1, x.ndim))"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-5))
