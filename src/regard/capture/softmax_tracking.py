"""Softmaxes that a model computes itself: whether one is attention is known from how its result is used.

A result that is multiplied with something other than a parameter, summed over the axis of the softmax, is attention. A
sum over another axis, as after a softmax over queries or heads, is not, and the module is noted. Before the product the
weights may be cast, viewed, masked, sliced or dropped; those before dropout are captured. Other results computed from
them, for example for logging, are aliases that no product uses. A softmax written as exponentials over their sum is not
recognised. A softmax that may be attention, by its module, and that no product used, is reported as lost.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.aliases import Alias, changed, copied, key_of, original, sliced
from regard.capture.operators import CapturedWeights
from regard.capture.torch_internals import COPY_TO, Isolated, has_storage
from regard.masks.padding import visible_columns
from regard.records import Rest

aten = torch.ops.aten

MAX_OPERATORS = 64
"""The number of operators after which an unused softmax is dropped; Hugging Face's models need up to ten."""

LEFT_FACTOR = {aten.bmm.default: 0, aten.mm.default: 0, aten.baddbmm.default: 1, aten.addmm.default: 1}
COPIES = {aten.clone.default, COPY_TO}
DROPOUT, NOISE, IN_PLACE = aten.native_dropout.default, aten.bernoulli_.float, aten.mul_.Tensor
SLICE = aten.slice.Tensor
CHANGES: dict[Any, Rest] = {
    SLICE: "sink",
    aten.mul.Tensor: "scaled",
    aten.div.Tensor: "scaled",
    aten.add.Tensor: "mixed",
    aten.sub.Tensor: "mixed",
    aten.masked_fill.Scalar: "masked",
    aten.masked_fill.Tensor: "masked",
    aten.mul_.Tensor: "scaled",
    aten.div_.Tensor: "scaled",
    aten.masked_fill_.Scalar: "masked",
    aten.masked_fill_.Tensor: "masked",
    aten.where.self: "masked",
    aten.nan_to_num.default: "",
    aten.tril.default: "masked",
    aten.tril_.default: "masked",
    aten.pow.Tensor_Scalar: "scaled",
    aten.convolution.default: "mixed",
}
"""Changes that models make to weights after the softmax on purpose: sinks cut off, rows masked, heads mixed or
subtracted; with the reason why rows may not sum to 1 afterwards.
"""


@dataclass(slots=True, eq=False)
class _TrackedSoftmax:
    """One tracked softmax with all its aliases, by storage; within a storage the newest alias is last."""

    rows: int
    transposed: bool  # the softmax was not along the last axis
    started: int
    module: str | None  # the module that computes it, if it may be attention
    used: bool = False
    wrong_axis: str | None = None  # the module whose product summed over another axis than the softmax's
    aliases: dict[int, list[Alias]] = field(default_factory=dict)

    def aliases_of(self, tensor: Any) -> list[Alias]:
        """The aliases that share the storage of `tensor`."""
        return self.aliases.get(key_of(tensor), []) if isinstance(tensor, Tensor) else []

    def __contains__(self, tensor: Any) -> bool:
        return bool(self.aliases_of(tensor))

    def alias_of(self, tensor: Any) -> Alias | None:
        """The alias that `tensor` is, or is part of; None if it is unrelated to this softmax."""
        found = self.aliases_of(tensor)
        return next((alias for alias in reversed(found) if alias.fits(tensor)), found[0] if found else None)


