"""Calls and known mistakes of `gqa`: several groupings, both extremes (one group, one head per group), large scores."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import heads
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import EPS, zero_scores_lost


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def grouped(H: int, G: int, about: str, T: int = 2, S: int = 5, d_k: int = 3, d_v: int = 4) -> Call:
        Q, K, V = numbers(rng, H, T, d_k), numbers(rng, G, S, d_k), numbers(rng, G, S, d_v)
        if about == "large":
            high = [large_scores(rng, T, S) for _ in range(H)]
            Q, K = np.stack([q for q, _ in high]), np.stack([k for _, k in high[:G]])
        return call("grouped_query_attention", Q, K, V, about=about)

    def shared(about: str, q: np.ndarray, k: np.ndarray) -> Call:
        """Two query heads per group: q (G, 2 T, 4) becomes (2 G, T, 4)."""
        return call("grouped_query_attention", q.reshape(4, -1, 4), k, numbers(rng, 2, 4, 5), about=about)

    return [
        grouped(4, 2, "pairs", T=3),
        grouped(6, 2, "threes"),
        grouped(6, 3, "three-groups", T=1),
        grouped(3, 1, "one-group"),
        grouped(3, 3, "no-sharing"),
        grouped(4, 2, "large", T=3),
        grouped(6, 2, "all-different", T=5, S=7, d_k=3, d_v=4),
        grouped(2, 2, "all-the-same", T=2, S=2, d_k=2, d_v=2),
        grouped(4, 2, "one-key", T=3, S=1),
        grouped(1, 1, "one-head"),
        *(shared(*edge) for edge in heads(rng, 2, 6, 4)),
    ]


SHARE = "shared_by = len(Q) // len(K)"
K_SHARED, V_SHARED = "np.repeat(K, shared_by, axis=0)", "np.repeat(V, shared_by, axis=0)"
K_TILED, V_TILED = "np.tile(K, (shared_by, 1, 1))", "np.tile(V, (shared_by, 1, 1))"
LAST = "return weights @ V"
GROUPED = ".reshape(-1, shared_by, Q.shape[1], {}.shape[-1])"

EXP = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
DIVIDE = "weights / weights.sum(axis=-1, keepdims=True)"

MISTAKES = (
    Mistake("tiled", ((K_SHARED, K_TILED), (V_SHARED, V_TILED))),
    Mistake("values-tiled", ((V_SHARED, V_TILED),)),
    Mistake("keys-tiled", ((K_SHARED, K_TILED),)),
    Mistake("first-group", ((K_SHARED, "K[:1]"), (V_SHARED, "V[:1]"))),
    Mistake("groups-averaged", ((K_SHARED, "K.mean(axis=0)"), (V_SHARED, "V.mean(axis=0)"))),
    Mistake(
        "queries-averaged",
        ((SHARE, f"{SHARE}\n    Q = np.repeat(Q{GROUPED.format('Q')}.mean(1), shared_by, axis=0)"),),
    ),
    Mistake("one-head-a-group", ((LAST, f"return (weights @ V){GROUPED.format('V')}.mean(axis=1)"),)),
    Mistake(
        "heads-reordered",
        ((LAST, f"return (weights @ V){GROUPED.format('V')}.swapaxes(0, 1).reshape(len(Q), -1, V.shape[-1])"),),
    ),
    Mistake("no-scale", ((" / np.sqrt(Q.shape[-1])", ""),)),
    Mistake("sqrt-group", (("np.sqrt(Q.shape[-1])", "np.sqrt(Q.shape[-1] * shared_by)"),)),
    Mistake("sqrt-all-heads", (("np.sqrt(Q.shape[-1])", "np.sqrt(Q.shape[-1] * len(Q))"),)),
    Mistake("sqrt-length", (("np.sqrt(Q.shape[-1])", "np.sqrt(K.shape[-2])"),)),
    Mistake("divided-by-d-k", (("np.sqrt(Q.shape[-1])", "Q.shape[-1]"),)),
    Mistake("over-queries", (("axis=-1", "axis=-2"),)),
    Mistake("over-everything", (("axis=-1", "axis=(-2, -1)"),)),
    Mistake(
        "not-weighted",
        ((LAST, "return np.broadcast_to(V.mean(1, keepdims=True), (*Q.shape[:2], V.shape[-1])).copy()"),),
    ),
    Mistake("no-softmax", (("weights / weights.sum(axis=-1, keepdims=True)", "scores"),)),
    Mistake("one-maximum", ((".max(axis=-1, keepdims=True)", ".max()"),)),
    Mistake("one-maximum", ((".max(axis=-1, keepdims=True)", ".max(axis=(-2, -1), keepdims=True)"),)),
    Mistake(
        "causal-not-asked", ((EXP, EXP.replace("scores", "np.where(np.tri(*scores.shape[1:]) > 0, scores, -np.inf)")),)
    ),
    Mistake("zero-score-zero-weight", ((EXP, zero_scores_lost(EXP)),)),
    *(Mistake("eps-added", ((DIVIDE, f"weights / (weights.sum(axis=-1, keepdims=True) + {eps})"),)) for eps in EPS),
    Mistake("unstable", ((" - scores.max(axis=-1, keepdims=True)", ""),)),
    Mistake("over-heads", (("axis=-1", "axis=0"),)),
    Mistake("first-group-values", ((V_SHARED, "V[:1]"),)),
    Mistake(
        "groups-of-wrong-size",
        (
            (K_SHARED, "K[np.minimum(np.arange(len(Q)) // len(K), len(K) - 1)]"),
            (V_SHARED, "V[np.minimum(np.arange(len(Q)) // len(K), len(K) - 1)]"),
        ),
    ),
)

GRADER = Grader(cases, MISTAKES)
