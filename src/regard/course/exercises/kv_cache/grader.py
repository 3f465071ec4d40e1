"""Calls and known mistakes of `kv-cache`: a prompt, single steps, and chunks after a filled cache."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import MASKED, edges, with_scores
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import EPS, FILLS, zero_scores_lost

D_K, D_V = 4, 6


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def new(T: int) -> tuple[np.ndarray, ...]:
        return numbers(rng, T, D_K), numbers(rng, T, D_K), numbers(rng, T, D_V)

    def earlier(P: int) -> tuple[np.ndarray, ...]:
        return numbers(rng, P, D_K), numbers(rng, P, D_V)

    def after_one(about: str, q: np.ndarray, k: np.ndarray) -> Call:
        """Three new positions after one in the cache."""
        cache = k[:1], numbers(rng, 1, D_V)
        return call("attend_with_cache", q, k[1:], numbers(rng, 3, D_V), cache, about=about)

    visible = np.tri(3, 4, 1, dtype=bool)
    q, k = large_scores(rng, 2, 5)  # width 4, as D_K
    return [
        call("attend_with_cache", *new(1), about="first"),
        call("attend_with_cache", *new(3), None, about="prompt"),
        call("attend_with_cache", *new(1), earlier(2), about="step"),
        call("attend_with_cache", *new(2), cache=earlier(3), about="chunk"),
        call("attend_with_cache", *new(3), cache=earlier(2), about="chunk"),
        call("attend_with_cache", *new(2), earlier(40), about="long"),
        call("attend_with_cache", q, k[3:], numbers(rng, 2, D_V), (k[:3], numbers(rng, 3, D_V)), about="large"),
        *(after_one(about, q, k) for about, q, k, _ in edges(rng, 3, 4)),
        *(after_one(about, *with_scores(rng, scores(rng, visible))) for about, scores in MASKED.items()),
    ]


JOINED = "np.concatenate([cache[0], k]), np.concatenate([cache[1], v])"
HIDE = "scores = np.where(hidden, -np.inf, scores)"
NORMALISE = "weights = weights / weights.sum(axis=-1, keepdims=True)"
RETURN = "return weights @ V, (K, V)"
LENGTHS = "T, S = len(q), len(K)"
HIDDEN = "np.arange(S) > query_at"

EXP = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
DIVIDE = "weights / weights.sum(axis=-1, keepdims=True)"

MISTAKES = (
    Mistake("cache-unused", (("if cache is not None:", "if False:"),)),
    Mistake(
        "only-new-keys",
        ((LENGTHS, f"grown = (K, V)\n    K, V = k, v\n    {LENGTHS}"), (RETURN, "return weights @ V, grown")),
    ),
    Mistake(
        "only-old-keys",
        (
            (LENGTHS, f"grown = (K, V)\n    K, V = cache or (k, v)\n    {LENGTHS}"),
            (RETURN, "return weights @ V, grown"),
            (HIDDEN, "np.zeros((T, S), dtype=bool) if cache else np.arange(S) > query_at"),
        ),
    ),
    Mistake(
        "only-old-keys",
        (
            (LENGTHS, f"grown = (K, V)\n    K, V = cache or (k, v)\n    {LENGTHS}"),
            (RETURN, "return weights @ V, grown"),
            (HIDDEN, "np.zeros((T, S), dtype=bool)"),
        ),
    ),
    Mistake("not-grown", ((RETURN, "return weights @ V, (cache or (k, v))"),)),
    Mistake("only-new-kept", ((RETURN, "return weights @ V, (k, v)"),)),
    Mistake("new-before-old", ((JOINED, "np.concatenate([k, cache[0]]), np.concatenate([v, cache[1]])"),)),
    Mistake("cache-swapped", ((RETURN, "return weights @ V, (V, K)"),)),
    Mistake("from-the-left", (("np.arange(S - T, S)", "np.arange(T)"),)),
    Mistake("sees-the-future", ((HIDDEN, "np.zeros((T, S), dtype=bool)"),)),
    Mistake("one-too-far", ((HIDDEN, "np.arange(S) > query_at + 1"),)),
    Mistake("chunk-hidden", ((HIDDEN, "np.arange(S) > np.minimum(query_at, max(S - T - 1, 0))"),)),
    Mistake("not-itself", ((HIDDEN, "np.arange(S) >= query_at"),)),
    Mistake("not-itself", ((HIDDEN, "np.arange(S) >= query_at"), ("-np.inf", "-1e9"))),
    Mistake(
        "hidden-without-cache-only",
        ((HIDE, "scores = scores if cache is not None else np.where(hidden, -np.inf, scores)"),),
    ),
    Mistake("values-in-other-order", ((JOINED, "np.concatenate([cache[0], k]), np.concatenate([v, cache[1]])"),)),
    Mistake("values-in-other-order", ((JOINED, "np.concatenate([k, cache[0]]), np.concatenate([cache[1], v])"),)),
    Mistake("future-only", ((HIDDEN, "np.arange(S) < query_at"),)),
    Mistake(
        "mask-after-softmax", ((HIDE, ""), (NORMALISE, f"{NORMALISE}\n    weights = np.where(hidden, 0, weights)"))
    ),
    Mistake("zero-for-infinity", ((HIDE, "scores = np.where(hidden, 0, scores)"),)),
    Mistake("not-weighted", (("np.exp(scores - scores.max(axis=-1, keepdims=True))", "np.where(hidden, 0.0, 1.0)"),)),
    Mistake("values-returned", ((RETURN, "return v.copy(), (K, V)"),)),
    Mistake("no-softmax", ((NORMALISE, "weights = np.where(hidden, 0, scores)"),)),
    Mistake("no-scale", ((" / np.sqrt(q.shape[-1])", ""),)),
    Mistake("divided-by-d-k", (("np.sqrt(q.shape[-1])", "q.shape[-1]"),)),
    Mistake("sqrt-d-v", (("np.sqrt(q.shape[-1])", "np.sqrt(v.shape[-1])"),)),
    Mistake("sqrt-length", (("np.sqrt(q.shape[-1])", "np.sqrt(len(K))"),)),
    Mistake("over-queries", (("axis=-1", "axis=0"),)),
    Mistake("one-maximum", ((".max(axis=-1, keepdims=True)", ".max()"),)),
    Mistake("zero-score-zero-weight", ((EXP, zero_scores_lost(EXP)),)),
    *(Mistake("eps-added", ((DIVIDE, f"weights / (weights.sum(axis=-1, keepdims=True) + {eps})"),)) for eps in EPS),
    *(Mistake("fill-too-high", (("-np.inf", fill),)) for fill in FILLS),
    Mistake("masked-too-late", ((HIDE, ""), (EXP, f"{EXP} * ~hidden"))),
    Mistake("unstable", ((" - scores.max(axis=-1, keepdims=True)", ""),)),
    *(
        Mistake("old-keys-lost", ((HIDDEN, f"({HIDDEN}) | (np.arange(S) <= query_at - {window})"),))
        for window in (4, 5, 8, 16, 32)
    ),
)

GRADER = Grader(cases, MISTAKES)
