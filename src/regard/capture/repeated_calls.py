"""Calls that differ from the one before only in their layer: most calls of a model, recorded without looking again.

Such a call has the same operator, options, sizes and class of module, is causal by `is_causal`, and belongs to the same
forward. So its kind, tokens and request are those of the call before, and only its q, k and LSE are kept.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from regard.capture.captured import CapturedCall
from regard.capture.module_names import Place
from regard.capture.operators import is_plain_causal, lse_of
from regard.capture.torch_internals import dispatch_mode_count, is_any_autocast_enabled
from regard.records import Record, See

if TYPE_CHECKING:
    from regard.capture.watching import Watcher


class Model(NamedTuple):
    """A call that others may repeat; without record and request if its module is not chosen."""

    call: CapturedCall
    sizes: tuple[int, int, int, int]
    module: type[nn.Module]
    forward: int
    record: Record | None = None
    see: See | None = None


class _Operator(NamedTuple):
    """The operator of that call, and its options."""

    func: Any
    options: tuple[Any, ...]
    keywords: dict[str, Any]


class RepeatedCalls:
    """The repeated calls of one watch. The Watcher sets `model` after each call; None if it cannot be repeated."""

    def __init__(self, watcher: "Watcher") -> None:
        self._watcher = watcher
        self._operator: _Operator | None = None
        self.model: Model | None = None

    def set_model(self, place: Place, model: Model) -> None:
        """Set the model if a call is so plain that others may repeat it."""
        running, q = self._watcher.names.innermost(), model.call.q
        is_own = running is not None and running.name == place.name  # not assigned by the order of calls
        self.model = model if is_own and place.name and is_plain_causal(model.call) and not q.requires_grad else None

    def note(self, func: Any, args: Any, kwargs: Any) -> None:
        """Note the operator of the call that was just recorded."""
        several = (*args[3:], *kwargs.values())
        is_plain = self.model is not None and not any(isinstance(x, torch.Tensor) for x in several)
        self._operator = _Operator(func, args[3:], kwargs) if is_plain else None

    def repeat(self, func: Any, args: Any, kwargs: Any, result: Any) -> bool:
        """Record a call if it repeats the one before. Returns False if it must be looked at."""
        operator, model, watcher = self._operator, self.model, self._watcher
        if operator is None or model is None or func is not operator.func or model.forward != watcher.texts.forwards:
            return False
        q, k, like = args[0], args[1], model.call
        if args[3:] != operator.options or kwargs != operator.keywords or q.shape != like.q.shape:
            return False
        if k.shape != like.k.shape or q.dtype != like.q.dtype or q.device != like.q.device or _is_unusual():
            return False
        place = watcher.names.innermost()
        if place is None or type(place.module) is not model.module:
            return False
        return self._record(place, model, like._replace(q=q, k=k, v=args[2], lse=lse_of(result[1], q.shape[2])))

    def _record(self, place: Place, model: Model, call: CapturedCall) -> bool:
        watcher = self._watcher
        if watcher.kinds.of(place, call, model.sizes) != "decoder" or watcher.order.contains_attention(place):
            return False
        if not watcher.texts.has_leader("decoder", besides=place.name):
            return False
        if place.name not in watcher.chosen:
            watcher.note_other(place)
            return True
        if model.record is None:
            return False
        see = watcher.budget.fit(call, place.name, place.module, model.sizes)
        if see is not model.see or not watcher.trace.defer_call(call, see):
            return False
        watcher.trace.append(model.record.changed(name=place.name))
        return True


def _is_unusual() -> bool:
    """Whether gradients, autocast or other modes are on: then copies must be made in isolation."""
    return torch.is_grad_enabled() or is_any_autocast_enabled() or bool(dispatch_mode_count())
