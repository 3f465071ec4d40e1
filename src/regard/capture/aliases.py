"""Weights on their way from a softmax to a product: each tensor that is made of them is a form of its own.

A form is known by its storage, which every view shares, and by where its axes lie there. Nothing is kept alive that the
model lets go, except weights of which only a copy goes on.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.isolated import Aside
from regard.records import Rest

SINKS = 4
"""So many columns, cut off behind a softmax, are taken for sinks."""


@dataclass(slots=True, eq=False)
class Form:
    """Weights (…, T, S) in one storage.

    strides  of each of their axes; None where that is not known, as after a layer that mixed the heads
    kept     the weights themselves, where the storage holds a copy of them, or what dropout left
    normal   the stride of the axis that the softmax normalised; None where that is not known
    rest     why their rows may not sum to 1, by the last that was done to them
    seen     (…, S), which keys a query sees, by the scores; None where that is all, or unknown
    sink     (…, T), what went to columns that were cut off and are no keys; None where there are none
    """

    storage: StorageWeakRef  # held weakly, and so never given to another
    shape: torch.Size
    strides: tuple[int, ...] | None
    offset: int
    lse: Tensor | None
    kept: Tensor | None = None
    dropped: bool = False
    normal: int | None = None
    rest: Rest = ""
    seen: Tensor | None = None
    sink: Tensor | None = None

    def fits(self, tensor: Tensor) -> bool:
        """Whether a tensor of this storage is these weights, whole, in whichever order of axes."""
        return tensor.numel() == self.shape.numel() and tensor.storage_offset() == self.offset

    def is_factor(self, tensor: Tensor, keys: int) -> bool:
        """Whether a product that sums over the axis `keys` of a tensor of this storage sums over keys.

        Sizes alone do not tell: of square weights, a softmax over queries has the same.
        """
        return tensor.shape[keys] == self.shape[-1] and self.fits(tensor) and self.is_normal(tensor, keys) is not False

    def is_normal(self, tensor: Tensor, axis: int) -> bool | None:
        """Whether an axis of a tensor of this storage is the one that the softmax normalised; None if unknown."""
        if self.normal is None or tensor.shape[axis] == 1:
            return None
        return tensor.shape[axis] == self.shape[-1] and tensor.stride(axis) == self.normal

    def normal_in(self, before: Tensor, result: Tensor) -> int | None:
        """The same stride in `result`, which was computed of `before`, a tensor of this storage, axis by axis."""
        axes = range(-min(before.dim(), result.dim()), 0)
        return next((result.stride(at) for at in axes if self.is_normal(before, at)), None)

    def weights(self, tensor: Tensor) -> Tensor:
        """The weights, which `tensor` fits: itself, where its storage is all that is known."""
        if self.kept is not None:
            return self.kept
        if self.strides is None or (tensor.shape == self.shape and tensor.stride() == self.strides):
            return tensor
        with Aside():
            return tensor.as_strided(self.shape, self.strides, self.offset)

    def order(self, tensor: Tensor) -> list[int] | None:
        """For each axis of the weights, the axis that it is in a tensor of this storage; None where they do not match.

        The strides tell. Axes of one element, which einsum puts in, do not count.
        """
        if self.strides is None:
            return None
        left, found = list(range(tensor.dim())), []
        for size, stride in zip(self.shape, self.strides, strict=True):
            same = [at for at in left if tensor.shape[at] == size and (size == 1 or tensor.stride(at) == stride)]
            if not same:
                return None
            left.remove(same[0])
            found.append(same[0])
        return found if all(tensor.shape[at] == 1 for at in left) else None

    def rows(self, taken: Tensor) -> int | None:
        """The axis of the weights, from the last, that counts queries: the rows of `taken`, as the product took it.

        None where strides do not tell, as of heads that share values and stand below each other, also those of one
        query.
        """
        size, first = taken.shape[-2], -len(self.shape)
        if self.strides is None:
            return -2 if self.kept is None else None
        axes = zip(self.shape[:-1], self.strides, strict=False)
        same = [
            at for at, axis in enumerate(axes, first) if axis[0] == size and (size == 1 or axis[1] == taken.stride(-2))
        ]
        return same[-1] if same and (size == 1 or self.shape[-2] > 1) else None


def key_of(tensor: Tensor) -> int:
    """Of the storage of a tensor; 0 for one without memory of its own."""
    return tensor.untyped_storage()._cdata if torch._C._has_storage(tensor) else 0


def original(weights: Tensor, lse: Tensor | None, seen: Tensor | None = None) -> Form:
    """A form that nothing is known to come before."""
    storage = StorageWeakRef(weights.untyped_storage())
    offset = int(weights.storage_offset())
    return Form(storage, weights.shape, weights.stride(), offset, lse, normal=weights.stride(-1), seen=seen)


def copied(form: Form, before: Tensor, result: Tensor, dropped: bool = False) -> Form | None:
    """The form that holds a copy of `before`, or what dropout left of it: its weights are still those before.

    None where `before` is not all of the weights.
    """
    if not form.fits(before):
        return None
    order = form.order(before)
    strides = None if order is None else tuple(result.stride(at) for at in order)
    kept, shape = form.kept, form.shape
    if form.strides is not None or dropped:  # else the copy is as good
        kept = form.weights(before)
        shape = kept.shape
    storage = StorageWeakRef(result.untyped_storage())
    return Form(
        storage,
        shape,
        strides,
        int(result.storage_offset()),
        form.lse,
        kept,
        dropped or form.dropped,
        normal=form.normal_in(before, result),
        rest=form.rest,
        seen=form.seen,
        sink=form.sink,
    )


def changed(form: Form, before: Tensor, result: Tensor, rest: Rest = "") -> Form | None:
    """The form that was made of `before`, a tensor of `form`, by arithmetic or a cut; None where it is no weights."""
    if form.dropped:
        return copied(form, before, result)
    order = form.order(before) if result.dim() == before.dim() else None
    if order is not None and math.prod(result.shape[at] for at in order) != result.numel():
        order = None  # spread along another axis
    axes = range(result.dim()) if order is None else order
    shape, strides = torch.Size(result.shape[at] for at in axes), tuple(result.stride(at) for at in axes)
    storage, offset = StorageWeakRef(result.untyped_storage()), int(result.storage_offset())
    normal = form.normal_in(before, result)
    if order is not None or shape[:-1] == form.shape[:-1] or shape[-2:] == form.shape[-2:]:
        lse = form.lse if shape[:-1] == form.shape[:-1] else None
        seen, sink = (form.seen, form.sink) if shape == form.shape else (None, None)
        return Form(storage, shape, strides, offset, lse, normal=normal, rest=rest or form.rest, seen=seen, sink=sink)
    same = shape.numel() == form.shape.numel()
    rest = rest or form.rest
    return Form(storage, form.shape, None, offset, None, normal=normal, rest=rest) if same else None


def cut(form: Form, before: Tensor, made: Form, axis: int, start: int | None, end: int | None) -> Form:
    """The form that was cut out of `before`, with what is known of columns: a few that were cut off are learned sinks.

    Models add them to the scores as columns before the softmax, and take them off behind it: GPT-OSS and its kin, and
    "softmax plus one". Of more columns nobody knows whether other values take them.
    """
    order, S = form.order(before), form.shape[-1]
    if order is None or order[-1] != axis % before.dim() or not form.fits(before):
        return made
    low, high, _ = slice(start, end).indices(S)
    if made.shape != (*form.shape[:-1], high - low):
        return made
    made.seen = None if form.seen is None else form.seen[..., low:high]
    if 0 < S - (high - low) <= SINKS:
        with Aside():
            weights = form.weights(before).detach()
            sink = weights[..., :low].sum(-1, dtype=torch.float32) + weights[..., high:].sum(-1, dtype=torch.float32)
        made.sink = sink if form.sink is None else form.sink + sink
    return made
