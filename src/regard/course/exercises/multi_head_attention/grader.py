"""Calls and known mistakes of `multi-head-attention`: the split of the columns, √d_head, no W_o."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.edge_inputs import heads, merged
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import EPS, zero_scores_lost


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(T: int, d_model: int, n_heads: int, about: str = "") -> Call:
        Q, K, V = (numbers(rng, T, d_model) for _ in range(3))
        return call("multi_head_attention", Q, K, V, n_heads, about=about)

    high = [np.concatenate(pair, axis=1) for pair in zip(large_scores(rng, 3, 3), large_scores(rng, 3, 3), strict=True)]
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

MISTAKES = (
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("root-of-model", ((SCALE, " / np.sqrt(d_model)"),)),
    Mistake("root-of-length", ((SCALE, " / np.sqrt(T)"),)),
    Mistake("root-of-heads", ((SCALE, " / np.sqrt(n_heads)"),)),
    *(Mistake("fixed-scale", ((SCALE, f" / {divisor}"),)) for divisor in ("np.sqrt(2)", "np.sqrt(3)", "2", "8")),
    Mistake("no-root", ((SCALE, " / d_head"),)),
    Mistake("over-queries", (("axis=-1", "axis=-2"),)),
    Mistake("over-heads", (("axis=-1", "axis=0"),)),
    Mistake("interleaved", ((SPLIT, "x.reshape(T, d_head, n_heads).transpose(2, 0, 1)"),)),
    Mistake(
        "interleaved-both",
        (
            (SPLIT, "x.reshape(T, d_head, n_heads).transpose(2, 0, 1)"),
            (MERGED, "heads.transpose(1, 2, 0).reshape(T, d_model)"),
        ),
    ),
    Mistake("split-by-reshape", ((SPLIT, "x.reshape(n_heads, T, d_head)"),)),
    Mistake("both-by-reshape", ((SPLIT, "x.reshape(n_heads, T, d_head)"), (MERGED, "heads.reshape(T, d_model)"))),
    Mistake("merged-by-reshape", ((MERGED, "heads.reshape(T, d_model)"),)),
    Mistake("merged-interleaved", ((MERGED, "heads.transpose(1, 2, 0).reshape(T, d_model)"),)),
    Mistake("heads-reversed", ((MERGED, "heads[::-1].transpose(1, 0, 2).reshape(T, d_model)"),)),
    Mistake("every-head-first", ((SPLIT, "np.repeat(x[None, :, :d_head], n_heads, axis=0)"),)),
    Mistake("one-big-head", (("T, d_model = Q.shape", "T, d_model = Q.shape\n    n_heads = 1"),)),
    Mistake("mean-of-heads", ((MERGED, "heads.mean(axis=0)"),)),
    Mistake("heads-below", ((MERGED, "heads.reshape(n_heads * T, d_head)"),)),
    Mistake("not-merged", ((MERGED, "heads"),)),
    Mistake("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Mistake("unstable", ((POWERS, "np.exp(scores)"),)),
    Mistake("one-maximum", ((POWERS, "np.exp(scores - scores.max())"),)),
    Mistake("one-maximum", ((POWERS, "np.exp(scores - scores.max(axis=(-2, -1), keepdims=True))"),)),
    Mistake("zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)),)),
    *(
        Mistake("eps-added", ((WEIGHTS, f"weights = powers / (powers.sum(axis=-1, keepdims=True) + {eps})"),))
        for eps in EPS
    ),
    Mistake("causal", ((POWERS, POWERS.replace("scores", "np.where(np.tri(T) > 0, scores, -np.inf)")),)),
    Mistake("returns-values", ((MERGED, "V"),)),
    Mistake("returns-queries", ((MERGED, "Q"),)),
    Mistake("mean-of-values", ((MERGED, "np.ones((T, 1)) * V.mean(axis=0)"),)),
    Mistake("keys-ask", (("q @ k.transpose(0, 2, 1)", "k @ q.transpose(0, 2, 1)"),)),
    Mistake("weights-transposed", (("weights @ v", "weights.transpose(0, 2, 1) @ v"),)),
    Mistake("keys-for-values", (("split(Q), split(K), split(V)", "split(Q), split(V), split(K)"),)),
    Mistake("shared-weights", ((WEIGHTS, f"{WEIGHTS}\n    weights = weights.mean(axis=0)"),)),
    Mistake("first-weights", ((WEIGHTS, f"{WEIGHTS}\n    weights = weights[:1]"),)),
    Mistake("rounded", ((MERGED, f"np.round({MERGED}, 4)"),)),
    Mistake("mutates-input", (("q, k, v =", "Q /= np.sqrt(d_head)\n    q, k, v ="), (SCALE, ""))),
    Mistake("hard-coded", ((MERGED, "np.array([[0.7311, 0.5], [0.5, 0.7311]])"),)),
    Mistake("between-heads", ((SPLIT, "x.reshape(T, n_heads, d_head)"), (MERGED, "heads.reshape(T, d_model)"))),
    Mistake(
        "between-heads",
        ((SPLIT, "x.reshape(T, n_heads, d_head)"), (MERGED, "heads.swapaxes(0, 1).reshape(T, d_model)")),
    ),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
