"""Calls and known slips of `attention-backward`: no side equals another, so that a missing transpose shows."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, Tolerance, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import numbers, towering
from regard.course.exercises.shared_slips import EPS, zero_scores_lost


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def backward(T: int, S: int, d_k: int, d_v: int, about: str) -> Call:
        Q, K, V, dO = numbers(rng, T, d_k), numbers(rng, S, d_k), numbers(rng, S, d_v), numbers(rng, T, d_v)
        if about == "large":
            Q, K = towering(rng, T, S)
        return call("attention_backward", Q, K, V, dO, about=about)

    return [
        backward(2, 4, 3, 5, "plain"),
        backward(4, 3, 2, 5, "more-queries"),
        backward(1, 5, 4, 2, "one-query"),
        backward(2, 1, 4, 3, "one-key"),
        backward(2, 4, 3, 5, "large"),
        backward(3, 3, 3, 3, "all-the-same"),
        *(
            call("attention_backward", q, k, numbers(rng, 4, 5), numbers(rng, 3, 5), about=about)
            for about, q, k, _ in edges(rng, 3, 4)
        ),
    ]


RIGHT = "d_weights - passed"
SUM = "(weights * d_weights).sum(axis=-1, keepdims=True)"
RETURN = "return dQ, dK, dV"

EXP = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
DIVIDE = "weights / weights.sum(axis=-1, keepdims=True)"

SLIPS = (
    Slip("no-row-sum", ((RIGHT, "d_weights"),)),
    Slip("unweighted-sum", ((SUM, "d_weights.sum(axis=-1, keepdims=True)"),)),
    Slip("mean-for-sum", ((SUM, "d_weights.mean(axis=-1, keepdims=True)"),)),
    Slip("sum-over-queries", ((SUM, "(weights * d_weights).sum(axis=0, keepdims=True)"),)),
    Slip("sum-of-everything", ((SUM, "(weights * d_weights).sum()"),)),
    Slip("sigmoid-like", (("weights * (d_weights - passed)", "weights * (1 - weights) * d_weights"),)),
    Slip("weights-left-out", (("weights * (d_weights - passed)", "d_weights - passed"),)),
    Slip("softmax-skipped", (("weights * (d_weights - passed)", "d_weights"),)),
    Slip("scale-only-forward", (("scale * d_scores", "d_scores"),)),
    Slip("scale-twice", (("scale * d_scores", "scale**2 * d_scores"),)),
    Slip("keys-not-scaled", (("dK = scale * ", "dK = "),)),
    Slip("queries-not-scaled", (("dQ = scale * ", "dQ = "),)),
    Slip("no-scale", (("1 / np.sqrt(Q.shape[-1])", "1.0"),)),
    Slip("divided-by-d-k", (("np.sqrt(Q.shape[-1])", "Q.shape[-1]"),)),
    Slip("sqrt-length", (("np.sqrt(Q.shape[-1])", "np.sqrt(len(K))"),)),
    Slip("over-queries", ((".max(axis=-1", ".max(axis=0"), ("weights.sum(axis=-1", "weights.sum(axis=0"))),
    Slip("scores-for-weights", (("weights.T @ dO", "scores.T @ dO"),)),
    Slip("other-order", ((RETURN, "return dV, dK, dQ"),)),
    Slip("keys-before-queries", ((RETURN, "return dK, dQ, dV"),)),
    Slip("upstream-ignored", (("    dV =", "    dO = np.ones_like(dO)\n    dV ="),)),
    Slip("wrong-sign", (("d_weights - passed", "passed - d_weights"),)),
    Slip("one-maximum", ((".max(axis=-1, keepdims=True)", ".max()"),)),
    Slip("zero-score-zero-weight", ((EXP, zero_scores_lost(EXP)),)),
    *(Slip("eps-added", ((DIVIDE, f"weights / (weights.sum(axis=-1, keepdims=True) + {eps})"),)) for eps in EPS),
    Slip("unstable", ((" - scores.max(axis=-1, keepdims=True)", ""),)),
)

# dQ holds 50 · Σ dS, a zero that float32 knows to five places only.
GRADER = Grader(cases, SLIPS, tolerance=Tolerance(rtol=1e-5, atol=1e-5))
