"""What a backend is, and the backends for NumPy arrays: blocked (fast), then reference (the definition)."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import Array
from regard.dispatch.call import Call
from regard.kernels import blocked
from regard.memory import require
from regard.messages import say
from regard.records import Statistics
from regard.reference import log_sum_exp, statistics_of
from regard.reference.attention import attention_scores, weighted_sum
from regard.reference.exponentials import computing_dtype, softmax


class Answer(NamedTuple):
    """Yes, perhaps with a remark; or no, with the reason. The words are a key, to be said in any language."""

    yes: bool
    key: str | None = None
    values: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default, never written to

    def __str__(self) -> str:
        words = say(self.key, **self.values) if self.key else ""
        if not self.yes:
            return words
        return say("backend-yes-but", remark=words) if words else say("backend-yes")


YES = Answer(True)


class Backend(NamedTuple):
    """One way to compute attention. `scratch` is how many bytes a call takes beside what it gives, if that is much."""

    name: str
    answer: Callable[[Call], Answer]
    run: Callable[[Call], tuple[Array, Statistics]]
    scratch: Callable[[Call], int] = lambda _: 0


class Answers(dict[str, str]):
    """What every backend says about a call, first choice first: its name, and yes or its reason. Prints as a table."""

    chosen: str | None = None

    def __str__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{'→' if n == self.chosen else ' '} {n:<{width}}  {words}" for n, words in self.items())


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
