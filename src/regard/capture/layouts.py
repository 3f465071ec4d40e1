"""Attention weights of any layout as B H T S, by the module's number of heads and of samples; slices joined again.

A model that saves memory computes some samples, or some heads, at a time. Slices are matched by their values: those of
the next slice follow those of the last in the same storage. A loop over heads uses values a fixed step apart. A loop
over groups of heads copies them; there, one call of the module must yield as many heads as the module has. Slices that
do not fit together are reported separately.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.capture.aliases import key_of
from regard.capture.model_facts import attribute_of
from regard.capture.module_names import Place, call_arguments, running_arguments
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.torch_internals import has_storage

HEAD_COUNT_NAMES = ("num_heads", "n_heads", "n_head", "nhead", "nheads", "heads", "num_attention_heads")


def heads_of(module: nn.Module) -> int | None:
    """The number of heads by an attribute of the module or its config; None if neither has one.

    >>> heads_of(nn.MultiheadAttention(8, 2))
    2
    """
    own = own_heads_of(module)
    return own_heads_of(attribute_of(module, "config")) if own is None else own


def own_heads_of(owner: Any) -> int | None:
    """The number of heads by an attribute of the module, or of a config, itself."""
    for name in HEAD_COUNT_NAMES:
        found = attribute_of(owner, name)
        if isinstance(found, int) and found > 0:
            return found
    return None


def by_heads(weights: Tensor, module: nn.Module) -> Tensor:
    """Weights (…, T, S) as B H T S: four axes unchanged, others by the module's number of heads.

    If that does not fit, the axis before T counts heads if there are more axes; a single one counts samples.

    >>> import torch
    >>> by_heads(torch.ones(6, 3, 3), nn.MultiheadAttention(8, 2)).shape
    torch.Size([3, 2, 3, 3])
    """
    lead = weights.shape[:-2]
    if len(lead) == 2:
        return weights
    heads, own = heads_of(module) or 0, lead[-1] if len(lead) > 1 else 1
    # (B · H), (B, groups, heads of a group), (B, windows, H), (B, H, windows): the one with the right number of heads.
    fits = heads and (lead[0] % heads == 0 if len(lead) == 1 else heads in (own, lead[-2:].numel()))
    if heads and not fits and len(lead) == 3 and heads == lead[1]:
        weights, own = weights.transpose(1, 2), heads
    return weights.reshape(-1, heads if fits else own, *weights.shape[-2:])


def sizes_of(captured: CapturedCall | CapturedWeights, module: nn.Module) -> tuple[int, int, int, int]:
    """B, H, T, S"""
    if isinstance(captured, CapturedWeights):
        B, H, T, S = by_heads(captured.weights, module).shape
        return B, H, T, S
    B, H, T, _ = captured.q.shape
    return B, H, T, captured.k.shape[2]


class Layouts:
    """Finds the layout of attention that a model computed itself."""

    def __init__(self) -> None:
        self._one_head: dict[str, bool] = {}
        self.unknown: dict[str, tuple[tuple[int, ...], int]] = {}
        """Modules whose axes are ambiguous: the shape of their weights, and the number of heads."""

    def ordered(self, captured: CapturedWeights, place: Place) -> CapturedWeights:
        """The same with axes in the order B H T S, also if each head is a module of its own."""
        shape, H = captured.weights.shape, heads_of(place.module)
        if H is None or len(shape) not in (3, 4):
            return captured
        if len(shape) == 3:
            if self._is_one_head(shape, place):
                lse = None if captured.lse is None else captured.lse[:, None]
                visible, sink = (None if x is None else x[:, None] for x in (captured.visible, captured.sink))
                return captured._replace(weights=captured.weights[:, None], lse=lse, visible=visible, sink=sink)
            return captured
        if shape[1] == H or H not in (shape[0], shape[2]):
            return captured
        return self._four_axes(captured, H, place)

    def _is_one_head(self, shape: torch.Size, place: Place) -> bool:
        """Decided once per module: the next batch may look different."""
        known = self._one_head.get(place.name)
        if known is None:
            known = self._one_head[place.name] = is_one_head(shape, place.module)
        return known

    def _four_axes(self, captured: CapturedWeights, H: int, place: Place) -> CapturedWeights:
        shape = captured.weights.shape
        if not captured.rows_known and shape[2] == H and shape[0] != H:
            return _swapped(captured, 1, 2)
        if captured.rows_known and shape[0] != H:  # more heads than the module states, and as many queries
            return captured
        counts = _sample_counts(shape, (tensor for _, tensor in running_arguments()))
        if captured.rows_known and shape[0] in counts:
            return captured
        if captured.rows_known and shape[1] in counts:
            return _swapped(captured, 0, 1)
        self.unknown.setdefault(place.name or "attention", (tuple(shape), H))
        return captured


def is_one_head(shape: tuple[int, ...], module: nn.Module) -> bool:
    """Whether the first axis of weights (N, T, S) counts only samples, though the config has H heads.

    Then the module is one head: it and its parents were called with N samples, and not with N / H. A module that has
    its own number of heads computes all of them.
    """
    H = heads_of(module)
    if len(shape) != 3 or H is None or H == 1 or own_heads_of(module) is not None:
        return False
    counts = _sample_counts(shape, (tensor for _, tensor in running_arguments()))
    return shape[0] in counts and shape[0] / H not in counts


def _sample_counts(shape: tuple[int, ...], tensors: Iterable[Tensor]) -> set[int]:
    """Possible numbers of samples: the first axis of tensors with as many positions as queries or keys."""
    return {len(x) for x in tensors if x.dim() > 1 and x.shape[1] in shape[-2:]}


def _swapped(captured: CapturedWeights, one: int, other: int) -> CapturedWeights:
    lse = None if captured.lse is None else captured.lse.transpose(one, other)
    visible = None if captured.visible is None or max(one, other) > 1 else captured.visible.transpose(one, other)
    sink = None if captured.sink is None else captured.sink.transpose(one, other)
    return captured._replace(weights=captured.weights.transpose(one, other), lse=lse, visible=visible, sink=sink)


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
