"""Calls and known mistakes of `attention-backward`: all sizes differ, so that a missing transpose is detected."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import EPS, zero_scores_lost


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def backward(T: int, S: int, d_k: int, d_v: int, about: str) -> Call:
        Q, K, V, dO = numbers(rng, T, d_k), numbers(rng, S, d_k), numbers(rng, S, d_v), numbers(rng, T, d_v)
        if about == "large":
            Q, K = large_scores(rng, T, S)
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

MISTAKES = (
    Mistake("no-row-sum", ((RIGHT, "d_weights"),)),
    Mistake("unweighted-sum", ((SUM, "d_weights.sum(axis=-1, keepdims=True)"),)),
    Mistake("mean-for-sum", ((SUM, "d_weights.mean(axis=-1, keepdims=True)"),)),
    Mistake("sum-over-queries", ((SUM, "(weights * d_weights).sum(axis=0, keepdims=True)"),)),
    Mistake("sum-of-everything", ((SUM, "(weights * d_weights).sum()"),)),
    Mistake("sigmoid-like", (("weights * (d_weights - passed)", "weights * (1 - weights) * d_weights"),)),
    Mistake("weights-left-out", (("weights * (d_weights - passed)", "d_weights - passed"),)),
    Mistake("softmax-skipped", (("weights * (d_weights - passed)", "d_weights"),)),
    Mistake("scale-only-forward", (("scale * d_scores", "d_scores"),)),
    Mistake("scale-twice", (("scale * d_scores", "scale**2 * d_scores"),)),
    Mistake("keys-not-scaled", (("dK = scale * ", "dK = "),)),
    Mistake("queries-not-scaled", (("dQ = scale * ", "dQ = "),)),
    Mistake("no-scale", (("1 / np.sqrt(Q.shape[-1])", "1.0"),)),
    Mistake("divided-by-d-k", (("np.sqrt(Q.shape[-1])", "Q.shape[-1]"),)),
    Mistake("sqrt-length", (("np.sqrt(Q.shape[-1])", "np.sqrt(len(K))"),)),
    Mistake("over-queries", ((".max(axis=-1", ".max(axis=0"), ("weights.sum(axis=-1", "weights.sum(axis=0"))),
    Mistake("scores-for-weights", (("weights.T @ dO", "scores.T @ dO"),)),
    Mistake("other-order", ((RETURN, "return dV, dK, dQ"),)),
    Mistake("keys-before-queries", ((RETURN, "return dK, dQ, dV"),)),
    Mistake("upstream-ignored", (("    dV =", "    dO = np.ones_like(dO)\n    dV ="),)),
    Mistake("wrong-sign", (("d_weights - passed", "passed - d_weights"),)),
    Mistake("one-maximum", ((".max(axis=-1, keepdims=True)", ".max()"),)),
    Mistake("zero-score-zero-weight", ((EXP, zero_scores_lost(EXP)),)),
    *(Mistake("eps-added", ((DIVIDE, f"weights / (weights.sum(axis=-1, keepdims=True) + {eps})"),)) for eps in EPS),
    Mistake("unstable", ((" - scores.max(axis=-1, keepdims=True)", ""),)),
)

# dQ contains 50 · Σ dS, a zero that float32 computes to five decimals only.
GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-5))
