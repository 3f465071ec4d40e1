"""Attention that is computed slice by slice to save memory, put together: some samples, or some heads, at a time.

The values tell: those of the next slice lie in the same storage, right after those of the last. A loop over heads takes
values that lie a fixed step apart; one over groups of heads copies them, and there it counts that one call of the
module made as many heads as the module has. What does not fit together stays what it was.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from regard.capture.aliases import key_of
from regard.capture.captured import CaughtWeights
from regard.capture.layouts import heads_of, own_heads_of
from regard.capture.module_names import Place, given_to

Tell = Callable[[CaughtWeights, Place], None]


class Join(NamedTuple):
    """How slices become one: along an axis, or as a new one, until there are `total`."""

    axis: int
    total: int
    is_new: bool = False
    is_call: bool = False  # all slices of one call belong together, wherever their values lie


class Slices:
    """Is told every attention that a model made by hand; tells it on, whole where it came in slices."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._pieces: list[CaughtWeights] = []
        self._offsets: list[int] = []
        self._storage = 0
        self._place: Place | None = None
        self._given: Tensor | None = None
        self._join: Join | None = None

    def add(self, caught: CaughtWeights, place: Place) -> None:
        """One attention, or a slice of one."""
        if self._pieces and not self._continues(caught, place):
            self.flush()
        if not self._pieces:
            join = joining(caught, place)
            if join is None:
                self._tell(caught, place)
                return
            self._place, self._join, self._storage = place, join, key_of(caught.v) if caught.v is not None else 0
            self._given = _input(place)
        self._pieces.append(_copied(caught))
        self._offsets.append(_offset(caught))
        self._end()

    def flush(self) -> None:
        """Slices that did not become a whole are told one by one."""
        pieces, place = self._pieces, self._place
        self._pieces, self._offsets, self._place, self._given = [], [], None, None
        for piece in pieces:
            assert place is not None
            self._tell(piece, place)

    def _continues(self, caught: CaughtWeights, place: Place) -> bool:
        """Whether these values follow those of the slice before."""
        assert self._place is not None
        assert self._join is not None
        v, last = caught.v, self._pieces[-1]
        if self._join.is_call:
            same = place.name == self._place.name and caught.weights.shape == last.weights.shape
            return same and _input(place) is self._given
        if v is None or last.v is None or place.name != self._place.name or key_of(v) != self._storage:
            return False
        axis, step = self._join.axis, _offset(caught) - self._offsets[-1]
        if self._join.is_new:
            steps = {b - a for a, b in zip(self._offsets, self._offsets[1:], strict=False)} | {step}
            return caught.weights.shape == last.weights.shape and len(steps) == 1 and step > 0
        same = caught.weights.shape[axis + 1 :] == last.weights.shape[axis + 1 :]
        return same and step == last.weights.shape[axis] * v.stride(axis)

    def _end(self) -> None:
        join, place = self._join, self._place
        assert join is not None
        assert place is not None
        count = len(self._pieces) if join.is_new else sum(piece.weights.shape[join.axis] for piece in self._pieces)
        if count == join.total:
            whole = _joined(self._pieces, join)
            self._pieces, self._offsets, self._place, self._given = [], [], None, None
            self._tell(whole, place)
        elif count > join.total:
            self.flush()


def joining(caught: CaughtWeights, place: Place) -> Join | None:
    """How weights that are fewer than the module's samples and heads are to be joined; None where they are whole.

    Where a module counts its heads, and was called with B samples, there are B · H matrices.
    """
    weights, v, H = caught.weights, caught.v, heads_of(place.module)
    if v is None or H is None or not torch._C._has_storage(v):
        return None
    if weights.dim() == 4:
        h, own = weights.shape[1], own_heads_of(place.module) is not None
        fits = own and h < H and H % h == 0 and H not in (weights.shape[0], weights.shape[2])
        return Join(1, H, is_call=True) if fits else None
    if weights.dim() != 3 or v.dim() != 3:
        return None
    given = _input(place)
    B = None if given is None else len(given)
    n, room = len(weights), v.untyped_storage().nbytes() // v.element_size()
    if B is None or n >= B * H or H == 1 or room < B * H * v.shape[1] * v.shape[2]:
        return None
    if v.stride(0) == v.shape[1] * v.shape[2] and v.is_contiguous():
        return Join(0, B * H)
    return Join(1, H, is_new=True) if n == B and own_heads_of(place.module) is not None else None


def _copied(caught: CaughtWeights) -> CaughtWeights:
    """The model may write over its own."""
    lse, v, taken = (None if x is None else x.detach().clone() for x in (caught.lse, caught.v, caught.taken))
    return caught._replace(weights=caught.weights.detach().clone(), lse=lse, v=v, taken=taken)


def _joined(pieces: list[CaughtWeights], join: Join) -> CaughtWeights:
    together = torch.stack if join.is_new else torch.cat

    def whole(parts: list[Tensor | None]) -> Tensor | None:
        known = [part for part in parts if part is not None and part.dim() > join.axis]
        return together(known, join.axis) if len(known) == len(pieces) else None

    weights = together([piece.weights for piece in pieces], join.axis)
    lse = whole([piece.lse for piece in pieces])
    if join.is_call:  # whose values these are is not told by their layout
        return pieces[0]._replace(weights=weights, lse=lse, v=None, taken=None)
    v, taken = whole([piece.v for piece in pieces]), whole([piece.taken for piece in pieces])
    return pieces[0]._replace(weights=weights, lse=lse, v=v, taken=taken)


def _input(place: Place) -> Tensor | None:
    """What the running module was called with."""
    return next((x for _, x in given_to(place.module) if x.dim() > 2 and x.is_floating_point()), None)


def _offset(caught: CaughtWeights) -> int:
    return 0 if caught.v is None else int(caught.v.storage_offset())
