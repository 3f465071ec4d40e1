"""The backends for NumPy arrays: blocked (fast), then reference (the definition)."""

from math import prod

import numpy as np

from regard.dispatch.backend import YES, Answer, Backend
from regard.dispatch.call import Call
from regard.kernels import blocked
from regard.kinds import Array
from regard.memory import require
from regard.records import Statistics
from regard.reference import log_sum_exp, statistics_of
from regard.reference.attention import attention_scores, weighted_sum
from regard.reference.exponentials import computing_dtype, softmax


def _blocked_answer(call: Call) -> Answer:
    return Answer(False, "no-dropout", {"backend": "reference"}) if call.dropout else YES


def _blocked(call: Call) -> tuple[Array, Statistics]:
    return blocked.attention(call.q, call.k, call.v, **call.seeing)


def _reference(call: Call) -> tuple[Array, Statistics]:
    sizes = call.sizes
    shape = (sizes.B, sizes.H, sizes.T, sizes.S)
    # Scores, weights and the mask's matrix live at once.
    require(3 * prod(shape) * computing_dtype(call.q).itemsize, key="weights-too-large", shape=shape)
    mask = None
    if call.bound is not None and sizes.T and sizes.S:
        seen = call.bound.block(slice(0, sizes.T), slice(0, sizes.S))
        mask = np.broadcast_to(seen, shape)
    scores = attention_scores(call.q, call.k, mask, call.bias, call.scale, call.softcap)
    weights = softmax(scores)
    found = Statistics()
    if call.see is not None:
        found = statistics_of(weights, log_sum_exp(scores), call.see, scores, call.padding)
    if call.dropout:
        # NumPy's global generator, as torch has its own: np.random.seed makes it repeatable.
        kept = np.random.random(weights.shape) >= call.dropout
        weights = np.where(kept, weights / (1 - call.dropout), 0).astype(weights.dtype)
    return weighted_sum(weights, call.q, call.v, mask), found


def rectangle(call: Call, lse: Array, rows: slice, cols: slice) -> Array:
    """Exact weights of rows × cols."""
    return blocked.rectangle(call.q, call.k, lse, rows, cols, **call.options)


BACKENDS = (
    Backend("blocked", _blocked_answer, _blocked),
    Backend("reference", lambda _: Answer(True, "whole-matrix"), _reference),
)
