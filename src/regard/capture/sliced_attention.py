"""Attention that is computed in slices to save memory, joined again: some samples, or some heads, at a time.

Slices are matched by their values: those of the next slice follow those of the last in the same storage. A loop over
heads uses values a fixed step apart. A loop over groups of heads copies them; there, one call of the module must yield
as many heads as the module has. Slices that do not fit together are reported separately.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from regard.capture.aliases import key_of
from regard.capture.captured import CapturedWeights
from regard.capture.layouts import heads_of, own_heads_of
from regard.capture.module_names import Place, call_arguments
from regard.capture.torch_internals import has_storage

Report = Callable[[CapturedWeights, Place], None]


class Join(NamedTuple):
    """How to join slices: along an axis, or as a new axis, until there are `total`."""

    axis: int
    total: int
    is_new: bool = False
    is_call: bool = False  # all slices of one call belong together, wherever their values are


class Slices:
    """Receives all attention that a model computed itself, and reports it whole if it came in slices."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._pieces: list[CapturedWeights] = []
        self._offsets: list[int] = []
        self._storage = 0
        self._place: Place | None = None
        self._called_with: Tensor | None = None
        self._join: Join | None = None

    def add(self, captured: CapturedWeights, place: Place) -> None:
        """Add one attention, or a slice of one."""
        if self._pieces and not self._continues(captured, place):
            self.flush()
        if not self._pieces:
            join = join_of(captured, place)
            if join is None:
                self._report(captured, place)
                return
            self._place, self._join, self._storage = place, join, key_of(captured.v) if captured.v is not None else 0
            self._called_with = _input(place)
        self._pieces.append(_copied(captured))
        self._offsets.append(_offset(captured))
        self._report_if_complete()

    def flush(self) -> None:
        """Report incomplete slices one by one."""
        pieces, place = self._pieces, self._place
        self._pieces, self._offsets, self._place, self._called_with = [], [], None, None
        for piece in pieces:
            assert place is not None
            self._report(piece, place)

    def _continues(self, captured: CapturedWeights, place: Place) -> bool:
        """Whether these values follow those of the previous slice."""
        assert self._place is not None
        assert self._join is not None
        v, last = captured.v, self._pieces[-1]
        if self._join.is_call:
            same = place.name == self._place.name and captured.weights.shape == last.weights.shape
            return same and _input(place) is self._called_with
        if v is None or last.v is None or place.name != self._place.name or key_of(v) != self._storage:
            return False
        axis, step = self._join.axis, _offset(captured) - self._offsets[-1]
        if self._join.is_new:
            steps = {b - a for a, b in zip(self._offsets, self._offsets[1:], strict=False)} | {step}
            return captured.weights.shape == last.weights.shape and len(steps) == 1 and step > 0
        same = captured.weights.shape[axis + 1 :] == last.weights.shape[axis + 1 :]
        return same and step == last.weights.shape[axis] * v.stride(axis)

    def _report_if_complete(self) -> None:
        join, place = self._join, self._place
        assert join is not None
        assert place is not None
        count = len(self._pieces) if join.is_new else sum(piece.weights.shape[join.axis] for piece in self._pieces)
        if count == join.total:
            whole = _joined(self._pieces, join)
            self._pieces, self._offsets, self._place, self._called_with = [], [], None, None
            self._report(whole, place)
        elif count > join.total:
            self.flush()


def join_of(captured: CapturedWeights, place: Place) -> Join | None:
    """How to join weights that are fewer than the module's samples and heads; None if they are complete.

    A module with H heads that was called with B samples computes B · H matrices.
    """
    weights, v, H = captured.weights, captured.v, heads_of(place.module)
    if v is None or H is None or not has_storage(v):
        return None
    if weights.dim() == 4:
        h, own = weights.shape[1], own_heads_of(place.module) is not None
        fits = own and h < H and H % h == 0 and H not in (weights.shape[0], weights.shape[2])
        return Join(1, H, is_call=True) if fits else None
    if weights.dim() != 3 or v.dim() != 3:
        return None
    given = _input(place)
    B = None if given is None else len(given)
    n, available = len(weights), v.untyped_storage().nbytes() // v.element_size()
    if B is None or n >= B * H or H == 1 or available < B * H * v.shape[1] * v.shape[2]:
        return None
    if v.stride(0) == v.shape[1] * v.shape[2] and v.is_contiguous():
        return Join(0, B * H)
    return Join(1, H, is_new=True) if n == B and own_heads_of(place.module) is not None else None


def _copied(captured: CapturedWeights) -> CapturedWeights:
    """Copy what the model may overwrite."""
    lse, v, factor = (None if x is None else x.detach().clone() for x in (captured.lse, captured.v, captured.factor))
    return captured._replace(weights=captured.weights.detach().clone(), lse=lse, v=v, factor=factor)


def _joined(pieces: list[CapturedWeights], join: Join) -> CapturedWeights:
    together = torch.stack if join.is_new else torch.cat

    def whole(parts: list[Tensor | None]) -> Tensor | None:
        known = [part for part in parts if part is not None and part.dim() > join.axis]
        return together(known, join.axis) if len(known) == len(pieces) else None

    weights = together([piece.weights for piece in pieces], join.axis)
    lse = whole([piece.lse for piece in pieces])
    if join.is_call:  # the values cannot be assigned to heads by their layout
        return pieces[0]._replace(weights=weights, lse=lse, v=None, factor=None)
    v, factor = whole([piece.v for piece in pieces]), whole([piece.factor for piece in pieces])
    return pieces[0]._replace(weights=weights, lse=lse, v=v, factor=factor)


def _input(place: Place) -> Tensor | None:
    """The hidden states that the running module was called with."""
    return next((x for _, x in call_arguments(place.module) if x.dim() > 2 and x.is_floating_point()), None)


def _offset(captured: CapturedWeights) -> int:
    return 0 if captured.v is None else int(captured.v.storage_offset())
