"""`Backend` and `Support`, and the backends for NumPy arrays: blocked (fast), then reference (the definition)."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import Array
from regard.attention_call import AttentionCall
from regard.kernels import blocked
from regard.memory import require_bytes
from regard.messages import say
from regard.records import Statistics
from regard.reference import log_sum_exp, statistics_of
from regard.reference.attention import attention_scores, computing_dtype, softmax, weighted_sum


class Support(NamedTuple):
    """Yes, perhaps with a remark; or no, with the reason. `key` names the message of the remark or reason."""

    yes: bool
    key: str | None = None
    values: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default, never written to

    def __str__(self) -> str:
        text = say(self.key, **self.values) if self.key else ""
        if not self.yes:
            return text
        return say("backend-yes-but", remark=text) if text else say("backend-yes")


YES = Support(True)


Run = Callable[[AttentionCall], tuple[Array, Statistics]]


class Backend(NamedTuple):
    """One implementation of attention. `scratch` is the temporary memory of a call in bytes; 0 where it is small."""

    name: str
    answer: Callable[[AttentionCall], Support]
    run: Run
    scratch: Callable[[AttentionCall], int] = lambda _: 0


class Answers(dict[str, str]):
    """The answer of every backend to a call, first choice first: name -> yes or the reason. Prints as a table."""

    chosen: str | None = None

    def __str__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{'→' if n == self.chosen else ' '} {n:<{width}}  {text}" for n, text in self.items())


def _blocked_answer(call: AttentionCall) -> Support:
    return Support(False, "no-dropout", {"backend": "reference"}) if call.dropout else YES


def _blocked(call: AttentionCall) -> tuple[Array, Statistics]:
    return blocked.attention(call)


def _reference(call: AttentionCall) -> tuple[Array, Statistics]:
    sizes = call.sizes
    shape = (sizes.B, sizes.H, sizes.T, sizes.S)
    # Scores, weights and the dense mask are in memory at the same time.
    require_bytes(3 * prod(shape) * computing_dtype(call.q).itemsize, key="weights-too-large", shape=shape)
    mask = None
    if call.bound is not None and sizes.T and sizes.S:
        visible = call.bound.block(slice(0, sizes.T), slice(0, sizes.S))
        mask = np.broadcast_to(visible, shape)
    scores = attention_scores(call.q, call.k, mask, call.bias, call.scale, call.softcap)
    weights = softmax(scores)
    found = Statistics()
    if call.see is not None:
        found = statistics_of(weights, log_sum_exp(scores), call.see, scores, call.padding)
    if call.dropout:
        # NumPy's global generator, as torch uses its own: np.random.seed makes it reproducible.
        kept = np.random.random(weights.shape) >= call.dropout
        weights = np.where(kept, weights / (1 - call.dropout), 0).astype(weights.dtype)
    return weighted_sum(weights, call.q, call.v, mask), found


BACKENDS = (
    Backend("blocked", _blocked_answer, _blocked),
    Backend("reference", lambda _: Support(True, "whole-matrix"), _reference),
)
