"""The rules that masks are made of: each defines which keys are visible to which queries.

A rule is a value. It is evaluated for one rectangle of the score matrix at a time: `True` (all visible), `False` (all
masked), or a boolean array that broadcasts to the rectangle. So no T × S array is allocated, and a kernel can skip
masked blocks. The code uses only operators and slices that NumPy arrays and torch tensors share; the one difference,
creating positions, is a method of `Frame`.

Query i is at key position i + S - T: the last query is aligned with the last key.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from regard.arrays import Array, convert_like, is_tensor
from regard.axes import Shape, fits, split_lead
from regard.errors import ShapeError
from regard.masks.intervals import KeyRanges, SegmentBounds, edges, segment_ranges

Visible: TypeAlias = "bool | Array"
"""True: everything in the rectangle is visible; False: everything is masked; else a boolean array."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The score matrix that a rule is applied to: the caller's leading axes, its sizes, and the result's array type."""

    lead: Shape
    T: int
    S: int
    like: Array | None = None

    @property
    def offset(self) -> int:
        return self.S - self.T

    def positions(self, start: int, stop: int) -> Array:
        if self.like is not None and is_tensor(self.like):
            import torch

            return torch.arange(start, stop, device=self.like.device)
        return np.arange(start, stop)


@dataclass(frozen=True, eq=False, slots=True)
class Rule(ABC):
    """One rule. `align` arranges its arrays for a frame as B H · ·; `pick` selects one head of one sample."""

    def align(self, frame: Frame) -> "Rule":
        return self

    def pick(self, b: int, h: int) -> "Rule":
        return self

    @abstractmethod
    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        """What is visible in this rectangle."""

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        """A range of keys outside of which everything is masked for these rows."""
        return 0, frame.S

    def fully_visible(self, frame: Frame, rows: slice) -> tuple[int, int]:
        """A range of keys that are visible to all of these rows; (0, 0) where none is known."""
        return 0, 0

    def any_visible(self, frame: Frame, flagged: Array) -> Array | None:
        """… B H T (or 1): whether a flagged key (… B H S) is visible to each query; None without a fast method."""
        return None

    def leads(self) -> Iterator[Shape]:
        """The leading axes of this rule's arrays, heads included."""
        return iter(())


@dataclass(frozen=True, eq=False, slots=True)
class Band(Rule):
    """Keys from `left` before the query to `right` after it; None means no limit. Causal is Band(None, 0).

    `from_first`: query i is at key i instead, so the first query is aligned with the first key.
    """

    left: int | None
    right: int | None
    from_first: bool = False

    def offset(self, frame: Frame) -> int:
        return 0 if self.from_first else frame.offset

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        first, last = rows.start + self.offset(frame), rows.stop - 1 + self.offset(frame)
        nearest, furthest = cols.start - last, cols.stop - 1 - first
        left = -self.left if self.left is not None else nearest
        right = self.right if self.right is not None else furthest
        if furthest < left or nearest > right:
            return False
        if left <= nearest and furthest <= right:
            return True
        keys = frame.positions(cols.start, cols.stop)
        queries = frame.positions(first, last + 1)[:, None]
        visible: Visible = True
        if self.left is not None and nearest < left:
            visible = keys >= queries - self.left
        if self.right is not None and furthest > right:
            below = keys <= queries + self.right
            visible = below if visible is True else visible & below
        return visible

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        low = 0 if self.left is None else rows.start + self.offset(frame) - self.left
        high = frame.S if self.right is None else rows.stop + self.offset(frame) + self.right
        return _clipped(low, high, frame.S)

    def fully_visible(self, frame: Frame, rows: slice) -> tuple[int, int]:
        low = 0 if self.left is None else rows.stop - 1 + self.offset(frame) - self.left
        high = frame.S if self.right is None else rows.start + self.offset(frame) + self.right + 1
        return _clipped(low, high, frame.S)

    def any_visible(self, frame: Frame, flagged: Array) -> Array | None:
        low, high = self.edges(frame)
        return KeyRanges(None, low[None], high[None]).any_visible(flagged)

    def edges(self, frame: Frame) -> tuple[Array, Array]:
        """The first visible key of each query, and the one past the last."""
        here = frame.positions(self.offset(frame), self.offset(frame) + frame.T)
        return edges(here, self.left, self.right, frame.S)

    def __and__(self, other: "Band") -> "Band":
        return Band(_least(self.left, other.left), _least(self.right, other.right), self.from_first)


