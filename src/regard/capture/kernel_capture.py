"""`KernelCapture`: reports a thread's attention operators to a CaptureMode; and `RepeatedCalls` of equal layers.

The mode is entered only where overrides are not enough: once the model computes a softmax itself, whose use must be
followed over the next operators. It is then below every other mode of the thread, as it would be if it had been entered
at the start.

Most calls of a model repeat the one before and differ only in their layer: the same operator, options, sizes and class
of module, causal by `is_causal`, in the same forward. Their kind, tokens and request are those of the call before, so
that only their q, k and LSE are kept (`RepeatedCalls`). So do the layers that compute the row of one generated token.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.capture.deferred_calls import CallBatch
from regard.capture.dispatch_mode import AUTOCASTS, CaptureMode
from regard.capture.kernel_overrides import OVERRIDES, has_other_operators
from regard.capture.module_names import Place
from regard.capture.operators import (
    READERS,
    CapturedCall,
    CapturedWeights,
    is_plain_causal,
    lse_of,
    named,
    why_unobservable,
)
from regard.capture.torch_internals import (
    FUSED_LAYERS,
    LISTENING,
    Isolated,
    dispatch_mode_count,
    exit_mode,
    is_any_autocast_enabled,
)
from regard.records import DecodeStep, Record, See

if TYPE_CHECKING:
    from regard.capture.watching import Watcher


class RepeatableCall(NamedTuple):
    """A call that other layers may repeat; without record if its module is not chosen.

    bytes   what the budget counts for its record
    batch   where it waits; None for the row of a generated token
    step    that of a generated token
    """

    captured: CapturedCall
    sizes: tuple[int, int, int, int]
    module: type[nn.Module]
    forward: int
    record: Record | None = None
    bytes: int = 0
    batch: CallBatch | None = None
    step: DecodeStep | None = None
    see: See | None = None


class _Signature(NamedTuple):
    """What a call must have in common with the one before, beside the class of its module."""

    func: Any
    forward: int
    q: torch.Size
    k: torch.Size
    dtype: torch.dtype
    device: torch.device
    options: tuple[Any, ...]
    keywords: dict[str, Any]


class RepeatedCalls:
    """The repeated calls of one watch. The Watcher sets `previous` after each call; None if it cannot be repeated."""

    def __init__(self, watcher: "Watcher") -> None:
        self._watcher = watcher
        self._signature: _Signature | None = None
        self._places: dict[int, Place | None] = {}
        """The modules whose calls may repeat another, by id; None for those whose calls may not."""
        self.previous: RepeatableCall | None = None

    def set_previous(self, place: Place, call: RepeatableCall) -> None:
        """Set the previous call to this one, if it is so plain that others may repeat it."""
        running = self._watcher.names.innermost()
        is_own = running is not None and running.name == place.name  # not assigned by the order of calls
        is_plain = is_plain_causal(call.captured) or call.step is not None
        self.previous = call if is_own and place.name and is_plain else None

    def note(self, func: Any, args: Any, kwargs: Any) -> None:
        """Note the operator of the call that was just recorded."""
        self._signature = None
        options = args[3:]
        if self.previous is not None and not any(isinstance(x, Tensor) for x in (*options, *kwargs.values())):
            q, k = args[0], args[1]
            self._signature = _Signature(
                func, self.previous.forward, q.shape, k.shape, q.dtype, q.device, options, kwargs
            )

    def repeat(self, func: Any, args: Any, kwargs: Any, result: Any) -> bool:
        """Record a call if it repeats the one before. Returns False if the Watcher must record it.

        Our own error must not end the model's forward: it is noted with the module, and the next call is the Watcher's.
        """
        if self._signature is None:
            return False
        try:
            return self._repeat(func, args, kwargs, result)
        except Exception as error:
            self._signature = self.previous = None
            place = self._watcher.names.innermost()
            self._watcher.trace.note_error(error, [] if place is None else [place.name])
            return True

    def _repeat(self, func: Any, args: Any, kwargs: Any, result: Any) -> bool:
        signature, previous, watcher = self._signature, self.previous, self._watcher
        if (
            signature is None
            or previous is None
            or func is not signature.func
            or signature.forward != watcher.texts.forwards
        ):
            return False
        q, k = args[0], args[1]
        if (
            q.shape != signature.q
            or k.shape != signature.k
            or q.dtype is not signature.dtype
            or q.device != signature.device
        ):
            return False
        if args[3:] != signature.options or kwargs != signature.keywords or dispatch_mode_count():
            return False
        place = self._place(previous)
        if place is None or type(place.module) is not previous.module:
            return False
        if place.name not in watcher.chosen:
            watcher.missed.note_other(place)
            return True
        if previous.record is None or not watcher.budget.fits_again(previous.bytes):
            return False
        lse = lse_of(result[1], signature.q[2])
        with Isolated() if torch.is_grad_enabled() or is_any_autocast_enabled() else nullcontext():
            if previous.batch is not None:
                is_kept = watcher.trace.repeat_call(previous.batch, q, k, lse)
            else:
                is_kept = self._keep_row(place, previous, previous.captured._replace(q=q, k=k, v=args[2], lse=lse))
        if is_kept:
            watcher.budget.count(previous.bytes)
            watcher.trace.append(previous.record.changed(name=place.name))
        return is_kept

    def _keep_row(self, place: Place, previous: RepeatableCall, call: CapturedCall) -> bool:
        """Keep the row of a generated token. Returns False if it must be computed at once."""
        if previous.step is None or previous.see is None:
            return False
        row = self._watcher.history.row(place.name, call, previous.step)
        if row is not None:
            self._watcher.trace.defer(row, previous.see)
        return row is not None

    def _place(self, previous: RepeatableCall) -> Place | None:
        """The running module, if its calls may repeat another's."""
        place = self._watcher.names.innermost()
        if place is None:
            return None
        at = id(place.module)
        if at not in self._places:
            self._places[at] = place if self._may_repeat(place, previous) else None
        return self._places[at]

    def _may_repeat(self, place: Place, previous: RepeatableCall) -> bool:
        watcher = self._watcher
        is_decoder = watcher.kinds.of(place, previous.captured, previous.sizes) == "decoder"
        if not is_decoder or not place.name or watcher.order.contains_attention(place):
            return False
        return watcher.texts.has_leader("decoder", besides=place.name)


