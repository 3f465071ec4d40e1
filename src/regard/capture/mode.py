"""Catching: a dispatch mode, under which every operator of this thread passes by. It changes nothing that it sees.

Only where it is told to may it have fused attention answered by others.

Not a function mode, and no hooks: both would push PyTorch's modules off their fused paths and make compiled code
compile again. What is caught is handed on; what it means is known elsewhere.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from regard.capture.answering import may_answer, results_of
from regard.capture.aside import Aside
from regard.capture.blocks import Blocks
from regard.capture.caught import Caught, CaughtWeights, Output
from regard.capture.inside import are_plain, autocast_inside, call_again, call_composed, is_composed
from regard.capture.operators import FUSED, READERS, Reader, named
from regard.capture.softmaxes import IN_PLACE, LOGARITHM, SOFTMAXES, Softmaxes
from regard.capture.unseen import Unseen, why_unseen
from regard.errors import RegardError

aten = torch.ops.aten
LAYERS: set[Any] = {aten._native_multi_head_attention.default, aten._transformer_encoder_layer_fwd.default}
"""Operators that call others which autocast would change."""
_LAYER_IDS = {id(func) for func in LAYERS}
OPENED: set[Any] = {
    aten.scaled_dot_product_attention.default,
    aten._scaled_dot_product_attention_math.default,
    aten.softmax.int,
}
"""Operators that come in their parts, except in inference mode: there they are taken apart here, as they would be."""


class Catching(TorchDispatchMode):
    """Hands every attention to `tell`, after it was computed and before the model goes on.

    listeners   are told, by operator, what else some want to know of: its arguments
    answer      hand fused attention to `tell` before it is computed, and take the output that is put into what was
                caught, if one is, instead of the operator's
    whose       names the module that makes a softmax, where that may be attention: `Softmaxes`
    blocks      follows sparse attention, which is told in one piece
    follower    is shown every operator
    refused     whether the module that is running makes softmaxes that are not to be followed
    """

    supports_higher_order_operators = True

    def __init__(
        self,
        tell: Callable[[Caught | CaughtWeights], None],
        listeners: Mapping[Any, Callable[..., None]] | None = None,
        answer: bool = False,
        whose: Callable[[bool], str | None] | None = None,
        blocks: Blocks | None = None,
        refused: Callable[[], bool] | None = None,
        follower: Callable[[Any, tuple[Any, ...], Any], None] | None = None,
    ) -> None:
        super().__init__()
        self._tell, self._listeners, self._answer = tell, listeners or {}, answer
        self._blocks, self._refused, self._follower = blocks, refused, follower
        self._softmaxes = Softmaxes(whose)
        self.unseen = Unseen(whose)
        """What could not be observed."""
        self._quiet: dict[int, Callable[..., Any]] = {}
        """Operators that nobody listens to, as the function that each calls: there are hundreds of them to a token. By
        id, for they hash slowly."""
        self._passing = self._quiet
        """Those that pass unseen: none while a softmax is on its way."""
        self._known: list[Any] = []
        """The quiet operators themselves, so that their ids stay theirs."""

    def lost(self) -> list[str]:
        """The modules that made a softmax which may be attention, and was not caught."""
        return self._softmaxes.lost()

    def across(self) -> list[str]:
        """The modules whose softmax is over another axis than their product with values sums over."""
        return self._softmaxes.across()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Else compiled code would run uncompiled under us."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else every operator goes through a second wrapper, which is dearer than the operators of a decoding step."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        run = self._passing.get(id(func))
        if run is not None:
            try:
                return run(*args, **kwargs) if kwargs else run(*args)
            except RuntimeError:
                return call_again(func, args, kwargs or {})
        kwargs, following = kwargs or {}, bool(self._softmaxes.followed)
        if torch.is_inference_mode_enabled() and is_composed(func) and are_plain(args, types):
            with autocast_inside(func), self if following or func in OPENED else nullcontext():
                return call_composed(func, args, kwargs)
        if following and func is IN_PLACE:
            self._observe(self._softmaxes.save, args)
        reader = READERS[func]
        if self._answer and reader in FUSED and not going_back() and why_unseen(args, types) is None:
            given = named(func, args, kwargs)
            if may_answer(given):
                return self._answered(reader, func, args, kwargs, given)
        if id(func) in _LAYER_IDS:
            with autocast_inside(func):
                result = func(*args, **kwargs)
        else:
            try:
                result = func(*args, **kwargs)
            except RuntimeError:
                result = call_again(func, args, kwargs)
        if self._blocks is not None and func not in SOFTMAXES and not types and not going_back():
            self._observe(self._blocks.follow, func, args, result)
        if self._follower is not None and not types:
            self._observe(self._follower, func, args, result)
        if reader is not None or func in SOFTMAXES or func is LOGARITHM or func in self._listeners:
            if not going_back():
                self._look(reader, func, types, args, kwargs, result)
        elif following:
            self._observe(self._follow, func, args, result)
        elif func not in LAYERS and not is_composed(func):
            self._known.append(func)
            self._quiet[id(func)] = func._op if type(func) is OpOverload else func
        busy = self._softmaxes.followed or self._blocks is not None or self._follower is not None
        self._passing = {} if busy else self._quiet
        return result

    def _answered(self, reader: Any, func: Any, args: Any, kwargs: Any, given: dict[str, Any]) -> Any:
        """Told before it is computed; then it is ours, or still the operator's."""
        output = Output()

        def answer() -> Any:
            self._tell(reader(given, (None, None))._replace(output=output))
            return None if output.out is None else results_of(func, args, kwargs, output)

        found = self._observe(answer)
        return func(*args, **kwargs) if found is None else found

    def _look(self, reader: Reader | None, func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> None:
        reason = why_unseen(args, types)
        if reason is not None:
            if reader is not None or func in SOFTMAXES:
                self.unseen.add(reason, likely=reader is not None or args[0].dim() > 3)
        elif reader is not None:
            self._observe(self._read, reader, func, args, kwargs, result)
        elif func in SOFTMAXES:
            self._observe(self._begin, args, result)
        elif func is LOGARITHM:
            self._observe(self._softmaxes.pass_by, args, result)
        else:
            self._observe(self._listeners[func], *args)

    def _read(self, reader: Reader, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        with autocast_inside(func) if id(func) in _LAYER_IDS else nullcontext():
            caught = reader(named(func, args, kwargs), result)
        self._tell_in_order(caught)

    def _begin(self, args: Any, result: Any) -> None:
        if self._blocks is not None and self._blocks.take(args[0], result):
            return
        if self._refused is None or not self._refused():
            self._softmaxes.begin(args, result)

    def _tell_in_order(self, caught: Caught | CaughtWeights) -> None:
        if self._blocks is not None:
            self._blocks.flush()
        self._tell(caught)

    def finish(self) -> None:
        """The block is over: tell what was still being put together."""
        if self._blocks is not None:
            self._observe(self._blocks.flush)

    def _follow(self, func: Any, args: Any, result: Any) -> None:
        caught = self._softmaxes.follow(func, args, result)
        if caught is not None:
            self._tell_in_order(caught)

    def _observe(self, look: Callable[..., Any], *args: Any) -> Any:
        """What `look` gives. An error of ours in the middle of a forward must not end it: it is kept, to be warned of.

        Errors that speak to the user, as of a budget that is too small, are meant to end it.
        """
        try:
            with Aside():
                return look(*args)
        except RegardError:
            raise
        except Exception as error:
            self.unseen.fail(error)
            return None


def going_back() -> bool:
    """Whether a backward pass is running: activation checkpointing computes layers again there, which is no news."""
    return torch._C._current_graph_task_id() != -1
