"""Spans: between which keys all of a query's own segment stands, so that what lies outside need not be computed.

They are read off the ids, so only of arrays in this machine's memory: a GPU would be waited for, and what
torch.compile is looking at has no values. Here are arrays, and no rules.
"""

from functools import cached_property

import numpy as np

from regard.kinds import Array, is_tensor, is_tracing
from regard.masks.runs import own_segment


class Spans:
    """The keys that rows reach, and those that all of them see, by segments; found when first asked, then kept.

    queries  (1 or B) T, keys (1 or B) S: whose segment each is of

    >>> spans = Spans(np.array([[0, 0, 1, 2]]), np.array([[0, 0, 1, 1, 2]]))
    >>> spans.reach(slice(0, 2)), spans.reach(slice(1, 3)), spans.certain(slice(0, 2)), spans.certain(slice(1, 3))
    ((0, 2), (0, 4), (0, 2), (0, 0))
    """

    def __init__(self, queries: Array, keys: Array) -> None:
        self._queries, self._keys = queries, keys

    @classmethod
    def of(cls, queries: Array, keys: Array) -> "Spans | None":
        """The same, where there are ids and they can be read."""
        elsewhere = is_tracing() or (is_tensor(keys) and keys.device.type != "cpu")
        return None if elsewhere or 0 in (*queries.shape, *keys.shape) else cls(queries, keys)

    def reach(self, rows: slice, sample: int | None = None) -> tuple[int, int]:
        """A range of keys outside of which these rows, of one sample or of all, see nothing."""
        first, end, _, _ = self._edges
        low, high = int(_part(first, rows, sample).min()), int(_part(end, rows, sample).max())
        return (low, high) if low < high else (0, 0)

    def certain(self, rows: slice, sample: int | None = None) -> tuple[int, int]:
        """A range of keys that all of these rows see."""
        _, _, first, end = self._edges
        low, high = int(_part(first, rows, sample).max()), int(_part(end, rows, sample).min())
        return (low, high) if low < high else (0, 0)

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where each query's segment begins and ends, (1 or B) T; and again where it has no gaps, else an empty range.

        A segment without keys begins after all keys and ends before them, so that it widens nothing.
        """
        runs = own_segment(_read(self._queries), _read(self._keys))
        S, count = self._keys.shape[-1], runs.end - runs.first
        assert runs.order is not None
        first, last = (np.take_along_axis(runs.order, at.clip(0, S - 1), 1) for at in (runs.first, runs.end - 1))
        first, end = np.where(count, first, S), np.where(count, last + 1, 0)
        whole = end - first == count
        return first, end, np.where(whole, first, S), np.where(whole, end, 0)


def _read(ids: Array) -> np.ndarray:
    # Tensors by way of a list: what torch.func wraps has numbers, but no memory that NumPy could share.
    return np.array(ids.tolist()) if is_tensor(ids) else ids


def _part(x: np.ndarray, rows: slice, sample: int | None) -> np.ndarray:
    return x[:, rows] if sample is None else x[sample if len(x) > 1 else 0, rows]
