"""Softmaxes that models make themselves: which of them are attention is told by what becomes of them.

A result that goes on into a product with something that is no parameter, summed over the axis of the softmax, is
attention. On the way there it may be cast, viewed, masked, sliced, dropped; the weights are those before dropout.
Not known are a softmax written as exponentials over their sum, and weights that are cut into a band (Longformer).
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.caught import CaughtWeights

aten = torch.ops.aten

PATIENCE = 64
"""Operators after which a softmax that no product took is forgotten; Hugging Face's models take up to ten."""

SOFTMAXES = {aten._softmax.default, aten._safe_softmax.default}
LEFT_FACTOR = {aten.bmm.default: 0, aten.mm.default: 0, aten.baddbmm.default: 1, aten.addmm.default: 1}
COPIES = {aten.clone.default, aten._to_copy.default}
DROPOUT, NOISE, IN_PLACE = aten.native_dropout.default, aten.bernoulli_.float, aten.mul_.Tensor
CHANGES = {
    aten.slice.Tensor,
    aten.mul.Tensor,
    aten.div.Tensor,
    aten.add.Tensor,
    aten.sub.Tensor,
    aten.masked_fill.Scalar,
    aten.masked_fill.Tensor,
    aten.mul_.Tensor,
    aten.div_.Tensor,
    aten.masked_fill_.Scalar,
    aten.masked_fill_.Tensor,
    aten.where.self,
    aten.nan_to_num.default,
    aten.convolution.default,
}
"""What models do to weights after the softmax, and mean: sinks cut off, rows hidden, heads mixed or subtracted."""


@dataclass(slots=True, eq=False)
class _Followed:
    """One softmax on its way: its weights as they are now, and every storage that holds them in some form."""

    weights: Tensor  # …, T, S
    lse: Tensor | None
    turned: bool  # the softmax was not along the last axis
    storages: dict[int, StorageWeakRef] = field(default_factory=dict)  # held weakly, and so never given to another
    mixed: bool = False  # a layer has mixed the heads, and laid them out as it liked
    dropped: bool = False
    age: int = 0

    def add(self, tensor: Any) -> None:
        if isinstance(tensor, Tensor) and torch._C._has_storage(tensor):
            self.storages[_key(tensor)] = StorageWeakRef(tensor.untyped_storage())

    def __contains__(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor) and _key(tensor) in self.storages


class Softmaxes:
    """Is shown every operator, and tells which product took a softmax as weights."""

    def __init__(self) -> None:
        self.followed: list[_Followed] = []
        """Those that are on their way."""
        self._noise: dict[int, StorageWeakRef] = {}

    def save(self, args: tuple[Any, ...]) -> None:
        """Before `IN_PLACE`: dropout in place would destroy the weights."""
        if self._is_noise(args[1]):
            for one in self.followed:
                if args[0] in one and not one.dropped:
                    one.weights, one.dropped = one.weights.clone(), True

    def begin(self, args: tuple[Any, ...], result: Tensor) -> None:
        """A softmax was made."""
        if result.is_nested or result.dim() < 2 or not result.numel():
            return
        scores, dim = args[0], args[1] % result.dim()
        turned = dim != result.dim() - 1
        weights = result.movedim(dim, -1) if turned else result
        one = _Followed(weights, _lse(scores.movedim(dim, -1), weights), turned)
        one.add(result)
        self.followed.append(one)

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> CaughtWeights | None:
        """Another operator has run: what was caught, once it is sure that it is attention."""
        if func in LEFT_FACTOR:
            left, right = args[LEFT_FACTOR[func]], args[LEFT_FACTOR[func] + 1]
            if not _is_parameter(right):
                return self._taken(left, right)
            self._mixed(left, result)
        if func is NOISE:
            self._noise[_key(result)] = StorageWeakRef(result.untyped_storage())
        for one in self.followed:
            one.age += 1
            if func in COPIES and args[0] in one:
                one.add(result)
            elif func is DROPOUT and args[0] in one:
                self._dropped(one, args[0], result[0])
            elif func in CHANGES:
                self._changed(one, args, result)
        if self.followed[0].age > PATIENCE:
            self._forget(self.followed[0])
        return None

    def _changed(self, one: _Followed, args: tuple[Any, ...], result: Tensor) -> None:
        before = next((x for x in args if x in one), None)
        if before is None:
            return
        if any(self._is_noise(x) for x in args):
            self._dropped(one, before, result)
            return
        one.add(result)
        shape, new = one.weights.shape, result.shape
        if not one.dropped and not one.turned and (new[:-1] == shape[:-1] or new[-2:] == shape[-2:]):
            one.lse = one.lse if new[:-1] == shape[:-1] else None
            one.weights = result

    def _dropped(self, one: _Followed, before: Tensor, result: Tensor) -> None:
        if one.mixed and not one.dropped and before.shape == one.weights.shape:
            one.weights = before
        one.dropped = True
        one.add(result)

    def _mixed(self, left: Tensor, result: Tensor) -> None:
        for one in self.followed:
            if left in one and result.numel() == one.weights.numel():
                one.mixed, one.lse = True, None
                one.add(result)

    def _taken(self, left: Tensor, right: Tensor) -> CaughtWeights | None:
        for one in reversed(self.followed):
            S, size = one.weights.shape[-1], one.weights.numel()
            as_left = left in one and left.shape[-1] == S and left.numel() == size
            as_right = right in one and right.shape[-2] == S and right.numel() == size and not one.turned
            # A matrix that all samples share is a table, and no values.
            if (as_left or (as_right and not _is_parameter(left))) and (right.dim() > 2 or one.weights.dim() == 2):
                self._forget(one)
                weights = left if one.mixed and not one.dropped and as_left else one.weights
                taken, v = (left, right) if as_left else (right.mT, left.mT)
                return CaughtWeights(weights, one.lse, v=v, taken=taken)
        return None

    def _forget(self, one: _Followed) -> None:
        self.followed.remove(one)
        if not self.followed:
            self._noise.clear()

    def _is_noise(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor) and _key(tensor) in self._noise


def _key(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata if torch._C._has_storage(tensor) else 0


def _is_parameter(tensor: Tensor) -> bool:
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _lse(scores: Tensor, weights: Tensor) -> Tensor:
    """The largest score, less the log of its weight; −inf where nothing is seen."""
    if weights.dtype in (torch.float16, torch.bfloat16):  # too coarse a weight
        return scores.float().logsumexp(-1)
    highest = scores.amax(-1).to(weights.dtype)
    return (highest - weights.amax(-1).log()).masked_fill(highest == -torch.inf, -torch.inf)
