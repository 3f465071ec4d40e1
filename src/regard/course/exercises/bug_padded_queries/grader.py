"""Calls and known mistakes of `bug-padded-queries`.

Rows of padding never reach the result: masking them as well is right, and masking only them equals no mask.
"""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import MASKED, SCORES, merged, with_scores
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import FILLS

VOCABULARY, D_MODEL, D = 7, 3, 4


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def vectors(lengths: Sequence[int], n_heads: int, about: str, left: bool = False, S: int = 5) -> Call:
        ids = np.zeros((len(lengths), S), dtype=int)
        for row, length in zip(ids, lengths, strict=True):
            row[:length] = rng.integers(1, VOCABULARY, length)
        weights = [numbers(rng, D_MODEL, D) for _ in range(3)]
        ids = ids[:, ::-1].copy() if left else ids
        return call("sentence_vectors", ids, numbers(rng, VOCABULARY, D_MODEL), *weights, n_heads, about=about)

    def one_hot(about: str, *scores: np.ndarray) -> Call:
        """Four tokens, PAD = 0 among them; `scores` of a query token and a key token, for two heads."""
        ids = np.array([[1, 2, 3, 0], [3, 1, 0, 0]])
        W_q, W_k = (merged(np.stack(parts)) for parts in zip(*(with_scores(rng, each) for each in scores), strict=True))
        return call("sentence_vectors", ids, np.eye(4), W_q, W_k, numbers(rng, 4, 8), 2, about=about)

    words = np.tile([False, True, True, True], (4, 1))
    return [
        vectors([5, 2, 3], 2, "ragged"),
        vectors([5, 5], 2, "full"),
        vectors([2], 2, "one-sentence"),
        vectors([1, 4], 1, "one-token"),
        vectors([4, 2, 3], 4, "left", left=True),
        vectors([5, 2], 2, "samples-as-heads"),
        vectors([5], 1, "one-sample"),
        vectors([1, 1, 1], 2, "one-key", S=1),
        *(one_hot(about, scores(rng, 4, 4), scores(rng, 4, 4)) for about, scores in SCORES.items()),
        *(one_hot(about, scores(rng, words), scores(rng, words)) for about, scores in MASKED.items()),
    ]


KEYS = "np.where(real[:, None, None, :], scores, -1e9)"
COUNTED = "np.where(np.arange(ids.shape[1]) < real.sum(axis=1)[:, None, None, None], scores, -1e9)"
WEIGHTED = "softmax(scores) @ V"
POOLED = "(out * real[:, :, None]).sum(axis=1) / real.sum(axis=1, keepdims=True)"
BOTH = "real[:, None, None, :] & real[:, None, :, None]"

LATE = "weights = softmax(scores) * real[:, None, None, :]\n    weights = weights / weights.sum(axis=-1, keepdims=True)"

MISTAKES = (
    *(Mistake("fill-too-high", ((KEYS, KEYS.replace("-1e9", fill).replace("-np.inf", fill)),)) for fill in FILLS),
    Mistake("untouched", ((KEYS, "np.where(real[:, None, :, None], scores, -1e9)"),)),
    Mistake("reversed", ((KEYS, "np.where(real[:, None, None, :], -1e9, scores)"),)),
    Mistake("zero-for-infinity", ((KEYS, "np.where(real[:, None, None, :], scores, 0)"),)),
    Mistake("mask-added", ((KEYS, "scores + real[:, None, None, :]"),)),
    Mistake("weights-missing", ((KEYS, "scores"), (WEIGHTED, "(softmax(scores) * real[:, None, None, :]) @ V"))),
    Mistake("embeddings-zeroed", ((KEYS, "scores"), ("embedding[ids]", "embedding[ids] * real[:, :, None]"))),
    Mistake("masked-too-late", ((KEYS, "scores"), ("out = (softmax(scores) @ V)", f"{LATE}\n    out = (weights @ V)"))),
    Mistake(
        "mean-and-untouched",
        ((KEYS, "np.where(real[:, None, :, None], scores, -1e9)"), (POOLED, "out.mean(axis=1)")),
    ),
    Mistake("by-length", ((KEYS, COUNTED),)),
    Mistake("empty-rows", ((KEYS, f"np.where({BOTH}, scores, -np.inf)"),)),
    Mistake("mean-of-everything", ((POOLED, "out.mean(axis=1)"),)),
    Mistake("divided-by-all", ((POOLED, "(out * real[:, :, None]).mean(axis=1)"),)),
    Mistake("first-sentence", ((KEYS, "np.where(real[0], scores, -1e9)"),)),
)

GRADER = Grader(cases, MISTAKES)
