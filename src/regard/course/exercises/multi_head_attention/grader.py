"""Calls and known slips of `multi-head-attention`: how the columns are split, the root of one head's width, no W_o."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, Tolerance, call
from regard.course.exercises.edge_inputs import heads, merged
from regard.course.exercises.random_inputs import numbers, towering
from regard.course.exercises.shared_slips import EPS, zero_scores_lost


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(T: int, d_model: int, n_heads: int, about: str = "") -> Call:
        Q, K, V = (numbers(rng, T, d_model) for _ in range(3))
        return call("multi_head_attention", Q, K, V, n_heads, about=about)

    high = [np.concatenate(pair, axis=1) for pair in zip(towering(rng, 3, 3), towering(rng, 3, 3), strict=True)]
    return [
        drawn(5, 6, 3),
        drawn(3, 8, 2),
        drawn(4, 5, 1, about="one-head"),
        drawn(2, 3, 3, about="one-wide"),
        drawn(1, 6, 2, about="one-position"),
        call("multi_head_attention", *high, numbers(rng, 3, 8), 2, about="large"),
        drawn(3, 9, 3, about="all-the-same"),
        *(
            call("multi_head_attention", merged(q), merged(k), numbers(rng, 3, 8), 2, about=about)
            for about, q, k in heads(rng, 2, 3, 3)
        ),
    ]


SPLIT = "x.reshape(T, n_heads, d_head).transpose(1, 0, 2)"
SCALE = " / np.sqrt(d_head)"
POWERS = "np.exp(scores - scores.max(axis=-1, keepdims=True))"
WEIGHTS = "weights = powers / powers.sum(axis=-1, keepdims=True)"
MERGED = "heads.transpose(1, 0, 2).reshape(T, d_model)"

SLIPS = (
    Slip("no-scale", ((SCALE, ""),)),
    Slip("root-of-model", ((SCALE, " / np.sqrt(d_model)"),)),
    Slip("root-of-length", ((SCALE, " / np.sqrt(T)"),)),
    Slip("root-of-heads", ((SCALE, " / np.sqrt(n_heads)"),)),
    *(Slip("fixed-scale", ((SCALE, f" / {divisor}"),)) for divisor in ("np.sqrt(2)", "np.sqrt(3)", "2", "8")),
    Slip("no-root", ((SCALE, " / d_head"),)),
    Slip("over-queries", (("axis=-1", "axis=-2"),)),
    Slip("over-heads", (("axis=-1", "axis=0"),)),
    Slip("interleaved", ((SPLIT, "x.reshape(T, d_head, n_heads).transpose(2, 0, 1)"),)),
    Slip(
        "interleaved-both",
        (
            (SPLIT, "x.reshape(T, d_head, n_heads).transpose(2, 0, 1)"),
            (MERGED, "heads.transpose(1, 2, 0).reshape(T, d_model)"),
        ),
    ),
    Slip("split-by-reshape", ((SPLIT, "x.reshape(n_heads, T, d_head)"),)),
    Slip("both-by-reshape", ((SPLIT, "x.reshape(n_heads, T, d_head)"), (MERGED, "heads.reshape(T, d_model)"))),
    Slip("merged-by-reshape", ((MERGED, "heads.reshape(T, d_model)"),)),
    Slip("merged-interleaved", ((MERGED, "heads.transpose(1, 2, 0).reshape(T, d_model)"),)),
    Slip("heads-reversed", ((MERGED, "heads[::-1].transpose(1, 0, 2).reshape(T, d_model)"),)),
    Slip("every-head-first", ((SPLIT, "np.repeat(x[None, :, :d_head], n_heads, axis=0)"),)),
    Slip("one-big-head", (("T, d_model = Q.shape", "T, d_model = Q.shape\n    n_heads = 1"),)),
    Slip("mean-of-heads", ((MERGED, "heads.mean(axis=0)"),)),
    Slip("heads-below", ((MERGED, "heads.reshape(n_heads * T, d_head)"),)),
    Slip("not-merged", ((MERGED, "heads"),)),
    Slip("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Slip("unstable", ((POWERS, "np.exp(scores)"),)),
    Slip("one-maximum", ((POWERS, "np.exp(scores - scores.max())"),)),
    Slip("one-maximum", ((POWERS, "np.exp(scores - scores.max(axis=(-2, -1), keepdims=True))"),)),
    Slip("zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)),)),
    *(
        Slip("eps-added", ((WEIGHTS, f"weights = powers / (powers.sum(axis=-1, keepdims=True) + {eps})"),))
        for eps in EPS
    ),
    Slip("causal", ((POWERS, POWERS.replace("scores", "np.where(np.tri(T) > 0, scores, -np.inf)")),)),
    Slip("returns-values", ((MERGED, "V"),)),
    Slip("returns-queries", ((MERGED, "Q"),)),
    Slip("mean-of-values", ((MERGED, "np.ones((T, 1)) * V.mean(axis=0)"),)),
    Slip("keys-ask", (("q @ k.transpose(0, 2, 1)", "k @ q.transpose(0, 2, 1)"),)),
    Slip("weights-transposed", (("weights @ v", "weights.transpose(0, 2, 1) @ v"),)),
    Slip("keys-for-values", (("split(Q), split(K), split(V)", "split(Q), split(V), split(K)"),)),
    Slip("shared-weights", ((WEIGHTS, f"{WEIGHTS}\n    weights = weights.mean(axis=0)"),)),
    Slip("rounded", ((MERGED, f"np.round({MERGED}, 4)"),)),
    Slip("mutates-input", (("q, k, v =", "Q /= np.sqrt(d_head)\n    q, k, v ="), (SCALE, ""))),
    Slip("hard-coded", ((MERGED, "np.array([[0.7311, 0.5], [0.5, 0.7311]])"),)),
)

GRADER = Grader(cases, SLIPS, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