@dataclass(frozen=True, eq=False, slots=True)
class KeyRule(Rule):
    """A rule about keys alone: the same for every query."""

    @abstractmethod
    def visible_keys(self, frame: Frame) -> Array:
        """(1 or B) 1 S: the visible keys."""

    def any_visible(self, frame: Frame, flagged: Array) -> Array | None:
        return (flagged & self.visible_keys(frame)).any(-1)[..., None]


@dataclass(frozen=True, eq=False, slots=True)
class Prefix(KeyRule):
    """The first `count` keys, one number for all samples or one per sample."""

    count: Any

    def align(self, frame: Frame) -> Rule:
        if isinstance(self.count, int):
            return self
        return Prefix(_per_sample(self.count, 0, frame, "prefix")[..., None, None])

    def pick(self, b: int, h: int) -> Rule:
        return self if isinstance(self.count, int) else Prefix(_one_sample(self.count, b))

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        if isinstance(self.count, int):
            if cols.stop <= self.count:
                return True
            if cols.start >= self.count:
                return False
        return frame.positions(cols.start, cols.stop)[None, :] < self.count

    def visible_keys(self, frame: Frame) -> Array:
        count = self.count if isinstance(self.count, int) else self.count[..., 0]
        return frame.positions(0, frame.S)[None, None] < count

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return 0, min(self.count, frame.S) if isinstance(self.count, int) else frame.S

    def fully_visible(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return 0, min(self.count, frame.S) if isinstance(self.count, int) else 0

    def leads(self) -> Iterator[Shape]:
        if not isinstance(self.count, int) and self.count.ndim:
            yield (*self.count.shape, 1)


@dataclass(frozen=True, eq=False, slots=True)
class Keys(KeyRule):
    """Keys that are kept: `keep` is (S,) or one row per sample, (B, S)."""

    keep: Array

    def align(self, frame: Frame) -> Rule:
        _check_length(self.keep, frame.S, "keys", frame)
        return Keys(_per_sample(self.keep, 1, frame, "padding")[..., None, :])

    def pick(self, b: int, h: int) -> Rule:
        return Keys(_one_sample(self.keep, b))

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        return self.keep[..., cols]

    def visible_keys(self, frame: Frame) -> Array:
        return self.keep[:, :, 0]

    def leads(self) -> Iterator[Shape]:
        if self.keep.ndim > 1:
            yield (*self.keep.shape[:-1], 1)


@dataclass(frozen=True, eq=False, slots=True)
class Segments(Rule):
    """A query sees the keys of its own segment. `queries` None: the last T of `keys`."""

    keys: Array
    queries: Array | None
    bounds: SegmentBounds | None = None
    """The bounds of the segments, once aligned and where the ids can be read; shared by all picked samples."""
    sample: int | None = None

    def align(self, frame: Frame) -> Rule:
        _check_length(self.keys, frame.S, "segments", frame)
        queries = self.queries
        if queries is None:
            if frame.offset < 0:
                raise ShapeError("segments-too-many-queries", T=frame.T, S=frame.S)
            queries = self.keys[..., frame.offset :]
        elif queries.shape[-1] != frame.T:
            raise ShapeError("segments-length", found=queries.shape[-1], T=frame.T)
        keys, queries = (_per_sample(ids, 1, frame, "segments") for ids in (self.keys, queries))
        return Segments(keys[..., None, :], queries[..., :, None], SegmentBounds.of(queries[:, 0], keys[:, 0]))

    def pick(self, b: int, h: int) -> Rule:
        return Segments(_one_sample(self.keys, b), _one_sample(self.queries, b), self.bounds, sample=b)

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        assert self.queries is not None, "align comes before block"
        return self.queries[..., rows, :] == self.keys[..., cols]

    def reach(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return (0, frame.S) if self.bounds is None else self.bounds.reach(rows, self.sample)

    def fully_visible(self, frame: Frame, rows: slice) -> tuple[int, int]:
        return (0, 0) if self.bounds is None else self.bounds.fully_visible(rows, self.sample)

    def any_visible(self, frame: Frame, flagged: Array) -> Array | None:
        return self.ranges().any_visible(flagged)

    def ranges(self, between: tuple[Array, Array] | None = None) -> KeyRanges:
        """The visible keys of each query: its own segment, cut at the edges of a band if they are given."""
        assert self.queries is not None, "align comes before ranges"
        return segment_ranges(self.queries[:, 0, :, 0], self.keys[:, 0, 0], between)

    def leads(self) -> Iterator[Shape]:
        for ids in (self.keys, self.queries):
            if ids is not None and ids.ndim > 1:
                yield (*ids.shape[:-1], 1)


@dataclass(frozen=True, eq=False, slots=True)
class Dense(Rule):
    """A boolean array, (T, S) or with as many axes as the scores; `per_sample`: (B, T, S), with heads or without."""

    allowed: Array
    per_sample: bool = False

    def align(self, frame: Frame) -> Rule:
        if self.per_sample and len(frame.lead) > 1:
            return Dense(self.allowed[:, None]).align(frame)
        scores, found = (*frame.lead, frame.T, frame.S), tuple(self.allowed.shape)
        if len(found) == 3 and len(scores) > 3:
            raise ShapeError("mask-ambiguous", found=found, scores=scores)
        if len(found) not in (2, len(scores)) or not fits(found, scores):
            raise ShapeError("mask-shape", found=found, scores=scores)
        allowed = convert_like(self.allowed, frame.like)
        return Dense(as_four_axes(allowed, frame.lead))

    def pick(self, b: int, h: int) -> Rule:
        B, H = self.allowed.shape[:2]
        return Dense(self.allowed[b if B > 1 else 0, h if H > 1 else 0])

    def block(self, frame: Frame, rows: slice, cols: slice) -> Visible:
        whole = slice(None)
        T, S = self.allowed.shape[-2:]
        return self.allowed[..., rows if T > 1 else whole, cols if S > 1 else whole]

    def leads(self) -> Iterator[Shape]:
        if self.allowed.ndim > 2:
            yield (self.allowed.shape[0], 1) if self.per_sample else tuple(self.allowed.shape[:-2])


def _clipped(low: int, high: int, S: int) -> tuple[int, int]:
    """The range clipped to 0 … S; empty where low > high."""
    low, high = min(max(low, 0), S), min(max(high, 0), S)
    return low, max(low, high)


def as_four_axes(x: Array, lead: Shape) -> Array:
    """`x`, which broadcasts to (*lead, T, S) axis by axis, as B H T S; axes of size one stay so where they can."""
    if x.ndim == 2:
        return x[None, None]
    if len(lead) == 1:
        return x[:, None]
    if len(lead) == 2:
        return x
    # Five axes and more: several axes count samples, and only whole axes can be merged into one.
    samples = split_lead(lead)[0]
    if all(size == 1 for size in x.shape[:-3]):
        return x.reshape(1, *x.shape[-3:])
    expanded = _broadcast(x, (*lead[:-1], *x.shape[-3:]))
    return expanded.reshape(samples, *x.shape[-3:])


def _per_sample(x: Array, own: int, frame: Frame, what: str) -> Array:
    """`x`, whose last `own` axes are its own and the rest count samples, as (B or 1, 1, *own)."""
    x = convert_like(x, frame.like)
    samples, rest = x.shape[: x.ndim - own], x.shape[x.ndim - own :]
    if not samples:
        return x[None, None]
    wanted = frame.lead[:-1] if len(frame.lead) > 1 else frame.lead
    if not fits(samples, wanted):
        # One sample needs no axis for samples.
        if all(size == 1 for size in samples):
            return x.reshape(1, 1, *rest)
        raise ShapeError("mask-samples", what=what, found=_times(samples), wanted=_times(wanted))
    if all(size == 1 for size in samples):
        return x.reshape(1, 1, *rest)
    if len(wanted) > 1:
        x = _broadcast(x, (*wanted, *rest)).reshape(split_lead(frame.lead)[0], *rest)
    return x[:, None]


def _times(shape: Shape) -> str:
    return "×".join(str(size) for size in shape) or "1"


def _one_sample(x: Array, b: int) -> Array:
    return x[b if x.shape[0] > 1 else 0, 0]


def _check_length(ids: Array, S: int, what: str, frame: Frame) -> None:
    if ids.shape[-1] != S:
        raise ShapeError("mask-keys", what=what, found=tuple(ids.shape), S=S, T=frame.T)


def _broadcast(x: Array, shape: Shape) -> Array:
    return x.expand(shape) if is_tensor(x) else np.broadcast_to(x, shape)


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