class SoftmaxTracker:
    """Follows every operator, and finds the product that uses a softmax as weights."""

    def __init__(self, running_module: Callable[[bool], str | None] | None = None) -> None:
        self._running_module = running_module or (lambda likely: None)
        """Names the running module if it is attention or, with `likely`, in any case; else None."""
        self._lost: dict[str, None] = {}
        self._wrong_axis: dict[str, None] = {}
        self.followed: list[_TrackedSoftmax] = []
        """The softmaxes that no product has used yet."""
        self._noise: dict[int, StorageWeakRef] = {}
        self._operators = 0
        """The number of operators so far."""

    def save_before_dropout(self, args: tuple[Any, ...]) -> None:
        """Call before `IN_PLACE`: dropout in place would destroy the weights."""
        if self._is_noise(args[1]):
            for one in self.followed:
                alias = one.alias_of(args[0])
                if alias is not None and not alias.dropped and alias.fits(args[0]):
                    alias.kept, alias.dropped = alias.weights(args[0]).clone(), True

    def add(self, args: tuple[Any, ...], result: Tensor) -> None:
        """Start to track a softmax."""
        if result.is_nested or result.dim() < 2 or not result.numel():
            return
        scores, dim = args[0], args[1] % result.dim()
        transposed = dim != result.dim() - 1
        weights = result.movedim(dim, -1) if transposed else result
        module = self._running_module(result.dim() > 3 and not transposed) if result.dim() > 2 else None
        one = _TrackedSoftmax(weights.shape[:-1].numel(), transposed, self._operators, module)
        scores = scores.movedim(dim, -1)
        visible = visible_columns(scores) if scores.shape == weights.shape else None
        one.aliases[key_of(result)] = [original(weights, _lse(scores, weights), visible)]
        self.followed.append(one)

    def note_log_softmax(self, args: tuple[Any, ...], result: Tensor) -> None:
        """Note a log-softmax: in a module that is attention by its class, it is lost attention."""
        module = self._running_module(False) if result.dim() > 2 else None
        if module is not None:
            self._lost.setdefault(module)

    def lost(self) -> list[str]:
        """Modules with a softmax that may be attention and that no product used."""
        left = {one.module: None for one in self.followed if one.module is not None and not one.used}
        wrong_axis = self.wrong_axis()
        return [name for name in self._lost | left if name not in wrong_axis]

    def wrong_axis(self) -> list[str]:
        """Modules that multiplied a softmax with values but summed over another axis: queries or heads."""
        left = {one.wrong_axis: None for one in self.followed if one.wrong_axis is not None and not one.used}
        return list(self._wrong_axis | left)

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> CapturedWeights | None:
        """Follow one operator. Returns the captured weights once they are known to be attention."""
        self._operators += 1
        if self._operators - self.followed[0].started > MAX_OPERATORS:
            self._give_up(self.followed[0])
        role = _ROLES.get(id(func))
        return None if role is None else role(self, func, args, result)

    # --- what operators do to weights ---------------------------------------------------------------------------

    def _product(self, func: Any, args: tuple[Any, ...], result: Tensor) -> CapturedWeights | None:
        left, right = args[LEFT_FACTOR[func]], args[LEFT_FACTOR[func] + 1]
        if not _is_parameter(right):
            return self._used_in(left, right)
        for one in self.followed:  # a layer mixed the heads and may have changed their layout
            alias = one.alias_of(left)
            if alias is not None and result.numel() == alias.shape.numel():
                storage, normal = StorageWeakRef(result.untyped_storage()), _normal_of_rows(alias, left, result)
                self._add(one, result, Alias(storage, alias.shape, None, 0, None, normal=normal, rest="mixed"))
        return None

    def _dropout_mask(self, func: Any, args: tuple[Any, ...], result: Tensor) -> None:
        self._noise[key_of(result)] = StorageWeakRef(result.untyped_storage())

    def _copy(self, func: Any, args: tuple[Any, ...], result: Tensor) -> None:
        for one in self.followed:
            alias = one.alias_of(args[0])
            if alias is not None:
                self._add(one, result, copied(alias, args[0], result) or changed(alias, args[0], result))

    def _dropout(self, func: Any, args: tuple[Any, ...], result: tuple[Tensor, Tensor]) -> None:
        for one in self.followed:
            alias = one.alias_of(args[0])
            if alias is not None:
                self._add(one, result[0], copied(alias, args[0], result[0], dropped=True))

    def _change(self, func: Any, args: tuple[Any, ...], result: Tensor) -> CapturedWeights | None:
        if func is aten.mul.Tensor and len(args) == 2:
            for left, right in (args, args[::-1]):
                found = self._product_of_one_key(left, right)
                if found is not None:
                    return found
        noisy = any(self._is_noise(x) for x in args)
        for one in self.followed:
            before = next((x for x in args if one.aliases_of(x)), None)
            alias = one.alias_of(before)
            if before is not None and alias is not None:
                if func is not SLICE and key_of(result) == key_of(before):
                    _mark_overwritten(one.aliases_of(before))
                rest = CHANGES[func]
                made = copied(alias, before, result, dropped=True) if noisy else changed(alias, before, result, rest)
                if func is SLICE and made is not None:
                    made = sliced(alias, before, made, *_slice_of(args))
                self._add(one, result, made)
        return None

    def _product_of_one_key(self, left: Any, right: Any) -> CapturedWeights | None:
        """The weights in a product with the values of a single key, for which einsum has no axis to sum over."""
        if not (isinstance(left, Tensor) and isinstance(right, Tensor)) or left.dim() != right.dim():
            return None
        for one in reversed(self.followed):
            alias = one.alias_of(left)
            if alias is None or alias.shape[-1] > 1 or not 2 < len(alias.shape) < left.dim() or not alias.fits(left):
                continue
            order = alias.order(left)
            widths = [at for at in range(left.dim()) if left.shape[at] == 1 < right.shape[at]]
            if order is None or len(widths) != 1 or widths[0] in order[:-1] or right.shape[order[-2]] > 1:
                continue
            v = right.permute(
                *order[:-2], *(at for at in range(right.dim()) if at not in (*order[:-2], *widths)), *widths
            )
            with Isolated():
                v = v.flatten(len(order) - 2, -2).expand(*alias.shape[:-2], 1, -1)
                return self._captured(alias, left, alias.weights(left), v)
        return None

    def _add(self, one: _TrackedSoftmax, result: Tensor, alias: Alias | None) -> None:
        """Store an alias; a view, or a tensor changed in place, is stored beside others of the same storage."""
        if alias is not None and has_storage(result):
            one.aliases.setdefault(key_of(result), []).append(alias)

    def _used_in(self, left: Tensor, right: Tensor) -> CapturedWeights | None:
        for one in reversed(self.followed):
            # A matrix that all samples share is a table, not values.
            alias = one.alias_of(left)
            if alias is not None and alias.is_factor(left, -1) and (right.dim() > 2 or len(alias.shape) == 2):
                return self._captured(alias, left, left, right)
            if alias is not None:
                self._note_wrong_axis(one, alias, left, -1)
            # One normalised column is a filter, as in dynamic convolutions.
            alias = None if _is_parameter(left) or (one.transposed and right.shape[-1] == 1) else one.alias_of(right)
            if alias is not None and alias.is_factor(right, -2) and (right.dim() > 2 or len(alias.shape) == 2):
                with Isolated():
                    return self._captured(alias, right, right.mT, left.mT)
            if alias is not None:
                self._note_wrong_axis(one, alias, right, -2)
        return None

    def _note_wrong_axis(self, one: _TrackedSoftmax, alias: Alias, factor: Tensor, axis: int) -> None:
        """Note a product that summed over `axis` of the weights, which is not the axis of the softmax."""
        if one.wrong_axis is None and alias.fits(factor) and alias.is_normal(factor, axis) is False:
            one.wrong_axis = self._running_module(len(alias.shape) > 2 or alias.shape[0] == alias.shape[1])

    def _captured(self, alias: Alias, tensor: Tensor, factor: Tensor, v: Tensor) -> CapturedWeights:
        sources = [one for one in self.followed if one.aliases_of(tensor)]
        for one in sources:
            one.used = True
            if alias.shape[:-1].numel() >= one.rows:  # else other heads or queries may follow
                self._forget(one)
        weights, rows = alias.weights(factor), alias.rows(factor)
        lse, sink = (alias.lse, alias.sink) if len(sources) == 1 else (None, None)
        visible = alias.visible if len(sources) == 1 and rows in (-2, None) else None
        with Isolated():
            if rows is None and weights.dim() == 2 and factor.shape[-2] == 1:  # one query of each sample
                weights, rows, visible = weights[:, None, None], -2, None if visible is None else visible[:, None, None]
                lse, sink = (None if x is None else x[:, None, None] for x in (lse, sink))
            elif rows is not None and rows != -2:
                weights = weights.movedim(rows, -2)
                lse, sink = (None if x is None else x.movedim(rows + 1, -1) for x in (lse, sink))
        known = rows is not None
        return CapturedWeights(
            weights, lse, v=v, factor=factor, rows_known=known, rest=alias.rest, visible=visible, sink=sink
        )

    def _give_up(self, one: _TrackedSoftmax) -> None:
        if one.wrong_axis is not None and not one.used:
            self._wrong_axis.setdefault(one.wrong_axis)
        elif one.module is not None and not one.used:
            self._lost.setdefault(one.module)
        self._forget(one)

    def _forget(self, one: _TrackedSoftmax) -> None:
        self.followed.remove(one)
        if not self.followed:
            self._noise.clear()

    def _is_noise(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor) and key_of(tensor) in self._noise


