"""`KernelCapture`: hears a thread's attention operators through their overrides, and reports them to a CaptureMode.

The mode is entered only where overrides are not enough: once the model computes a softmax itself, whose use must be
followed over the next operators. It is then below every other mode of the thread, as it would be if it had been entered
at the start.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from regard.capture.captured import CapturedCall, CapturedWeights
from regard.capture.dispatch_mode import AUTOCASTS, CaptureMode
from regard.capture.kernel_overrides import LAYERS, OVERRIDES, has_unheard_operators
from regard.capture.operators import READERS, named
from regard.capture.repeated_calls import RepeatedCalls
from regard.capture.torch_internals import LISTENING, dispatch_mode_count
from regard.capture.unobserved import why_unobservable


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

    def begin(self, devices: Iterable[str]) -> None:
        """Listen on these devices; enter the mode where that is not possible."""
        others_entered = bool(dispatch_mode_count())  # they would hear other operators than without us
        if not others_entered and not has_unheard_operators() and OVERRIDES.begin(devices):
            self._listens = True
            LISTENING.active = (*LISTENING.active, self)
        else:
            self.enter()

    def enter(self) -> None:
        """Enter the mode: from here on, it sees every operator."""
        self._mode.__enter__()
        self._entered = True

    def end(self, *raised: Any) -> None:
        """End what `begin` began."""
        try:
            if self._entered:
                self._mode.__exit__(*raised)
        finally:
            if self._listens:
                self._listens = False
                LISTENING.active = tuple(one for one in LISTENING.active if one is not self)
                OVERRIDES.end()

    # --- what the overrides report -----------------------------------------------------------------------------

    def output(self, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        return self._mode.replace(func, args, kwargs)

    def attention(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if self._repeated.repeat(func, args, kwargs, result):
            return
        if func in LAYERS:
            on = [device for device in AUTOCASTS if torch.is_autocast_enabled(device)]
            self._mode.observe(self._read_layer, on, func, args, kwargs, result)
        else:
            self._mode.observe_attention(func, args, kwargs, result)
            self._repeated.note(func, args, kwargs)

    def softmax(self, func: Any, args: Any, result: Tensor) -> bool:
        return result.dim() > 1 and bool(result.numel()) and self._is_followed(result)

    def follow(self, func: Any, args: Any, result: Any) -> None:
        self._mode.observe_softmax(args, result)

    def other(self, func: Any, args: Any, result: Any) -> None:
        self._mode.observe_other(func, args, result)

    def unobservable(self, func: Any, args: Any) -> None:
        types = {type(x) for x in args if isinstance(x, Tensor) and type(x).__torch_dispatch__ is not _PLAIN}
        reason = why_unobservable(args, types)
        if reason is not None:
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
