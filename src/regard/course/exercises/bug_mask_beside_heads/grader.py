"""Calls and known mistakes of `bug-mask-beside-heads`: as many samples as heads (no error), fewer, more, one."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import SCORES, Edge, masked_edges, merged, with_scores
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import FILLS


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def attention(B: int, n_heads: int, about: str, T: int = 4, S: int = 5, D: int = 6) -> Call:
        Q, K, V = numbers(rng, B, T, D), numbers(rng, B, S, D), numbers(rng, B, S, D)
        seen = rng.permuted(np.tile(np.arange(S) < 3, (B, T, 1)), axis=-1)  # three keys of S
        return call("multi_head_attention", Q, K, V, seen, n_heads, about=about)

    def two_heads(*samples: Edge) -> Call:
        """Each sample with its own edge case and mask; both heads have the same queries."""
        Q = np.stack([merged(np.stack([edge.q, edge.q])) for edge in samples])
        K = np.stack([merged(np.stack([edge.k, edge.k])) for edge in samples])
        mask = np.stack([edge.visible for edge in samples if edge.visible is not None])
        return call("multi_head_attention", Q, K, numbers(rng, *K.shape), mask, 2, about=samples[0].about)

    def unmasked(about: str) -> Edge:
        return Edge(about, *with_scores(rng, SCORES[about](rng, 3, 4)), np.ones((3, 4), dtype=bool))

    return [
        attention(2, 2, "as-many"),
        attention(3, 3, "as-many", T=2),
        attention(3, 2, "more-samples"),
        attention(2, 3, "more-heads", T=1),
        attention(1, 2, "one-sample"),
        attention(2, 1, "one-head"),
        attention(4, 2, "all-different", T=5, S=7),
        attention(2, 2, "one-key", T=3, S=1),
        *(two_heads(*(unmasked(about) for _ in range(2))) for about in SCORES),
        attention(3, 3, "all-the-same", T=3, S=3, D=9),
        *(two_heads(*pair) for pair in zip(masked_edges(rng, 3, 4), masked_edges(rng, 3, 4), strict=True)),
    ]


FILL = "np.where(mask[:, None], scores, -np.inf)"
TILED = "np.tile(mask, (n_heads, 1, 1)).reshape(scores.shape)"
BY_HEAD = "np.stack([np.where(mask[{}], scores[:, h], -np.inf) for h in range(n_heads)], axis=1)"

LATE = "weights = softmax(scores) * mask[:, None]\n    weights = weights / weights.sum(axis=-1, keepdims=True)"

MISTAKES = (
    *(Mistake("fill-too-high", ((FILL, FILL.replace("-1e9", fill).replace("-np.inf", fill)),)) for fill in FILLS),
    Mistake("untouched", ((FILL, "np.where(mask, scores, -np.inf)"),)),
    Mistake("samples-mixed", ((FILL, f"np.where({TILED}, scores, -np.inf)"),)),
    Mistake("heads-before-samples", ((FILL, "np.where(np.repeat(mask[None], n_heads, axis=0), scores, -np.inf)"),)),
    *(Mistake("mask-by-head", ((FILL, BY_HEAD.format(place)),)) for place in ("h", "h % len(mask)")),
    Mistake(
        "masked-too-late",
        ((FILL, "scores"), ("return merge_heads(softmax(scores) @ V)", f"{LATE}\n    return merge_heads(weights @ V)")),
    ),
    Mistake("first-sample", ((FILL, "np.where(mask[0], scores, -np.inf)"),)),
    Mistake("seen-by-any", ((FILL, "np.where(mask.any(axis=0), scores, -np.inf)"),)),
    Mistake("seen-by-all", ((FILL, "np.where(mask.all(axis=0), scores, -np.inf)"),)),
    Mistake("first-head-only", ((FILL, "scores.copy()\n    scores[:, 0] = np.where(mask, scores[:, 0], -np.inf)"),)),
    Mistake("axis-too-late", ((FILL, "np.where(mask[:, :, None], scores, -np.inf)"),)),
    Mistake("one-row-for-all", ((FILL, "np.where(mask[:, None, :1], scores, -np.inf)"),)),
    Mistake("reversed", ((FILL, "np.where(mask[:, None], -np.inf, scores)"),)),
    Mistake("no-mask", ((FILL, "scores"),)),
    Mistake("zero-for-infinity", ((FILL, "np.where(mask[:, None], scores, 0)"),)),
    Mistake("mask-added", ((FILL, "scores + mask[:, None]"),)),
    Mistake("mask-after-softmax", ((FILL, "scores"), ("softmax(scores) @ V", "(softmax(scores) * mask[:, None]) @ V"))),
)

GRADER = Grader(cases, MISTAKES)
