"""Calls and known slips of `online-softmax`: ragged and whole blocks, and scores that rise, fall or are huge."""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Slip, call
from regard.course.exercises.edge_inputs import edges
from regard.course.exercises.random_inputs import numbers
from regard.course.exercises.shared_slips import EPS, zero_scores_lost

T, S, D_K, D_V = 2, 5, 3, 4


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def blocks(block: int, about: str, shift: Sequence[float] | float = 0.0, keys: int = S) -> Call:
        """`shift` moves the scores of a key by as much, and by four times as much for the second query."""
        Q, K, V = numbers(rng, T, D_K), numbers(rng, keys, D_K), numbers(rng, keys, D_V)
        if np.any(shift):
            # Whole numbers, and four of them, √4 = 2: float32 holds every score exactly, so only overflow is tried.
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
            for block, (about, q, k, _) in zip((3, 1, 2, 3, 2), edges(rng, 3, 4), strict=True)
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

SLIPS = (
    Slip("output-not-rescaled", ((OUTPUT, "output"),)),
    Slip("total-not-rescaled", ((TOTAL, "total"),)),
    Slip("nothing-rescaled", ((OUTPUT, "output"), (TOTAL, "total"))),
    Slip("rescaled-the-wrong-way", (("np.exp(top - new_top)", "np.exp(np.where(top > -np.inf, new_top - top, 0))"),)),
    Slip("blocks-averaged", source=HEAD + EACH_ALONE),
    Slip("rest-dropped", ((KEYS, "range(0, len(K) // block * block, block)"),)),
    Slip("last-block-only", (("total * rescale + ", ""), ("output * rescale[:, None] + ", ""))),
    Slip("latest-top", ((TOP, "scores.max(axis=-1)"),)),
    Slip("top-from-zero", ((START, "np.zeros(len(Q))"),)),
    Slip("one-top-for-all", ((TOP, "np.full(len(Q), max(top.max(), scores.max()))"),)),
    Slip("unstable", ((TOP, "np.zeros(len(Q))"), (START, "np.zeros(len(Q))"))),
    Slip("one-top-for-all", source=HEAD + WHOLE),
    Slip("zero-score-zero-weight", ((EACH, zero_scores_lost(EACH)),)),
    *(Slip("eps-added", ((RETURN, f"return output / (total[:, None] + {eps}), top + np.log(total)"),)) for eps in EPS),
    Slip("unstable", source=HEAD + NAIVE),
    Slip("over-queries", source=HEAD + OVER_QUERIES),
    Slip("not-divided", ((RETURN, "return output, top + np.log(total)"),)),
    Slip("lse-without-top", ((RETURN, "return output / total[:, None], np.log(total)"),)),
    Slip("lse-without-log", ((RETURN, "return output / total[:, None], top + total"),)),
    Slip("sum-for-lse", ((RETURN, "return output / total[:, None], total"),)),
    Slip("top-for-lse", ((RETURN, "return output / total[:, None], top"),)),
    Slip("lse-not-scaled", ((RETURN, "return output / total[:, None], np.logaddexp.reduce(Q @ K.T, axis=-1)"),)),
    Slip("no-scale", ((" / np.sqrt(Q.shape[-1])", ""),)),
    Slip("divided-by-d-k", (("np.sqrt(Q.shape[-1])", "Q.shape[-1]"),)),
    Slip("sqrt-length", (("np.sqrt(Q.shape[-1])", "np.sqrt(len(K))"),)),
    Slip("sqrt-block", (("np.sqrt(Q.shape[-1])", "np.sqrt(len(keys))"),)),
)

GRADER = Grader(cases, SLIPS)
