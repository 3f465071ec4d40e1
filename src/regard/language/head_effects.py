"""Which head matters: heads with a clear pattern are silenced one by one, and what that moves is measured.

A clear pattern alone says little: many heads rest on one token and change nothing. What a pattern is, is told by
`trace.measures`; how the model runs is told by the caller.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from regard.dispatch import attend_within
from regard.kinds import Array, to_numpy
from regard.records import Attend, Kind
from regard.reference import log_sum_exp
from regard.trace import Trace

CANDIDATES = 8
"""So many heads are silenced, each in a run of its own: those with the highest scores."""


class Silenced:
    """An Attend as models call it, in which one head of one module adds nothing to the output."""

    def __init__(self, module: str, head: int) -> None:
        self.module, self.head = module, head

    def __call__(self, q: Array, k: Array, v: Array, *, name: str, kind: Kind, **options: Any) -> Array:
        """softmax(q kᵀ) v, B H T Ev, the head left 0."""
        out = attend_within(q, k, v, name=name, kind=kind, **options)
        if name == self.module:
            out[:, self.head] = 0
        return out


def head_that_matters(trace: Trace, run: Callable[[Attend], Array]) -> tuple[str, int] | None:
    """The name of a record and the number of its head: of those with a clear pattern, the one that moves most.

    run   from an Attend to the logits of the same texts, B T W

    How far the probabilities move is Σ p log(p / p′), p with the head and p′ without it, a mean over all positions.
    None where no head has a clear pattern; heads that rest on the first token are no candidates.
    """
    named = [head for head in trace.heads() if head.best is not None and head.best.pattern != "first"]
    if not named:
        return None
    before = _log_probabilities(run(attend_within))
    moved = [
        float((np.exp(before) * (before - _log_probabilities(run(Silenced(head.name, head.head))))).sum(-1).mean())
        for head in named[:CANDIDATES]
    ]
    best = named[int(np.argmax(moved))]
    return best.name, best.head


def _log_probabilities(logits: Array) -> np.ndarray:
    scores = np.asarray(to_numpy(logits), np.float64)
    return scores - log_sum_exp(scores)[..., None]
