"""Calls and known mistakes of `scaled-dot-product`: any leading axes, a boolean mask, fully masked queries."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call
from regard.course.exercises.edge_inputs import edges, masked_edges
from regard.course.exercises.random_inputs import large_scores, numbers
from regard.course.exercises.shared_mistakes import EPS, FILLS, zero_scores_lost

NAME = "scaled_dot_product_attention"


def some(rng: np.random.Generator, T: int, S: int) -> np.ndarray:
    """A mask T S in which each row has two or more visible keys, but not all."""
    return (np.arange(S) - 2 * np.arange(T)[:, None] + rng.integers(S)) % S < S // 2 + 1


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def drawn(front: tuple[int, ...], T: int, S: int, d_k: int, d_v: int) -> tuple[np.ndarray, ...]:
        return numbers(rng, *front, T, d_k), numbers(rng, *front, S, d_k), numbers(rng, *front, S, d_v)

    def padded(B: int, H: int, T: int, S: int, d_k: int, d_v: int) -> Sequence[np.ndarray]:
        """Heads with a padding mask (B, 1, 1, S), different for each sample."""
        real = np.arange(S) < (1 + np.arange(B) % (S - 1))[:, None, None, None]
        return *drawn((B, H), T, S, d_k, d_v), real

    seen = rng.permutation([2, 4])[:, None, None]  # number of keys without padding, per sample
    nowhere = some(rng, 3, 4)
    nowhere[rng.integers(3)] = False
    return [
        call(NAME, *drawn((), 3, 5, 4, 2)),
        call(NAME, *drawn((2,), 3, 4, 2, 5), about="batch"),
        call(NAME, *drawn((), 3, 5, 2, 4), some(rng, 3, 5), about="mask"),
        call(NAME, *drawn((), 4, 4, 3, 3), np.tri(4, dtype=bool), about="causal"),
        call(NAME, *drawn((2,), 3, 5, 4, 2), np.arange(5) < seen, about="padding"),
        call(NAME, *drawn((2, 3), 2, 4, 5, 3), some(rng, 2, 4), about="heads"),
        call(NAME, *drawn((), 3, 4, 2, 5), nowhere, about="nowhere"),
        call(NAME, *large_scores(rng, 3, 5), numbers(rng, 5, 2), some(rng, 3, 5), about="large"),
        call(NAME, *padded(2, 2, 3, 4, 5, 6), about="samples-as-heads"),
        call(NAME, *padded(2, 3, 4, 5, 6, 7), about="all-different"),
        call(NAME, *padded(3, 3, 3, 3, 3, 3), about="all-the-same"),
        call(NAME, *drawn((2,), 3, 4, 5, 2), np.stack([some(rng, 3, 4), ~some(rng, 3, 4)]), about="each-its-mask"),
        call(NAME, *drawn((3,), 2, 4, 5, 3), np.array([[True, False, True, True]]), about="keys-only"),
        call(NAME, *drawn((1,), 3, 1, 2, 4), about="one-key"),
        *(call(NAME, q, k, numbers(rng, 4, 5), about=about) for about, q, k, _ in edges(rng, 3, 4)),
        *(
            call(NAME, q, k, numbers(rng, 4, 5), visible, about=about)
            for about, q, k, visible in masked_edges(rng, 3, 4, empty_rows=True)
        ),
    ]


SCALE = " / np.sqrt(Q.shape[-1])"
HIDDEN = "np.where(mask, scores, -np.inf)"
HIDE = f"scores = {HIDDEN}"
LARGEST = "np.where(np.isinf(largest), 0, largest)"
WEIGHTS = "weights = powers / np.where(total == 0, 1, total)"
RETURN = "return weights @ V, weights"
POWERS = "np.exp(scores - largest)"
LATE = f"{WEIGHTS}\n    weights = weights if mask is None else weights * mask"
AGAIN = "weights.sum(axis=-1, keepdims=True)"

MISTAKES = (
    Mistake("no-scale", ((SCALE, ""),)),
    Mistake("no-root", ((SCALE, " / Q.shape[-1]"),)),
    Mistake("root-of-length", ((SCALE, " / np.sqrt(K.shape[-2])"),)),
    Mistake("root-of-queries", ((SCALE, " / np.sqrt(Q.shape[-2])"),)),
    Mistake("root-of-values", ((SCALE, " / np.sqrt(V.shape[-1])"),)),
    *(Mistake("fixed-scale", ((SCALE, f" / {divisor}"),)) for divisor in ("np.sqrt(2)", "np.sqrt(3)", "2", "8")),
    Mistake("over-queries", (("axis=-1", "axis=-2"),)),
    Mistake("axis-one", (("axis=-1", "axis=1"),)),
    Mistake("all-axes-turned", (("K.swapaxes(-1, -2)", "K.T"),)),
    Mistake("no-softmax", ((WEIGHTS, "weights = scores"),)),
    Mistake("unstable", ((LARGEST, "0"),)),
    Mistake("one-maximum", (("scores.max(axis=-1, keepdims=True)", "scores.max()"),)),
    Mistake("one-maximum", (("scores.max(axis=-1, keepdims=True)", "scores.max(axis=(-2, -1), keepdims=True)"),)),
    Mistake("mask-unused", ((HIDE, "pass"),)),
    Mistake("polarity", ((HIDDEN, "np.where(mask, -np.inf, scores)"),)),
    Mistake("mask-added", ((HIDDEN, "scores + mask"),)),
    Mistake("mask-multiplied", ((HIDDEN, "scores * mask"),)),
    Mistake("zero-times-infinity", ((HIDDEN, "scores + ~mask * -np.inf"),)),
    Mistake(
        "mask-after-softmax",
        ((HIDE, "pass"), (WEIGHTS, LATE)),
    ),
    Mistake("masked-too-late", ((HIDE, "pass"), (WEIGHTS, f"{LATE}\n    weights = weights / {AGAIN}"))),
    Mistake("masked-too-late", ((HIDE, "pass"), (WEIGHTS, f"{LATE}\n    weights = np.nan_to_num(weights / {AGAIN})"))),
    *(Mistake("fill-too-high", ((HIDDEN, f"np.where(mask, scores, {fill})"),)) for fill in FILLS),
    *(
        Mistake(
            "fill-too-high",
            ((HIDDEN, f"np.where(mask, scores, {fill})"), (WEIGHTS, f"{LATE}.any(axis=-1, keepdims=True)")),
        )
        for fill in FILLS
    ),
    *(Mistake("fill-too-high", ((HIDDEN, f"scores + ~mask * {fill}"),)) for fill in FILLS),
    Mistake("zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)),)),
    Mistake(
        "zero-score-zero-weight", ((POWERS, zero_scores_lost(POWERS)), ("np.where(total == 0, 1, total)", "total"))
    ),
    *(Mistake("eps-added", ((WEIGHTS, f"weights = powers / (total + {eps})"),)) for eps in EPS),
    Mistake(
        "causal-not-asked",
        (
            (
                " / np.sqrt(Q.shape[-1])",
                " / np.sqrt(Q.shape[-1])\n    scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)",
            ),
        ),
    ),
    Mistake("mask-transposed", (("np.where(mask,", "np.where(mask.swapaxes(-1, -2),"),)),
    Mistake("nowhere-nan", ((LARGEST, "largest"),)),
    Mistake("nowhere-even", ((HIDDEN, "np.where(mask, scores, -1e9)"),)),
    Mistake("nowhere-unmasked", ((HIDDEN, "scores + ~mask * -1e9"),)),
    Mistake("nowhere-weights-nan", ((LARGEST, "largest"), (RETURN, "return np.nan_to_num(weights @ V), weights"))),
    Mistake("wrong-order", ((RETURN, "return weights, weights @ V"),)),
    Mistake("output-only", ((RETURN, "return weights @ V"),)),
    Mistake("scores-for-weights", ((RETURN, "return weights @ V, scores"),)),
    Mistake("returns-values", ((RETURN, "return V, weights"),)),
    Mistake("mean-of-values", ((RETURN, "return V.mean(axis=-2, keepdims=True) + 0 * (weights @ V), weights"),)),
    Mistake("keys-for-values", (("scores = Q", "K, V = V, K\n    scores = Q"),)),
    Mistake("rounded", ((RETURN, "return np.round(weights @ V, 3), np.round(weights, 3)"),)),
    Mistake("mutates-input", (("scores = Q", "Q /= np.sqrt(Q.shape[-1])\n    scores = Q"), (SCALE, ""))),
    Mistake("hard-coded", ((RETURN, "return np.array([[16.0445, 3.9555]]), np.array([[0.40111, 0.19778, 0.40111]])"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-5, atol=1e-6))
