"""Calls and known mistakes of `additive-attention`: the sum inside tanh, and the softmax over the keys."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import SCORES
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import CUTS, EPS, zero_scores_lost

FAR = 40.0
"""tanh(40) and tanh(20) are exactly 1, in float32 too."""


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(T: int, S: int, d_q: int, d_k: int, d_v: int, d_a: int, about: str) -> Call:
        W_q, W_k = numbers(rng, d_q, d_a, spread=0.7), numbers(rng, d_k, d_a, spread=0.7)
        Q, K, V = numbers(rng, T, d_q), numbers(rng, S, d_k), numbers(rng, S, d_v)
        return call("additive_attention", Q, K, V, W_q, W_k, numbers(rng, d_a, spread=1.5), about=about)

    def scored(about: str, scores: np.ndarray) -> Call:
        """Query 0 has exactly these scores; query 1 has twice the scores less their sum.

        Key s is 40 in column s, so that tanh is 1 there; a query of -20 makes all other columns -1, one of -80
        every column: then all scores are equal.
        """
        S = len(scores)
        Q = np.outer([0.0, -FAR / 2, -2 * FAR], np.ones(S))
        return call(
            "additive_attention", Q, FAR * np.eye(S), numbers(rng, S, 3), np.eye(S), np.eye(S), scores, about=about
        )

    equal = np.tile(numbers(rng, 1, 3), (4, 1))
    return [
        drawn(2, 4, 3, 5, 2, 6, "plain"),
        drawn(1, 5, 3, 2, 4, 3, "one-query"),
        drawn(3, 5, 2, 4, 6, 7, "all-different"),
        drawn(4, 4, 4, 4, 4, 4, "all-the-same"),
        drawn(3, 1, 2, 3, 4, 5, "one-key"),
        drawn(3, 4, 3, 3, 3, 1, "one-wide"),
        call("additive_attention", numbers(rng, 2, 2), equal, *_rest(rng, 2, 3, 4), about="equal-keys"),
        *(scored(about, scores(rng, 2, 4)[row]) for about, scores in SCORES.items() for row in (0, 1)),
        scored("zero-scores", np.zeros(4)),
    ]


def _rest(rng: np.random.Generator, d_q: int, d_k: int, S: int) -> tuple[np.ndarray, ...]:
    """V, W_q, W_k and v."""
    return numbers(rng, S, 2), numbers(rng, d_q, 5), numbers(rng, d_k, 5), numbers(rng, 5)


PAIRS = "pairs = (Q @ W_q)[:, None, :] + (K @ W_k)[None, :, :]"
SCORED = "scores = np.tanh(pairs) @ v"
POWERS = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
WEIGHTS = "weights = powers / powers.sum(axis=-1, keepdims=True)"
RETURN = "return weights @ V, weights"

MISTAKES = (
    Mistake("no-tanh", ((SCORED, "scores = pairs @ v"),)),
    Mistake("tanh-too-late", ((SCORED, "scores = np.tanh(pairs @ v)"),)),
    Mistake(
        "query-cancels",
        (
            (PAIRS, PAIRS.replace("(Q @ W_q)", "np.tanh(Q @ W_q)").replace("(K @ W_k)", "np.tanh(K @ W_k)")),
            (SCORED, "scores = pairs @ v"),
        ),
    ),
    Mistake("query-cancels", ((PAIRS, "pairs = 0 * (Q @ W_q)[:, None, :] + (K @ W_k)[None, :, :]"),)),
    Mistake("v-inside-tanh", ((SCORED, "scores = np.tanh(pairs * v).sum(axis=-1)"),)),
    Mistake("no-tanh", ((PAIRS, PAIRS.replace("(Q @ W_q)", "np.tanh(Q @ W_q)")), (SCORED, "scores = pairs @ v"))),
    Mistake("relu", ((SCORED, "scores = np.maximum(pairs, 0) @ v"),)),
    Mistake("sigmoid", ((SCORED, "scores = (1 + np.tanh(pairs / 2)) / 2 @ v"),)),
    Mistake("multiplied", ((PAIRS, PAIRS.replace(" + ", " * ")),)),
    Mistake("subtracted", ((PAIRS, PAIRS.replace(" + ", " - ")),)),
    Mistake("dot-product", ((SCORED, "scores = (Q @ W_q) @ (K @ W_k).T"),)),
    Mistake("dot-product", ((SCORED, "scores = (Q @ W_q) @ (K @ W_k).T / np.sqrt(len(v))"),)),
    Mistake("dot-product", ((SCORED, "scores = np.tanh(Q @ W_q) * v @ np.tanh(K @ W_k).T"),)),
    Mistake("v-forgotten", ((SCORED, "scores = np.tanh(pairs).sum(axis=-1)"),)),
    Mistake("mean-for-v", ((SCORED, "scores = np.tanh(pairs).mean(axis=-1)"),)),
    Mistake("scaled", ((SCORED, f"{SCORED} / np.sqrt(len(v))"),)),
    Mistake("scaled", ((SCORED, f"{SCORED} / np.sqrt(K.shape[-1])"),)),
    Mistake("key-unused", ((PAIRS, "pairs = (Q @ W_q)[:, None, :] + 0 * (K @ W_k)[None, :, :]"),)),
    Mistake(
        "key-unused",
        (
            (
                PAIRS,
                "own = (K @ W_k)[np.arange(len(Q)) % len(K)]\n    pairs = (Q @ W_q + own)[:, None, :] + 0 * (K @ W_k)",
            ),
        ),
    ),
    Mistake("first-query", ((PAIRS, PAIRS.replace("(Q @ W_q)[:", "np.repeat((Q @ W_q)[:1], len(Q), 0)[:")),)),
    Mistake("weights-swapped", ((PAIRS, "pairs = (Q @ W_k)[:, None, :] + (K @ W_q)[None, :, :]"),)),
    Mistake("transposed-weights", ((PAIRS, PAIRS.replace("W_q", "W_q.T").replace("W_k", "W_k.T")),)),
    Mistake("over-queries", (("axis=-1", "axis=0"),)),
    Mistake("over-everything", (("axis=-1, keepdims=True", ""),)),
    Mistake("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Mistake("not-divided", ((WEIGHTS, "weights = powers"),)),
    Mistake("unstable", ((POWERS, "np.exp(scores)"),)),
    Mistake("one-maximum", ((POWERS, "np.exp(scores - scores.max())"),)),
    Mistake("mean-for-maximum", ((POWERS, POWERS.replace("max", "mean")),)),
    Mistake("zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)),)),
    *(Mistake("scores-cut-off", ((POWERS, f"np.exp(np.clip(scores, -{most}, {most}))"),)) for most in CUTS),
    *(
        Mistake("eps-added", ((WEIGHTS, f"weights = powers / (powers.sum(axis=-1, keepdims=True) + {eps})"),))
        for eps in EPS
    ),
    Mistake("keys-for-values", ((RETURN, "return weights @ K, weights"),)),
    Mistake("projected-keys-for-values", ((RETURN, "return weights @ (K @ W_k), weights"),)),
    Mistake("weights-transposed", ((RETURN, "return weights.T @ V, weights"),)),
    Mistake("mean-of-values", ((RETURN, "return np.ones((len(Q), 1)) * V.mean(axis=0), weights"),)),
    Mistake("returns-scores", ((RETURN, "return weights @ V, scores"),)),
    Mistake("returns-swapped", ((RETURN, "return weights, weights @ V"),)),
    Mistake("returns-context-only", ((RETURN, "return weights @ V"),)),
    Mistake(
        "pairs-in-other-order",
        (("scores = np.tanh(pairs) @ v", "scores = (np.tanh(pairs) @ v).T.reshape(len(Q), len(K))"),),
    ),
)

GRADER = Grader(cases, MISTAKES)
