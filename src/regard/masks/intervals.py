"""Visible keys as intervals: the range of keys that each query sees, and the order of keys that makes it one range.

`Runs` sorts keys so that all visible keys of a query are adjacent; `Spans` bounds the keys of a query's segment.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Query i sees the keys order[first[i]:end[i]]; that may be none.

    order       (1 or B) S; None: as they stand
    first, end  (1 or B) T, from 0 to S
    """

    order: Array | None
    first: Array
    end: Array

    def see(self, flagged: Array) -> Array:
        """… B H T: which queries see a flagged key, … B H S.

        >>> Runs(None, np.array([[0, 1]]), np.array([[2, 3]])).see(np.array([[[True, False, False]]])).tolist()
        [[[True, False]]]
        """
        counted = (flagged if self.order is None else _taken(flagged, self.order)).cumsum(-1)
        before_first, before_end = (_count_before(at, counted) for at in (self.first, self.end))
        return before_end > before_first


def edges(here: Array, left: int | None, right: int | None, S: int) -> tuple[Array, Array]:
    """Where queries that stand `here` (T) begin to see, and where they end, both from 0 to S; a band's two sides.

    >>> low, high = edges(np.arange(3), left=1, right=0, S=3)
    >>> low.tolist(), high.tolist()
    ([0, 0, 1], [1, 2, 3])
    """
    furthest = here.shape[0] + S  # keeps what is counted within 64 bits, however wide a window is
    low = here * 0 if left is None else (here - min(left, furthest)).clip(0, S)
    high = here * 0 + S if right is None else (here + min(right, furthest) + 1).clip(0, S)
    return low, high


def own_segment(queries: Array, keys: Array, between: tuple[Array, Array] | None = None) -> Runs:
    """Who sees the keys of its own segment, (1 or B) T and (1 or B) S; of these only the ones `between` its edges.

    >>> ids = np.array([[0, 0, 1, 0]])
    >>> runs = own_segment(ids, ids)
    >>> runs.order.tolist(), runs.first.tolist(), runs.end.tolist()
    ([[0, 1, 3, 2]], [[0, 0, 3, 0]], [[3, 3, 4, 3]])
    """
    queries, keys = _alike(queries, keys)
    order = keys.argsort(stable=True)
    ordered = _taken(keys[:, None], order)[:, 0]
    first, end = _places(ordered, queries), _places(ordered, queries, right=True)
    if between is None:
        return Runs(order, first, end)
    # One number for a segment and a place in it: where the segment begins among the ordered, and the place.
    S = keys.shape[1]
    numbers = _places(ordered, ordered) * S + order
    low, high = (_places(numbers, first * S + edge) for edge in between)
    return Runs(order, low, high * (first < end))  # without any key, a segment would begin where another does


def _alike(queries: Array, keys: Array) -> tuple[Array, Array]:
    """Both with as many rows as the one that has more."""
    B = max(len(queries), len(keys))
    if is_tensor(keys):
        return queries.expand(B, -1).contiguous(), keys.expand(B, -1).contiguous()
    return np.broadcast_to(queries, (B, queries.shape[1])), np.broadcast_to(keys, (B, keys.shape[1]))


def _places(ordered: Array, values: Array, right: bool = False) -> Array:
    """B m: where values (B m) belong among the ordered (B n) of their row: before equal ones, or to their right."""
    if is_tensor(ordered):
        return sys.modules["torch"].searchsorted(ordered, values, right=right)
    side: Literal["left", "right"] = "right" if right else "left"
    return np.stack([np.searchsorted(row, value, side) for row, value in zip(ordered, values, strict=True)])


def _count_before(places: Array, counted: Array) -> Array:
    """… B H T: how many were counted before each place, (1 or B) T."""
    return _taken(counted, (places - 1).clip(0)) * (places > 0)[:, None]


def _taken(x: Array, index: Array) -> Array:
    """… B H n: of each sample of x (… B H S) what its index, (1 or B) n, names."""
    index = index[(None,) * (x.ndim - 3)][..., None, :]
    return x.take_along_dim(index, -1) if is_tensor(x) else np.take_along_axis(x, index, -1)


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
