"""Visible keys as intervals: one range of visible keys per query, and the order of keys that makes it one range.

`KeyRanges` sorts keys so that all visible keys of a query are adjacent; `SegmentBounds` bounds the keys of a query's
segment.
"""

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from regard.arrays import Array, is_tensor, is_tracing


@dataclass(frozen=True, slots=True, eq=False)
class KeyRanges:
    """The keys order[first[i]:end[i]] are visible to query i; there may be none.

    order       (1 or B) S; None: 0 … S - 1
    first, end  (1 or B) T, from 0 to S
    """

    order: Array | None
    first: Array
    end: Array

    def any_visible(self, flagged: Array) -> Array:
        """… B H T: whether a flagged key, … B H S, is visible to each query.

        >>> ranges = KeyRanges(None, np.array([[0, 1]]), np.array([[2, 3]]))
        >>> ranges.any_visible(np.array([[[True, False, False]]])).tolist()
        [[[True, False]]]
        """
        counted = (flagged if self.order is None else _gather(flagged, self.order)).cumsum(-1)
        before_first, before_end = (_count_before(at, counted) for at in (self.first, self.end))
        return before_end > before_first


def edges(here: Array, left: int | None, right: int | None, S: int) -> tuple[Array, Array]:
    """The first visible key and the one past the last for queries at the positions `here` (T), both from 0 to S.

    >>> low, high = edges(np.arange(3), left=1, right=0, S=3)
    >>> low.tolist(), high.tolist()
    ([0, 0, 1], [1, 2, 3])
    """
    furthest = here.shape[0] + S  # keeps the sums within 64 bits for any window
    low = here * 0 if left is None else (here - min(left, furthest)).clip(0, S)
    high = here * 0 + S if right is None else (here + min(right, furthest) + 1).clip(0, S)
    return low, high


def segment_ranges(queries: Array, keys: Array, between: tuple[Array, Array] | None = None) -> KeyRanges:
    """The visible keys where each query sees its own segment, (1 or B) T and (1 or B) S, and only keys `between` edges.

    >>> ids = np.array([[0, 0, 1, 0]])
    >>> ranges = segment_ranges(ids, ids)
    >>> ranges.order.tolist(), ranges.first.tolist(), ranges.end.tolist()
    ([[0, 1, 3, 2]], [[0, 0, 3, 0]], [[3, 3, 4, 3]])
    """
    queries, keys = _broadcast_rows(queries, keys)
    order = keys.argsort(stable=True)
    ordered = _gather(keys[:, None], order)[:, 0]
    first, end = _places(ordered, queries), _places(ordered, queries, right=True)
    if between is None:
        return KeyRanges(order, first, end)
    # One number for a segment and a key in it: where the segment begins in the sorted order, and the key.
    S = keys.shape[1]
    numbers = _places(ordered, ordered) * S + order
    low, high = (_places(numbers, first * S + edge) for edge in between)
    return KeyRanges(order, low, high * (first < end))  # an empty segment would begin where another does


def _broadcast_rows(queries: Array, keys: Array) -> tuple[Array, Array]:
    """Both with the larger number of rows."""
    B = max(len(queries), len(keys))
    if is_tensor(keys):
        return queries.expand(B, -1).contiguous(), keys.expand(B, -1).contiguous()
    return np.broadcast_to(queries, (B, queries.shape[1])), np.broadcast_to(keys, (B, keys.shape[1]))


def _places(ordered: Array, values: Array, right: bool = False) -> Array:
    """B m: the insertion index of each value (B m) in its sorted row (B n): before equal ones, or to their right."""
    if is_tensor(ordered):
        return sys.modules["torch"].searchsorted(ordered, values, right=right)
    side: Literal["left", "right"] = "right" if right else "left"
    return np.stack([np.searchsorted(row, value, side) for row, value in zip(ordered, values, strict=True)])


def _count_before(places: Array, counted: Array) -> Array:
    """… B H T: the count before each place, (1 or B) T."""
    return _gather(counted, (places - 1).clip(0)) * (places > 0)[:, None]


def _gather(x: Array, index: Array) -> Array:
    """… B H n: the elements of each sample of x (… B H S) at its index, (1 or B) n."""
    index = index[(None,) * (x.ndim - 3)][..., None, :]
    return x.take_along_dim(index, -1) if is_tensor(x) else np.take_along_axis(x, index, -1)


class SegmentBounds:
    """The keys that rows of queries reach, and those visible to all of them, by segments; computed once, on first use.

    queries  (1 or B) T, keys (1 or B) S: the segment of each

    >>> bounds = SegmentBounds(np.array([[0, 0, 1, 2]]), np.array([[0, 0, 1, 1, 2]]))
    >>> bounds.reach(slice(0, 2)), bounds.reach(slice(1, 3))
    ((0, 2), (0, 4))
    >>> bounds.fully_visible(slice(0, 2)), bounds.fully_visible(slice(1, 3))
    ((0, 2), (0, 0))
    """

    def __init__(self, queries: Array, keys: Array) -> None:
        self._queries, self._keys = queries, keys

    @classmethod
    def of(cls, queries: Array, keys: Array) -> "SegmentBounds | None":
        """The bounds, or None where there are no ids or their values cannot be read."""
        unreadable = is_tracing() or (is_tensor(keys) and keys.device.type != "cpu")
        return None if unreadable or 0 in (*queries.shape, *keys.shape) else cls(queries, keys)

    def reach(self, rows: slice, sample: int | None = None) -> tuple[int, int]:
        """A range of keys outside of which everything is masked for these rows, of one sample or of all."""
        first, end, _, _ = self._edges
        low, high = int(_part(first, rows, sample).min()), int(_part(end, rows, sample).max())
        return (low, high) if low < high else (0, 0)

    def fully_visible(self, rows: slice, sample: int | None = None) -> tuple[int, int]:
        """A range of keys that are visible to all of these rows."""
        _, _, first, end = self._edges
        low, high = int(_part(first, rows, sample).max()), int(_part(end, rows, sample).min())
        return (low, high) if low < high else (0, 0)

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Start and end of each query's segment, (1 or B) T; then the same where it has no gaps, else an empty range.

        A segment without keys starts after all keys and ends before them, so that it widens no range.
        """
        ranges = segment_ranges(_read(self._queries), _read(self._keys))
        S, count = self._keys.shape[-1], ranges.end - ranges.first
        assert ranges.order is not None
        first, last = (np.take_along_axis(ranges.order, at.clip(0, S - 1), 1) for at in (ranges.first, ranges.end - 1))
        first, end = np.where(count, first, S), np.where(count, last + 1, 0)
        whole = end - first == count
        return first, end, np.where(whole, first, S), np.where(whole, end, 0)


def _read(ids: Array) -> np.ndarray:
    # Tensors are converted through a list: a tensor wrapped by torch.func has no memory that NumPy could share.
    return np.array(ids.tolist()) if is_tensor(ids) else ids


def _part(x: np.ndarray, rows: slice, sample: int | None) -> np.ndarray:
    return x[:, rows] if sample is None else x[sample if len(x) > 1 else 0, rows]
