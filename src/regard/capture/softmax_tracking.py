"""Softmaxes that models make themselves: which of them are attention is told by what becomes of them.

A result that goes on into a product with something that is no parameter, summed over the axis of the softmax, is
attention; summed over another axis, as after a softmax over queries or heads, it is not, and the module is noted. On
the way there it may be cast, viewed, masked, sliced, dropped; the weights are those before dropout. What else is
computed of them, to be logged, is another form of them, which no product takes. Not known is a softmax written as
exponentials over their sum. A softmax that may be attention, by what its module is, and that no product took, is
remembered as lost.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.aliases import Form, changed, copied, cut, key_of, original
from regard.capture.captured import CaughtWeights
from regard.capture.isolated import Aside
from regard.masks.padding import seen_in
from regard.records import Rest

aten = torch.ops.aten

PATIENCE = 64
"""Operators after which a softmax that no product took is forgotten; Hugging Face's models take up to ten."""

SOFTMAXES = {aten._softmax.default, aten._safe_softmax.default}
LOGARITHM = aten._log_softmax.default
"""Never followed: to most it is a loss."""
LEFT_FACTOR = {aten.bmm.default: 0, aten.mm.default: 0, aten.baddbmm.default: 1, aten.addmm.default: 1}
COPIES = {aten.clone.default, aten._to_copy.default}
DROPOUT, NOISE, IN_PLACE = aten.native_dropout.default, aten.bernoulli_.float, aten.mul_.Tensor
CUT = aten.slice.Tensor
CHANGES: dict[Any, Rest] = {
    CUT: "sink",
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
"""What models do to weights after the softmax, and mean: sinks cut off, rows hidden, heads mixed or subtracted. With
why rows may not sum to 1 afterwards."""


@dataclass(slots=True, eq=False)
class _Followed:
    """One softmax on its way, in all its forms, by storage; of one storage the last that was made comes last."""

    rows: int
    turned: bool  # the softmax was not along the last axis
    begun: int
    whose: str | None  # the module that makes it, where it may be attention
    taken: bool = False
    across: str | None = None  # the module whose product summed over another axis than the softmax's
    forms: dict[int, list[Form]] = field(default_factory=dict)

    def all_of(self, tensor: Any) -> list[Form]:
        """The forms that share the storage of `tensor`."""
        return self.forms.get(key_of(tensor), []) if isinstance(tensor, Tensor) else []

    def __contains__(self, tensor: Any) -> bool:
        return bool(self.all_of(tensor))

    def form_of(self, tensor: Any) -> Form | None:
        """The form that `tensor` is, or else is part of; None where it has nothing to do with this softmax."""
        found = self.all_of(tensor)
        return next((form for form in reversed(found) if form.fits(tensor)), found[0] if found else None)


class Softmaxes:
    """Is shown every operator, and tells which product took a softmax as weights."""

    def __init__(self, whose: Callable[[bool], str | None] | None = None) -> None:
        self._whose = whose or (lambda likely: None)
        """Names the module that is computing, where it is attention or, if `likely`, any; else None."""
        self._lost: dict[str, None] = {}
        self._across: dict[str, None] = {}
        self.followed: list[_Followed] = []
        """Those that are on their way."""
        self._noise: dict[int, StorageWeakRef] = {}
        self._seen = 0
        """Operators so far."""

    def save(self, args: tuple[Any, ...]) -> None:
        """Before `IN_PLACE`: dropout in place would destroy the weights."""
        if self._is_noise(args[1]):
            for one in self.followed:
                form = one.form_of(args[0])
                if form is not None and not form.dropped and form.fits(args[0]):
                    form.kept, form.dropped = form.weights(args[0]).clone(), True

    def begin(self, args: tuple[Any, ...], result: Tensor) -> None:
        """A softmax was made."""
        if result.is_nested or result.dim() < 2 or not result.numel():
            return
        scores, dim = args[0], args[1] % result.dim()
        turned = dim != result.dim() - 1
        weights = result.movedim(dim, -1) if turned else result
        whose = self._whose(result.dim() > 3 and not turned) if result.dim() > 2 else None
        one = _Followed(weights.shape[:-1].numel(), turned, self._seen, whose)
        scores = scores.movedim(dim, -1)
        seen = seen_in(scores) if scores.shape == weights.shape else None
        one.forms[key_of(result)] = [original(weights, _lse(scores, weights), seen)]
        self.followed.append(one)

    def pass_by(self, args: tuple[Any, ...], result: Tensor) -> None:
        """The logarithm of a softmax was made: in a module that is attention, it is attention."""
        whose = self._whose(False) if result.dim() > 2 else None
        if whose is not None:
            self._lost.setdefault(whose)

    def lost(self) -> list[str]:
        """The modules that made a softmax which may be attention, and which no product has taken."""
        left = {one.whose: None for one in self.followed if one.whose is not None and not one.taken}
        across = self.across()
        return [name for name in self._lost | left if name not in across]

    def across(self) -> list[str]:
        """The modules that multiplied a softmax with values, summing over another axis: over queries, over heads."""
        left = {one.across: None for one in self.followed if one.across is not None and not one.taken}
        return list(self._across | left)

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> CaughtWeights | None:
        """Another operator has run: what was caught, once it is sure that it is attention."""
        self._seen += 1
        if self._seen - self.followed[0].begun > PATIENCE:
            self._give_up(self.followed[0])
        role = _ROLES.get(id(func))
        return None if role is None else role(self, func, args, result)

    # --- what becomes of weights ---------------------------------------------------------------------------

    def _multiplied(self, func: Any, args: tuple[Any, ...], result: Tensor) -> CaughtWeights | None:
        left, right = args[LEFT_FACTOR[func]], args[LEFT_FACTOR[func] + 1]
        if not _is_parameter(right):
            return self._taken(left, right)
        for one in self.followed:  # a layer has mixed the heads, and laid them out as it liked
            form = one.form_of(left)
            if form is not None and result.numel() == form.shape.numel():
                storage, normal = StorageWeakRef(result.untyped_storage()), _normal_of_rows(form, left, result)
                self._add(one, result, Form(storage, form.shape, None, 0, None, normal=normal, rest="mixed"))
        return None

    def _made_noise(self, func: Any, args: tuple[Any, ...], result: Tensor) -> None:
        self._noise[key_of(result)] = StorageWeakRef(result.untyped_storage())

    def _copied(self, func: Any, args: tuple[Any, ...], result: Tensor) -> None:
        for one in self.followed:
            form = one.form_of(args[0])
            if form is not None:
                self._add(one, result, copied(form, args[0], result) or changed(form, args[0], result))

    def _dropped(self, func: Any, args: tuple[Any, ...], result: tuple[Tensor, Tensor]) -> None:
        for one in self.followed:
            form = one.form_of(args[0])
            if form is not None:
                self._add(one, result[0], copied(form, args[0], result[0], dropped=True))

    def _changed(self, func: Any, args: tuple[Any, ...], result: Tensor) -> None:
        noisy = any(self._is_noise(x) for x in args)
        for one in self.followed:
            before = next((x for x in args if one.all_of(x)), None)
            form = one.form_of(before)
            if before is not None and form is not None:
                if func is not CUT and key_of(result) == key_of(before):
                    _overwritten(one.all_of(before))
                rest = CHANGES[func]
                made = copied(form, before, result, dropped=True) if noisy else changed(form, before, result, rest)
                if func is CUT and made is not None:
                    made = cut(form, before, made, *_slice_of(args))
                self._add(one, result, made)

    def _add(self, one: _Followed, result: Tensor, form: Form | None) -> None:
        """A form was made; a view, or what was changed in place, stands beside others in its storage."""
        if form is not None and torch._C._has_storage(result):
            one.forms.setdefault(key_of(result), []).append(form)

    def _taken(self, left: Tensor, right: Tensor) -> CaughtWeights | None:
        for one in reversed(self.followed):
            # A matrix that all samples share is a table, and no values.
            form = one.form_of(left)
            if form is not None and form.is_factor(left, -1) and (right.dim() > 2 or len(form.shape) == 2):
                return self._caught(form, left, left, right)
            if form is not None:
                self._note_across(one, form, left, -1)
            # One column, normalised, is a filter as those of dynamic convolutions.
            form = None if _is_parameter(left) or (one.turned and right.shape[-1] == 1) else one.form_of(right)
            if form is not None and form.is_factor(right, -2) and (right.dim() > 2 or len(form.shape) == 2):
                with Aside():
                    return self._caught(form, right, right.mT, left.mT)
            if form is not None:
                self._note_across(one, form, right, -2)
        return None

    def _note_across(self, one: _Followed, form: Form, factor: Tensor, axis: int) -> None:
        """A product summed over `axis` of weights, and that is not the axis of the softmax."""
        if one.across is None and form.fits(factor) and form.is_normal(factor, axis) is False:
            one.across = self._whose(len(form.shape) > 2 or form.shape[0] == form.shape[1])

    def _caught(self, form: Form, factor: Tensor, taken: Tensor, v: Tensor) -> CaughtWeights:
        sources = [one for one in self.followed if one.all_of(factor)]
        for one in sources:
            one.taken = True
            if form.shape[:-1].numel() >= one.rows:  # else other heads or queries may come
                self._forget(one)
        weights, rows = form.weights(taken), form.rows(taken)
        lse, sink = (form.lse, form.sink) if len(sources) == 1 else (None, None)
        seen = form.seen if len(sources) == 1 and rows in (-2, None) else None
        with Aside():
            if rows is None and weights.dim() == 2 and taken.shape[-2] == 1:  # of each sample, one query
                weights, rows, seen = weights[:, None, None], -2, None if seen is None else seen[:, None, None]
                lse, sink = (None if x is None else x[:, None, None] for x in (lse, sink))
            elif rows is not None and rows != -2:
                weights = weights.movedim(rows, -2)
                lse, sink = (None if x is None else x.movedim(rows + 1, -1) for x in (lse, sink))
        told = rows is not None
        return CaughtWeights(weights, lse, v=v, taken=taken, rows_told=told, rest=form.rest, seen=seen, sink=sink)

    def _give_up(self, one: _Followed) -> None:
        if one.across is not None and not one.taken:
            self._across.setdefault(one.across)
        elif one.whose is not None and not one.taken:
            self._lost.setdefault(one.whose)
        self._forget(one)

    def _forget(self, one: _Followed) -> None:
        self.followed.remove(one)
        if not self.followed:
            self._noise.clear()

    def _is_noise(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor) and key_of(tensor) in self._noise


_ROLES: dict[int, Callable[..., CaughtWeights | None]] = {
    id(func): role
    for funcs, role in (
        (LEFT_FACTOR, Softmaxes._multiplied),
        (COPIES, Softmaxes._copied),
        ({DROPOUT}, Softmaxes._dropped),
        ({NOISE}, Softmaxes._made_noise),
        (CHANGES, Softmaxes._changed),
    )
    for func in funcs
}
"""By the id of an operator, which hashes slowly: what it may mean for weights."""


def _slice_of(args: tuple[Any, ...]) -> tuple[int, int | None, int | None]:
    """The axis, start and end of `aten.slice`, whose arguments may be left out."""
    axis, start, end = (*args[1:4], *(0, None, None)[len(args) - 1 :]) if len(args) < 4 else args[1:4]
    return axis, start, end


def _overwritten(forms: list[Form]) -> None:
    """A storage was written to: what it holds is no copy any more."""
    for form in forms:
        if not form.dropped:
            form.kept = None


def _normal_of_rows(form: Form, left: Tensor, result: Tensor) -> int | None:
    """The stride of the softmax's axis after a layer, where it is one of those that the rows of `left` count."""
    step = left.stride(-2)
    if form.normal is None or not step or form.normal % step or form.is_normal(left, -1):
        return None
    return form.normal // step * result.stride(-2)


def _is_parameter(tensor: Tensor) -> bool:
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _lse(scores: Tensor, weights: Tensor) -> Tensor:
    """The largest score, less the log of its weight; −inf where nothing is seen."""
    if weights.dtype in (torch.float16, torch.bfloat16):  # too coarse a weight
        return scores.float().logsumexp(-1)
    highest = scores.amax(-1).to(weights.dtype)
    return (highest - weights.amax(-1).log()).masked_fill(highest == -torch.inf, -torch.inf)
