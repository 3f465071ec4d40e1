"""Calls and known mistakes of `bug-nan-after-masked-row`: masks with queries that see nothing, and with none."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import edges, masked_edges
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import FILLS


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def seen(B: int, T: int, S: int, *empty: tuple[int, int]) -> np.ndarray:
        """A random mask; each query sees a key, except those at the places `empty`."""
        mask = rng.random((B, T, S)) < 0.6
        mask[..., rng.integers(S)] = True
        for place in empty:
            mask[place] = False
        return mask

    def both(mask: np.ndarray, about: str, E: int = 3, D: int = 2) -> list[Call]:
        """The same arguments for the attention and for the loss."""
        B, T, S = mask.shape
        given = numbers(rng, B, T, E), numbers(rng, B, S, E), numbers(rng, B, S, D), mask
        loss = call("training_loss", *given, numbers(rng, B, T, D), about=about)
        return [call("attend", *given, about=about), loss]

    calls = [
        *both(seen(2, 3, 4), "none-empty"),
        *both(seen(2, 3, 4, (1, 2)), "one-empty"),
        *both(seen(3, 2, 5, (0, 0), (2, 0), (2, 1)), "sentence-empty", 4, 5),
        *both(seen(1, 4, 4, (0, 0), (0, 3)), "first-and-last", 5, 3),
        *both(np.zeros((2, 3, 4), dtype=bool), "all-empty", 2, 3),
        *both(np.array([[[True], [False]], [[False], [True]]]), "one-key", 2, 4),
    ]
    for edge in (*edges(rng, 3, 4), *masked_edges(rng, 3, 4, empty_rows=True)):
        visible = np.ones((3, 4), dtype=bool) if edge.visible is None else edge.visible
        calls.append(call("attend", edge.q[None], edge.k[None], numbers(rng, 1, 4, 2), visible[None], about=edge.about))
    return calls


ROW = "empty = ~mask.any(axis=-1, keepdims=True)"
SCORES = "scores = np.where(mask | empty, scores, -np.inf)"
AS_IT_CAME = (SCORES, "scores = np.where(mask, scores, -np.inf)")
WEIGHTS = "weights = weights / weights.sum(axis=-1, keepdims=True)"
OUT = "return np.where(empty, 0.0, weights @ V)"
NAN_OUT = (OUT, "return weights @ V")
SUM, COUNT = "(errors * real).sum()", "max(real.sum(), 1)"

MISTAKES = (
    Mistake("untouched", (AS_IT_CAME, NAN_OUT, (COUNT, "real.sum()"))),
    Mistake("loss-still-nan", ((COUNT, "real.sum()"),)),
    Mistake("attention-still-nan", (AS_IT_CAME, NAN_OUT, (SUM, "np.where(real, errors, 0.0).sum()"))),
    Mistake("nan-left-out", (AS_IT_CAME, NAN_OUT, (f"{SUM} / {COUNT}", "np.nanmean(errors)"))),
    Mistake("nan-left-out", (AS_IT_CAME, NAN_OUT, (SUM, "np.where(real, errors, 0.0).sum()"), (COUNT, "real.sum()"))),
    Mistake("loss-made-zero", (AS_IT_CAME, NAN_OUT, (f"{SUM} / {COUNT}", f"np.nan_to_num({SUM} / real.sum())"))),
    Mistake("mean-of-values", ((SCORES, "scores = np.where(mask, scores, -1e9)"), NAN_OUT)),
    Mistake("row-made-visible", (NAN_OUT,)),
    Mistake(
        "first-key-visible",
        ((ROW, f"{ROW}\n    mask = mask | (empty & (np.arange(mask.shape[-1]) == 0))"), AS_IT_CAME, NAN_OUT),
    ),
    Mistake("everything-zeroed", (("np.where(empty, 0.0", "np.where(empty.any(), 0.0"),)),
    Mistake("sentence-zeroed", (("np.where(empty, 0.0", "np.where(empty.any(axis=1, keepdims=True), 0.0"),)),
    Mistake("empty-rows-counted", ((COUNT, "real.size"),)),
    Mistake("zeros-counted", ((f"{SUM} / {COUNT}", "errors.mean()"),)),
    Mistake(
        "masked-too-late",
        (
            (SCORES, "scores = scores"),
            (WEIGHTS, f"weights = weights * mask\n    {WEIGHTS}"),
            (OUT, "return np.nan_to_num(weights) @ V"),
        ),
    ),
    *(Mistake("fill-too-high", ((SCORES, f"scores = np.where(mask, scores, {fill})"),)) for fill in (*FILLS, "0.0")),
    Mistake("eps-added", ((WEIGHTS, "weights = weights / (weights.sum(axis=-1, keepdims=True) + 1e-3)"),)),
    Mistake("unstable-softmax", (("np.exp(scores - scores.max(axis=-1, keepdims=True))", "np.exp(scores)"),)),
    Mistake("summed", ((f" / {COUNT}", ""),)),
    Mistake("fully-visible-only", (("real = mask.any(axis=-1)", "real = mask.all(axis=-1)"),)),
    Mistake("summed-over-columns", (("** 2).mean(axis=-1)", "** 2).sum(axis=-1)"),)),
    Mistake("one-too-many", (("max(real.sum(), 1)", "(real.sum() + 1)"),)),
)

GRADER = Grader(cases, MISTAKES)
