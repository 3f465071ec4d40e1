"""Axis letters, the checked sizes of an attention call, and arithmetic on sizes: head widths, bins, slices, indices.

    B batch        T query positions   E head width         D model width          R C map bins
    H heads        S key positions     Ev value head width  F feed-forward width   L layers
    G key/value heads                                       W vocabulary

One internal layout, `B H T E`: heads before positions. This module handles sizes only, no arrays.
"""

import operator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from regard.errors import ArgumentError, IndivisibleError, ShapeError

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one attention call, and the caller's own axes before T and S (`lead`).

    Two axes mean one head of one sample; three mean one head per sample; from four on, the axis before the
    positions counts heads and what is before it counts samples.
    """

    lead: Shape
    B: int
    H: int
    G: int
    T: int
    S: int
    E: int
    Ev: int

    @property
    def scores(self) -> Shape:
        """The shape of the scores in the caller's axes."""
        return (*self.lead, self.T, self.S)

    @property
    def has_heads(self) -> bool:
        """Whether the caller's arrays have an axis for heads."""
        return len(self.lead) > 1


def attention_sizes(q: Shape, k: Shape, v: Shape) -> Sizes:
    """The sizes of `attend(q, k, v)` from the three shapes; raises ShapeError where they do not fit.

    >>> attention_sizes((2, 8, 5, 64), (2, 4, 7, 64), (2, 4, 7, 64))
    Sizes(lead=(2, 8), B=2, H=8, G=4, T=5, S=7, E=64, Ev=64)
    """

    def wrong(key: str, **values: int) -> ShapeError:
        return ShapeError(key, q=tuple(q), k=tuple(k), v=tuple(v), **values)

    if len(q) < 2 or len(k) != len(q) or len(v) != len(q):
        raise wrong("axes-differ")
    if k[-1] != q[-1]:
        raise wrong("widths-differ", E_q=q[-1], E_k=k[-1])
    if q[-1] == 0:
        raise wrong("width-zero")
    if k[-2] != v[-2]:
        raise wrong("key-value-lengths-differ", S_k=k[-2], S_v=v[-2])
    if k[:-2] != v[:-2]:
        raise wrong("key-value-heads-differ")
    lead = tuple(q[:-2])
    samples = lead[:-1] if len(lead) > 1 else lead
    if tuple(k[: len(samples)]) != samples:
        raise wrong("batches-differ")
    B, H = split_lead(lead)
    G = k[-3] if len(lead) > 1 else 1
    if H != G and (G == 0 or H % G):
        raise wrong("heads-not-grouped", H=H, G=G)
    return Sizes(lead=lead, B=B, H=H, G=G, T=q[-2], S=k[-2], E=q[-1], Ev=v[-1])


def check_bias(found: Shape, sizes: Sizes) -> None:
    """Raise ShapeError unless a bias of this shape broadcasts to the scores and its axes are unambiguous."""
    scores = sizes.scores
    if len(found) == 3 and sizes.has_heads:
        raise ShapeError("bias-ambiguous", found=tuple(found), scores=scores)
    if len(found) not in (2, len(scores)) or not fits(found, scores):
        raise ShapeError("bias-shape", found=tuple(found), scores=scores)


def fits(found: Shape, wanted: Shape) -> bool:
    """Whether an array of shape `found` broadcasts to exactly the shape `wanted`."""
    return len(found) <= len(wanted) and all(
        size in (1, full) for size, full in zip(found[::-1], wanted[::-1], strict=False)
    )


def plain_slice(part: slice | range | None, length: int) -> slice:
    """The slice of `length` positions with 0 ≤ start ≤ stop ≤ length.

    Positions outside are left out, as in NumPy. ArgumentError for other types, and for a slice with a step.

    >>> plain_slice(slice(-2, None), 5), plain_slice(range(2, 9), 5), plain_slice(None, 5)
    (slice(3, 5, None), slice(2, 5, None), slice(0, 5, None))
    """
    if part is None:
        return slice(0, length)
    if isinstance(part, Integral) and not isinstance(part, bool):
        raise ArgumentError("rectangle-one", found=part, next=None if part == -1 else int(part) + 1)
    if isinstance(part, range) and part.start >= 0:  # a range that begins below 0 does not count from the end
        part = slice(part.start, max(part.start, part.stop), part.step)
    if not isinstance(part, slice) or part.step not in (None, 1):
        raise ArgumentError("rectangle-step", found=part)
    start, stop, _ = part.indices(length)
    return slice(start, max(start, stop))


def split_lead(lead: Shape) -> tuple[int, int]:
    """The caller's axes before the positions, as (samples, heads)."""
    if len(lead) < 2:
        return (lead[0] if lead else 1), 1
    samples = 1
    for size in lead[:-1]:
        samples *= size
    return samples, lead[-1]


def head_width(d_model: int, n_heads: int, *, width_name: str = "d_model", heads_name: str = "n_heads") -> int:
    """The width of one head, E = D / H; raises IndivisibleError, with the nearest widths, where H does not divide D.

    >>> head_width(768, 12)
    64
    """
    if n_heads < 1 or d_model < 1:
        raise IndivisibleError(
            "heads-no-count", d_model=d_model, n_heads=n_heads, width_name=width_name, heads_name=heads_name
        )
    if d_model % n_heads:
        below = max(n_heads, d_model // n_heads * n_heads)
        raise IndivisibleError(
            "heads-do-not-divide",
            d_model=d_model,
            n_heads=n_heads,
            width_name=width_name,
            heads_name=heads_name,
            below=below,
            above=below + n_heads,
        )
    return d_model // n_heads


def bin_width(length: int, bins: int) -> int:
    """The number of positions in one bin of a map: ceil(length / bins), and at least one.

    >>> [bin_width(n, 4) for n in (0, 3, 4, 9, 16, 17)]
    [1, 1, 1, 3, 4, 5]
    """
    return max(1, -(-length // bins))


def bin_count(length: int, bins: int) -> int:
    """The number of bins for `length` positions; the last one may be smaller, none is empty."""
    return -(-length // bin_width(length, bins))


def distance_count(T: int, S: int) -> int:
    """The number of distance bins: 0, 1, 2–3, 4–7, … up to the largest distance of T queries and S keys.

    A distance of d falls into bin `d.bit_length()`.

    >>> distance_count(1, 1), distance_count(4, 4), distance_count(1, 5)
    (1, 3, 4)
    """
    return max(0, max(T, S) - 1).bit_length() + 1


def in_range(what: str, index: Any, count: int) -> int:
    """An index from 0 to count - 1, also given from the end; ArgumentError with the range for any other value."""
    try:
        number = operator.index(index)
    except TypeError:
        number = count
    if not -count <= number < count:
        raise ArgumentError("choice-range", what=what, asked=index, last=count - 1)
    return number % count
