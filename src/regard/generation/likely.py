"""The likeliest next ids and their log-probabilities, found without ordering the whole vocabulary.

Log-probabilities are float64 whatever the logits are. Of logits on another device only what is likely leaves it.
Nothing here knows texts or beams.
"""

from typing import NamedTuple

import numpy as np

from regard.generation.picking import is_elsewhere, scores_of
from regard.kinds import Array, to_numpy
from regard.reference import log_sum_exp
from regard.reference.exponentials import computing_dtype

CLOSE = 1e-6
"""Logits this close are kept together: as log-probabilities they may round to equals, whose lower id wins."""
GROUPS = 16
"""Times n: so many groups of ids have few members above the bound that their maxima give, and few maxima."""
AT_ONCE = 2**16
"""Numbers that are raised to powers at once: what fits beside a core is twice as quick."""


class Likely(NamedTuple):
    """Ids that may follow, row after row and in a row by id, with their log-probabilities; all (M,)."""

    rows: np.ndarray
    ids: np.ndarray
    chances: np.ndarray

    def part(self, start: int, stop: int) -> "Likely":
        """Those of some rows, which count from 0 again."""
        first, last = np.searchsorted(self.rows, (start, stop))
        return Likely(self.rows[first:last] - start, self.ids[first:last], self.chances[first:last])


def likely(logits: Array, n: int) -> Likely:
    """At least the n likeliest ids of each row of logits (N, W), with all that are as likely; none that cannot be.

    Raises ArgumentError for a row with nothing to choose.

    >>> found = likely(np.log([[0.5, 0.125, 0.25, 0.125]]), 2)
    >>> found.ids.tolist(), np.exp(found.chances).tolist()
    ([0, 2], [0.5, 0.25])
    """
    n = min(n, logits.shape[-1])
    rows, ids, scores, totals = _there(logits, n) if is_elsewhere(logits) else _here(logits, n)
    possible = scores > -np.inf
    rows, ids, scores = rows[possible], ids[possible], scores[possible]
    return Likely(rows, ids, scores - totals[rows])


def _here(logits: Array, n: int) -> tuple[np.ndarray, ...]:
    """Rows, ids and scores (M,) of what is likely, and each row's log-sum of exponentials (N,)."""
    scores = to_numpy(logits)
    scores = scores.astype(computing_dtype(scores), copy=False)
    N, W = scores.shape
    if not np.isfinite(scores.max(-1)).all():
        scores_of(scores)  # which says the row
    # The n-th highest of some groups' maxima has at least n ids above it or equal to it, and seldom many more.
    groups = min(W, GROUPS * n)
    highest = scores[:, : W // groups * groups].reshape(N, -1, groups).max(1)
    bound = np.partition(highest, -n)[:, -n, None]
    rows, ids = divmod(np.flatnonzero(scores >= bound - CLOSE), W)
    few = max(1, AT_ONCE // W)
    totals = [log_sum_exp(scores[at : at + few].astype(np.float64)) for at in range(0, N, few)]
    return rows, ids, scores[rows, ids].astype(np.float64), np.concatenate(totals)


def _there(logits: Array, n: int) -> tuple[np.ndarray, ...]:
    """The same where the logits are, of a torch tensor."""
    scores = logits.double()
    best = scores.topk(n).values  # NaN comes first
    if not np.isfinite(to_numpy(best[:, 0])).all():
        scores_of(logits)
    rows, ids = (scores >= best[:, -1:] - CLOSE).nonzero(as_tuple=True)
    return tuple(to_numpy(x) for x in (rows, ids, scores[rows, ids], scores.logsumexp(-1)))