_ROLES: dict[int, Callable[..., CapturedWeights | None]] = {
    id(func): role
    for funcs, role in (
        (LEFT_FACTOR, SoftmaxTracker._product),
        (COPIES, SoftmaxTracker._copy),
        ({DROPOUT}, SoftmaxTracker._dropout),
        ({NOISE}, SoftmaxTracker._dropout_mask),
        (CHANGES, SoftmaxTracker._change),
    )
    for func in funcs
}
"""What an operator may do to weights. By the id of the operator, because operators hash slowly."""


def _slice_of(args: tuple[Any, ...]) -> tuple[int, int | None, int | None]:
    """The axis, start and end of `aten.slice`, with its defaults."""
    axis, start, end = (*args[1:4], *(0, None, None)[len(args) - 1 :]) if len(args) < 4 else args[1:4]
    return axis, start, end


def _mark_overwritten(aliases: list[Alias]) -> None:
    """Note that a storage was written to: it no longer holds a copy."""
    for alias in aliases:
        if not alias.dropped:
            alias.kept = None


def _normal_of_rows(alias: Alias, left: Tensor, result: Tensor) -> int | None:
    """The stride of the softmax's axis after a layer, if the rows of `left` count that axis."""
    step = left.stride(-2)
    if alias.normal is None or not step or alias.normal % step or alias.is_normal(left, -1):
        return None
    return alias.normal // step * result.stride(-2)


def _is_parameter(tensor: Tensor) -> bool:
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _lse(scores: Tensor, weights: Tensor) -> Tensor:
    """The largest score minus the log of its weight; −inf for a fully masked query."""
    if weights.dtype in (torch.float16, torch.bfloat16):  # the weight is too coarse
        return scores.float().logsumexp(-1)
    highest = scores.amax(-1).to(weights.dtype)
    return (highest - weights.amax(-1).log()).masked_fill(highest == -torch.inf, -torch.inf)
