"""Calls and known mistakes of `rms-norm`: the axis, what is divided by, and an eps large enough to matter."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.random_inputs import numbers


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(*shape: int) -> tuple[np.ndarray, ...]:
        # A mean far from 0: subtracting it is detected. The default eps has no visible effect on these.
        gamma = np.round(numbers(rng, shape[-1], spread=0.5) + 1, 2)
        return np.round(numbers(rng, *shape, spread=4.0) + 2, 2), gamma

    _, gamma = drawn(4)
    # Rows whose mean square is about 1e-6, as large as eps.
    faint = rng.permuted(np.tile([-0.001, 0.0, 0.0005, 0.002], (3, 1)), axis=1)
    return [
        call("rms_norm", *drawn(3, 5)),
        call("rms_norm", *drawn(2, 3, 4), about="batch"),
        call("rms_norm", *drawn(2, 4), 0.5, about="large-eps"),
        call("rms_norm", faint, gamma, about="faint"),
        call("rms_norm", faint / 4, gamma, about="faint"),  # a mean square below eps
        call("rms_norm", *drawn(2, 3), eps=1e-3, about="given-eps"),
        call("rms_norm", *drawn(1, 6), about="one-row"),
        call("rms_norm", *drawn(3, 1), about="one-column"),
        call("rms_norm", *drawn(3, 3), about="all-the-same"),
        call("rms_norm", *drawn(3, 3, 3), about="all-the-same"),
        call("rms_norm", np.zeros((2, 4)), gamma, about="zeros"),
        call("rms_norm", np.full((2, 4), 3.0), gamma, about="constant"),
        call("rms_norm", drawn(2, 4)[0] + 1000, -gamma, about="far"),
    ]


SQUARE = "(x**2).mean(axis=-1, keepdims=True)"
RETURN = "return gamma * x / np.sqrt(mean_square + eps)"
CENTRED = "x - x.mean(axis=-1, keepdims=True)"
OTHER = ("1e-2", "1e-3", "1e-4", "1e-5", "1e-7", "1e-8", "1e-9", "1e-10", "1e-12")

MISTAKES = (
    Mistake("layer-norm", (("mean_square = ", f"x = {CENTRED}\n    mean_square = "),)),
    Mistake("standard-deviation", ((SQUARE, "x.var(axis=-1, keepdims=True)"),)),
    Mistake("centred-after", ((RETURN, RETURN.replace("* x", f"* ({CENTRED})")),)),
    Mistake("sum-for-mean", ((SQUARE, "(x**2).sum(axis=-1, keepdims=True)"),)),
    Mistake("one-fewer", ((SQUARE, "(x**2).sum(axis=-1, keepdims=True) / max(x.shape[-1] - 1, 1)"),)),
    Mistake("mean-of-absolutes", ((RETURN, "return gamma * x / (np.abs(x).mean(axis=-1, keepdims=True) + eps)"),)),
    Mistake("square-of-mean", ((SQUARE, "x.mean(axis=-1, keepdims=True) ** 2"),)),
    Mistake("by-the-largest", ((RETURN, "return gamma * x / (np.abs(x).max(axis=-1, keepdims=True) + eps)"),)),
    Mistake("no-root", (("np.sqrt(mean_square + eps)", "(mean_square + eps)"),)),
    Mistake("multiplied", (("/ np.sqrt", "* np.sqrt"),)),
    Mistake("first-axis", (("axis=-1", "axis=0"),)),
    Mistake("axis-one", (("axis=-1", "axis=1"),)),
    Mistake("last-two-axes", (("axis=-1", "axis=(-2, -1)"),)),
    Mistake("whole-array", (("axis=-1, keepdims=True", ""),)),
    Mistake("eps-outside", (("np.sqrt(mean_square + eps)", "(np.sqrt(mean_square) + eps)"),)),
    Mistake("eps-as-minimum", (("mean_square + eps", "np.maximum(mean_square, eps)"),)),
    Mistake("no-eps", ((" + eps", ""),)),
    Mistake("eps-fixed", ((" + eps", " + 1e-6"),)),
    *(Mistake("eps-other", (("eps: float = 1e-6", f"eps: float = {eps}"),)) for eps in OTHER),
    Mistake("no-gamma", ((RETURN, RETURN.replace("gamma * ", "")),)),
    Mistake("gamma-plus-one", ((RETURN, RETURN.replace("gamma", "(1 + gamma)")),)),
    Mistake("gamma-first", (("mean_square = ", "x = gamma * x\n    mean_square = "), ("gamma * x /", "x /"))),
    Mistake("gamma-added", ((RETURN, "return x / np.sqrt(mean_square + eps) + gamma"),)),
    Mistake("residual", ((RETURN, RETURN.replace("return ", "return x + ")),)),
    Mistake("returns-input", ((RETURN, "return x"),)),
    Mistake("rounded", ((RETURN, "return np.round(gamma * x / np.sqrt(mean_square + eps), 3)"),)),
    Mistake("mutates-input", ((RETURN, "x /= np.sqrt(mean_square + eps)\n    return gamma * x"),)),
    Mistake("hard-coded", ((RETURN, "return np.array([[0.8485, 1.1314]])"),)),
    Mistake("eps-for-zeros", (("mean_square + eps", "np.where(mean_square == 0, eps, mean_square)"),)),
    Mistake("eps-outside", (("np.sqrt(mean_square + eps)", "(np.sqrt(mean_square) + np.sqrt(eps))"),)),
    Mistake(
        "eps-in-the-sum",
        ((SQUARE, "(x**2).sum(axis=-1, keepdims=True)"), ("mean_square + eps", "(mean_square + eps) / x.shape[-1]")),
    ),
    Mistake("each-sample", (("axis=-1", "axis=tuple(range(1, x.ndim))"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-5))