class KernelCapture:
    """Listens on behalf of a mode.

    is_followed   whether the use of a softmax must be followed
    repeated      records calls that differ from the one before only in their layer
    """

    def __init__(
        self,
        mode: CaptureMode,
        is_followed: Callable[[Tensor], bool],
        repeated: RepeatedCalls,
    ) -> None:
        self._mode, self._is_followed, self._repeated = mode, is_followed, repeated
        self.replaces = mode.replaces
        self._listens = self._entered = False
        self._thread = 0

    def begin(self, devices: Iterable[str]) -> None:
        """Listen on these devices; enter the mode where that is not possible."""
        others_entered = bool(dispatch_mode_count())  # they would receive other operators than without us
        if not others_entered and not has_other_operators() and OVERRIDES.begin(devices):
            self._listens, self._thread = True, threading.get_ident()
            LISTENING.active = (*LISTENING.active, self)
        else:
            self.enter()

    def enter(self) -> None:
        """Enter the mode: from here on, it sees every operator."""
        self._mode.__enter__()
        self._entered, self._thread = True, threading.get_ident()

    def end(self, *raised: Any) -> None:
        """End what `begin` began.

        In another thread, as web frameworks end a context: the thread that opened it removes the listener at its next
        attention, and keeps the mode, which then passes every operator on.
        """
        try:
            if self._entered and self._thread == threading.get_ident():
                exit_mode(self._mode, *raised)
        finally:
            if self._listens:
                self._listens = False
                self._leave()
                OVERRIDES.end()

    def _leave(self) -> None:
        LISTENING.active = tuple(one for one in LISTENING.active if one is not self)

    def _has_ended(self) -> bool:
        """Whether the block was ended, by another thread."""
        if not self._listens:
            self._leave()
        return not self._listens

    # --- what the overrides report -----------------------------------------------------------------------------

    def output(self, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        return (False, None) if self._has_ended() else self._mode.replace(func, args, kwargs)

    def attention(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if self._has_ended() or self._repeated.repeat(func, args, kwargs, result):
            return
        if func in FUSED_LAYERS:
            on = [device for device in AUTOCASTS if torch.is_autocast_enabled(device)]
            self._mode.observe(self._read_layer, on, func, args, kwargs, result)
        else:
            self._mode.observe_attention(func, args, kwargs, result)
            self._repeated.note(func, args, kwargs)

    def softmax(self, func: Any, args: Any, result: Tensor) -> bool:
        is_likely = result.dim() > 1 and bool(result.numel()) and not self._has_ended()
        return is_likely and self._is_followed(result)

    def follow(self, func: Any, args: Any, result: Any) -> None:
        self._mode.observe_softmax(args, result)

    def other(self, func: Any, args: Any, result: Any) -> None:
        if not self._has_ended():
            self._mode.observe_other(func, args, result)

    def unobservable(self, func: Any, args: Any) -> None:
        types = {type(x) for x in args if isinstance(x, Tensor) and type(x).__torch_dispatch__ is not _PLAIN}
        reason = why_unobservable(args, types)
        if reason is not None and not self._has_ended():
            self._mode.unobserved.add(reason, likely=READERS[func] is not None or args[0].dim() > 3)

    def _read_layer(self, autocasts: list[str], func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Read an operator whose projections are recomputed: with autocast as it was inside the operator."""
        reader = READERS[func]
        assert reader is not None
        for device in autocasts:
            torch.set_autocast_enabled(device, True)
        try:
            captured: CapturedCall | CapturedWeights = reader(named(func, args, kwargs), result)
        finally:
            for device in autocasts:
                torch.set_autocast_enabled(device, False)
        self._mode.report(captured)


_PLAIN = Tensor.__torch_dispatch__
