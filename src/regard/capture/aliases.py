"""Tensors that hold the weights of one softmax on the way to a product: each is an alias.

An alias is identified by its storage, which all views share, and by the strides of its axes. No tensor is kept alive
that the model frees, except weights of which only a copy is used further.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.torch_internals import Isolated, has_storage
from regard.records import Rest

SINKS = 4
"""Up to this number of columns, cut off after a softmax, count as sinks."""


@dataclass(slots=True, eq=False)
class Alias:
    """Weights (…, T, S) in one storage.

    strides  of each axis; None if unknown, as after a layer that mixed the heads
    kept     the weights themselves, if the storage holds a copy of them or the result of dropout
    normal   the stride of the axis that the softmax normalised; None if unknown
    rest     why rows may not sum to 1, by the last change
    visible  (…, S), the keys that a query sees, by the scores; None for all, or if unknown
    sink     (…, T), the weight of columns that were cut off and are not keys; None if there are none
    """

    storage: StorageWeakRef  # a weak reference, so that the key is not reused
    shape: torch.Size
    strides: tuple[int, ...] | None
    offset: int
    lse: Tensor | None
    kept: Tensor | None = None
    dropped: bool = False
    normal: int | None = None
    rest: Rest = ""
    visible: Tensor | None = None
    sink: Tensor | None = None

    def fits(self, tensor: Tensor) -> bool:
        """Whether a tensor of this storage is all of these weights, in any order of axes."""
        return tensor.numel() == self.shape.numel() and tensor.storage_offset() == self.offset

    def is_factor(self, tensor: Tensor, keys: int) -> bool:
        """Whether a product that sums over the axis `keys` of a tensor of this storage sums over keys.

        Sizes are not enough: a softmax over the queries of square weights has the same.
        """
        return tensor.shape[keys] == self.shape[-1] and self.fits(tensor) and self.is_normal(tensor, keys) is not False

    def is_normal(self, tensor: Tensor, axis: int) -> bool | None:
        """Whether the softmax normalised this axis of a tensor of this storage; None if unknown."""
        if self.normal is None or tensor.shape[axis] == 1:
            return None
        return tensor.shape[axis] == self.shape[-1] and tensor.stride(axis) == self.normal

    def normal_in(self, before: Tensor, result: Tensor) -> int | None:
        """The same stride in `result`, computed axis by axis from `before`, a tensor of this storage."""
        axes = range(-min(before.dim(), result.dim()), 0)
        return next((result.stride(at) for at in axes if self.is_normal(before, at)), None)

    def weights(self, tensor: Tensor) -> Tensor:
        """The weights that `tensor` fits: the tensor itself if only its storage is known."""
        if self.kept is not None:
            return self.kept
        if self.strides is None or (tensor.shape == self.shape and tensor.stride() == self.strides):
            return tensor
        with Isolated():
            return tensor.as_strided(self.shape, self.strides, self.offset)

    def order(self, tensor: Tensor) -> list[int] | None:
        """For each axis of the weights, the matching axis of a tensor of this storage; None if they do not match.

        Axes are matched by stride. Axes of one element, which einsum inserts, are ignored.
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

    def rows(self, factor: Tensor) -> int | None:
        """The axis of the weights, counted from the last, that counts queries: the rows of `factor` in the product.

        None if strides are not enough, as for heads that share values and are stacked, or for a single query.
        """
        size, first = factor.shape[-2], -len(self.shape)
        if self.strides is None:
            return -2 if self.kept is None else None
        axes = zip(self.shape[:-1], self.strides, strict=False)
        same = [
            at for at, axis in enumerate(axes, first) if axis[0] == size and (size == 1 or axis[1] == factor.stride(-2))
        ]
        return same[-1] if same and (size == 1 or self.shape[-2] > 1) else None


def key_of(tensor: Tensor) -> int:
    """The key of a tensor's storage; 0 for a tensor without memory."""
    return tensor.untyped_storage()._cdata if has_storage(tensor) else 0


def original(weights: Tensor, lse: Tensor | None, visible: Tensor | None = None) -> Alias:
    """The alias of a new softmax result."""
    storage = StorageWeakRef(weights.untyped_storage())
    offset = int(weights.storage_offset())
    return Alias(storage, weights.shape, weights.stride(), offset, lse, normal=weights.stride(-1), visible=visible)


def copied(alias: Alias, before: Tensor, result: Tensor, dropped: bool = False) -> Alias | None:
    """The alias for a copy of `before`, or for the result of dropout: its weights are still those before.

    None if `before` is not all of the weights.
    """
    if not alias.fits(before):
        return None
    order = alias.order(before)
    strides = None if order is None else tuple(result.stride(at) for at in order)
    kept, shape = alias.kept, alias.shape
    if alias.strides is not None or dropped:  # else the copy serves as well
        kept = alias.weights(before)
        shape = kept.shape
    storage = StorageWeakRef(result.untyped_storage())
    return Alias(
        storage,
        shape,
        strides,
        int(result.storage_offset()),
        alias.lse,
        kept,
        dropped or alias.dropped,
        normal=alias.normal_in(before, result),
        rest=alias.rest,
        visible=alias.visible,
        sink=alias.sink,
    )


def changed(alias: Alias, before: Tensor, result: Tensor, rest: Rest = "") -> Alias | None:
    """The alias of `result`, computed from `before`, a tensor of `alias`, by arithmetic or a slice; else None."""
    if alias.dropped:
        return copied(alias, before, result)
    order = alias.order(before) if result.dim() == before.dim() else None
    if order is not None and math.prod(result.shape[at] for at in order) != result.numel():
        order = None  # broadcast along another axis
    axes = range(result.dim()) if order is None else order
    shape, strides = torch.Size(result.shape[at] for at in axes), tuple(result.stride(at) for at in axes)
    storage, offset = StorageWeakRef(result.untyped_storage()), int(result.storage_offset())
    normal = alias.normal_in(before, result)
    if order is not None or shape[:-1] == alias.shape[:-1] or shape[-2:] == alias.shape[-2:]:
        lse = alias.lse if shape[:-1] == alias.shape[:-1] else None
        visible, sink = (alias.visible, alias.sink) if shape == alias.shape else (None, None)
        return Alias(
            storage, shape, strides, offset, lse, normal=normal, rest=rest or alias.rest, visible=visible, sink=sink
        )
    same = shape.numel() == alias.shape.numel()
    rest = rest or alias.rest
    return Alias(storage, alias.shape, None, offset, None, normal=normal, rest=rest) if same else None


def sliced(alias: Alias, before: Tensor, made: Alias, axis: int, start: int | None, end: int | None) -> Alias:
    """The alias of a slice of `before`; a few columns that it leaves out are learned sinks.

    Models append them to the scores as columns before the softmax and drop them after it: GPT-OSS and relatives, and
    "softmax plus one". More columns than that may be used by other values.
    """
    order, S = alias.order(before), alias.shape[-1]
    if order is None or order[-1] != axis % before.dim() or not alias.fits(before):
        return made
    low, high, _ = slice(start, end).indices(S)
    if made.shape != (*alias.shape[:-1], high - low):
        return made
    made.visible = None if alias.visible is None else alias.visible[..., low:high]
    if 0 < S - (high - low) <= SINKS:
        with Isolated():
            weights = alias.weights(before).detach()
            sink = weights[..., :low].sum(-1, dtype=torch.float32) + weights[..., high:].sum(-1, dtype=torch.float32)
        made.sink = sink if alias.sink is None else alias.sink + sink
    return made
