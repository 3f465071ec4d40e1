"""Calls and known slips of `bug-mask-beside-heads`: as many samples as heads (silent), fewer, more, one of either."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, call
from regard.course.exercises.drawing import numbers

D = 6


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def attention(B: int, n_heads: int, about: str, T: int = 4, S: int = 5) -> Call:
        Q, K, V = numbers(rng, B, T, D), numbers(rng, B, S, D), numbers(rng, B, S, D)
        seen = rng.permuted(np.tile(np.arange(S) < 3, (B, T, 1)), axis=-1)  # three keys of S
        return call("multi_head_attention", Q, K, V, seen, n_heads, about=about)

    return [
        attention(2, 2, "as-many"),
        attention(3, 3, "as-many", T=2),
        attention(3, 2, "more-samples"),
        attention(2, 3, "more-heads", T=1),
        attention(1, 2, "one-sample"),
        attention(2, 1, "one-head"),
    ]


FILL = "np.where(mask[:, None], scores, -np.inf)"
TILED = "np.tile(mask, (n_heads, 1, 1)).reshape(scores.shape)"
BY_HEAD = "np.stack([np.where(mask[{}], scores[:, h], -np.inf) for h in range(n_heads)], axis=1)"

SLIPS = (
    Slip("untouched", ((FILL, "np.where(mask, scores, -np.inf)"),)),
    Slip("samples-mixed", ((FILL, f"np.where({TILED}, scores, -np.inf)"),)),
    Slip("heads-before-samples", ((FILL, "np.where(np.repeat(mask[None], n_heads, axis=0), scores, -np.inf)"),)),
    *(Slip("mask-by-head", ((FILL, BY_HEAD.format(place)),)) for place in ("h", "h % len(mask)")),
    Slip("first-sample", ((FILL, "np.where(mask[0], scores, -np.inf)"),)),
    Slip("seen-by-any", ((FILL, "np.where(mask.any(axis=0), scores, -np.inf)"),)),
    Slip("seen-by-all", ((FILL, "np.where(mask.all(axis=0), scores, -np.inf)"),)),
    Slip("first-head-only", ((FILL, "scores.copy()\n    scores[:, 0] = np.where(mask, scores[:, 0], -np.inf)"),)),
    Slip("axis-too-late", ((FILL, "np.where(mask[:, :, None], scores, -np.inf)"),)),
    Slip("one-row-for-all", ((FILL, "np.where(mask[:, None, :1], scores, -np.inf)"),)),
    Slip("reversed", ((FILL, "np.where(mask[:, None], -np.inf, scores)"),)),
    Slip("no-mask", ((FILL, "scores"),)),
    Slip("zero-for-infinity", ((FILL, "np.where(mask[:, None], scores, 0)"),)),
    Slip("mask-added", ((FILL, "scores + mask[:, None]"),)),
    Slip("mask-after-softmax", ((FILL, "scores"), ("softmax(scores) @ V", "(softmax(scores) * mask[:, None]) @ V"))),
)

GRADER = Grader(cases, SLIPS)
