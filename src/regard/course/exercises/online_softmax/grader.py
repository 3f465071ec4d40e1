"""Calls and known mistakes of `online-softmax`: partial and full blocks; rising, falling and large scores."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_mistakes import EPS, zero_scores_lost

T, S, D_K, D_V = 2, 5, 3, 4


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def blocks(block: int, about: str, shift: Sequence[float] | float = 0.0, keys: int = S) -> Call:
        """`shift` is added to the scores of a key, four times as much for the second query."""
        Q, K, V = numbers(rng, T, D_K), numbers(rng, keys, D_K), numbers(rng, keys, D_V)
        if np.any(shift):
            # Integers and d_k = 4, √4 = 2: float32 represents every score exactly, so only overflow is tested.
            Q, K = (rng.integers(-1, 2, (size, 4)).astype(float) for size in (T, keys))
            Q[:, 0], K[:, 0] = [2, 8], shift
        return call("online_softmax_attention", Q, K, V, block, about=about)

    return [
        blocks(2, "ragged"),
        blocks(2, "whole", keys=4),
        blocks(1, "one-by-one"),
        blocks(8, "one-block"),
        blocks(2, "rising", shift=[-2000.0, -2000.0, 0.0, 0.0, 0.0]),
        blocks(2, "falling", shift=[2000.0, 2000.0, 0.0, 0.0, 0.0]),
        blocks(3, "large", shift=2000.0),
        blocks(3, "small", shift=-2000.0),
        blocks(2, "one-key", keys=1),
        call("online_softmax_attention", *(numbers(rng, 3, 3) for _ in range(3)), 2, about="all-the-same"),
        *(
            call("online_softmax_attention", q, k, numbers(rng, 4, D_V), block, about=about)
            for block, (about, q, k, _) in zip((3, 1, 2, 3, 1, 2), edges(rng, 3, 4), strict=True)
        ),
    ]


EACH = "np.exp(scores - new_top[:, None])"
KEYS = "range(0, len(K), block)"
RETURN = "return output / total[:, None], top + np.log(total)"
OUTPUT, TOTAL = "output * rescale[:, None]", "total * rescale"
TOP, START = "np.maximum(top, scores.max(axis=-1))", "np.full(len(Q), -np.inf)"
EACH_ALONE = """    outputs, parts = [], []
    for start in range(0, len(K), block):
        scores = Q @ K[start : start + block].T / np.sqrt(Q.shape[-1])
        parts.append(np.logaddexp.reduce(scores, axis=-1))
        outputs.append(np.exp(scores - parts[-1][:, None]) @ V[start : start + block])
    return np.mean(outputs, axis=0), np.logaddexp.reduce(parts, axis=0)
"""
OVER_QUERIES = """    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    return np.exp(scores - np.logaddexp.reduce(scores, axis=0)) @ V, np.logaddexp.reduce(scores, axis=-1)
"""
WHOLE = """    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    e = np.exp(scores - scores.max())
    return e @ V / e.sum(axis=-1, keepdims=True), scores.max() + np.log(e.sum(axis=-1))
"""
NAIVE = """    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    lse = np.log(np.exp(scores).sum(axis=-1))
    return np.exp(scores - lse[:, None]) @ V, lse
"""
HEAD = "import numpy as np\n\n\ndef online_softmax_attention(Q, K, V, block):\n"

MISTAKES = (
    Mistake("output-not-rescaled", ((OUTPUT, "output"),)),
    Mistake("total-not-rescaled", ((TOTAL, "total"),)),
    Mistake("nothing-rescaled", ((OUTPUT, "output"), (TOTAL, "total"))),
    Mistake(
        "rescaled-the-wrong-way", (("np.exp(top - new_top)", "np.exp(np.where(top > -np.inf, new_top - top, 0))"),)
    ),
    Mistake("blocks-averaged", source=HEAD + EACH_ALONE),
    Mistake("rest-dropped", ((KEYS, "range(0, len(K) // block * block, block)"),)),
    Mistake("last-block-only", (("total * rescale + ", ""), ("output * rescale[:, None] + ", ""))),
    Mistake("latest-top", ((TOP, "scores.max(axis=-1)"),)),
    Mistake("top-from-zero", ((START, "np.zeros(len(Q))"),)),
    Mistake("one-top-for-all", ((TOP, "np.full(len(Q), max(top.max(), scores.max()))"),)),
    Mistake("unstable", ((TOP, "np.zeros(len(Q))"), (START, "np.zeros(len(Q))"))),
    Mistake("one-top-for-all", source=HEAD + WHOLE),
    Mistake("zero-score-zero-weight", ((EACH, zero_scores_lost(EACH)),)),
    *(
        Mistake("eps-added", ((RETURN, f"return output / (total[:, None] + {eps}), top + np.log(total)"),))
        for eps in EPS
    ),
    Mistake("unstable", source=HEAD + NAIVE),
    Mistake("over-queries", source=HEAD + OVER_QUERIES),
    Mistake("not-divided", ((RETURN, "return output, top + np.log(total)"),)),
    Mistake("lse-without-top", ((RETURN, "return output / total[:, None], np.log(total)"),)),
    Mistake("lse-without-log", ((RETURN, "return output / total[:, None], top + total"),)),
    Mistake("sum-for-lse", ((RETURN, "return output / total[:, None], total"),)),
    Mistake("top-for-lse", ((RETURN, "return output / total[:, None], top"),)),
    Mistake("lse-not-scaled", ((RETURN, "return output / total[:, None], np.logaddexp.reduce(Q @ K.T, axis=-1)"),)),
    Mistake("no-scale", ((" / np.sqrt(Q.shape[-1])", ""),)),
    Mistake("divided-by-d-k", (("np.sqrt(Q.shape[-1])", "Q.shape[-1]"),)),
    Mistake("sqrt-length", (("np.sqrt(Q.shape[-1])", "np.sqrt(len(K))"),)),
    Mistake("sqrt-block", (("np.sqrt(Q.shape[-1])", "np.sqrt(len(keys))"),)),
    Mistake("rest-dropped", ((KEYS, "range(0, len(K) // block * block or len(K), block)"),)),
    Mistake(
        "blocks-overlap",
        (
            (
                "keys, values = K[start : start + block], V[start : start + block]",
                "start = max(0, min(start, len(K) - block))\n"
                "        keys, values = K[start : start + block], V[start : start + block]",
            ),
        ),
    ),
    Mistake("base-two", ((RETURN, "return output / total[:, None], (top + np.log(total)) / np.log(2)"),)),
)

GRADER = Grader(cases, MISTAKES)
