"""Calls and known mistakes of `bug-mask-polarity`. Only `encode` is called: either end may be fixed."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import MASKED, SCORES, with_scores
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import FILLS

VOCABULARY, D_MODEL, D_K, D_V = 7, 3, 2, 5


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def encode(lengths: Sequence[int], about: str, left: bool = False, repeated: bool = False) -> Call:
        longest = max(lengths)
        ids = rng.integers(1, 2 if repeated else VOCABULARY, (len(lengths), longest))
        for row, length in zip(ids, lengths, strict=True):
            row[: longest - length] = 0
        weights = [numbers(rng, D_MODEL, width) for width in (D_K, D_K, D_V)]
        ids = ids if left else ids[:, ::-1].copy()
        return call("encode", ids, numbers(rng, VOCABULARY, D_MODEL), *weights, about=about)

    def one_hot(scores: np.ndarray, about: str) -> Call:
        """Four tokens, PAD = 0 among them; `scores` of a query token (row) and a key token (column)."""
        ids = np.array([[1, 2, 3, 0], [3, 1, 0, 0]])
        return call("encode", ids, np.eye(4), *with_scores(rng, scores), numbers(rng, 4, 3), about=about)

    words = np.tile([False, True, True, True], (4, 1))
    return [
        encode([4, 2], "ragged"),
        encode([4, 4], "full"),
        encode([1, 4, 3], "one-token"),
        encode([2, 4], "left", left=True),
        encode([5, 1, 3, 5, 2, 4], "all-different"),
        encode([3, 2, 3], "all-the-same"),
        encode([4], "one-sample"),
        encode([1, 1], "one-key"),
        encode([2, 2], "full", repeated=True),
        *(one_hot(scores(rng, 4, 4), about) for about, scores in SCORES.items()),
        *(one_hot(scores(rng, words), about) for about, scores in MASKED.items()),
    ]


FILL = "np.where(mask[:, None, :], scores, -np.inf)"
COUNTED = "np.where(np.arange(K.shape[1]) < mask.sum(axis=1)[:, None, None], scores, -np.inf)"
LAST = "return softmax(scores) @ V"
ALONE = f"weights = np.nan_to_num(softmax(scores))\n    {LAST.replace('softmax(scores)', 'weights')}"

LATE = "weights = softmax(scores) * mask[:, None, :]\n    weights = weights / weights.sum(axis=-1, keepdims=True)"

MISTAKES = (
    *(Mistake("fill-too-high", ((FILL, FILL.replace("-1e9", fill).replace("-np.inf", fill)),)) for fill in FILLS),
    Mistake("untouched", ((FILL, "np.where(mask[:, None, :], -np.inf, scores)"),)),
    Mistake("nan-swept-away", ((FILL, "np.where(mask[:, None, :], -np.inf, scores)"), (LAST, ALONE))),
    Mistake("reversed-with-big-number", ((FILL, "np.where(mask[:, None, :], -1e9, scores)"),)),
    Mistake("reversed-with-big-number", ((FILL, "scores - 1e9 * mask[:, None, :]"),)),
    Mistake("no-mask", ((FILL, "scores"),)),
    Mistake("zero-for-infinity", ((FILL, "np.where(mask[:, None, :], scores, 0)"),)),
    Mistake("mask-added", ((FILL, "scores + mask[:, None, :]"),)),
    Mistake("mask-multiplied", ((FILL, "scores"), (LAST, "return softmax(scores) * mask[:, None, :] @ V"))),
    Mistake("masked-too-late", ((FILL, "scores"), (LAST, f"{LATE}\n    return weights @ V"))),
    Mistake("by-length", ((FILL, COUNTED),)),
    Mistake(
        "embeddings-zeroed", ((FILL, "scores"), ("embedding[ids]", "embedding[ids] * padding_mask(ids)[..., None]"))
    ),
    Mistake("queries-hidden", ((FILL, "np.where(mask[:, :, None], scores, -np.inf)"),)),
    Mistake("queries-hidden", ((FILL, "np.where(mask[:, :, None], scores, -1e9)"),)),
    Mistake("queries-too", ((LAST, "return softmax(scores) @ V * mask[:, :, None]"),)),
    Mistake("queries-as-well", ((FILL, "np.where(mask[:, None, :] & mask[:, :, None], scores, -np.inf)"),)),
    Mistake("queries-as-well", ((FILL, "np.where(mask[:, None, :] & mask[:, :, None], scores, -1e9)"),)),
    Mistake("first-sentence", ((FILL, "np.where(mask[0], scores, -np.inf)"),)),
)

GRADER = Grader(cases, MISTAKES)
