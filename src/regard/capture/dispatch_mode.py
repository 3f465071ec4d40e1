"""`CaptureMode`: the TorchDispatchMode that finds every attention call of the thread and reports it.

With `See(fused=True)` our kernel may compute the output instead of a fused operator. Hooks and function modes are not
used, because both disable PyTorch's fused paths and make compiled code recompile. Composite operators run under the
same autocast and inference mode as without the mode.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import local
from typing import Any

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.capture.operators import (
    FUSED,
    READERS,
    CapturedCall,
    CapturedOutput,
    CapturedWeights,
    Reader,
    Unobserved,
    named,
    why_unobservable,
)
from regard.capture.softmax_tracking import IN_PLACE, SoftmaxTracker
from regard.capture.sparse_attention import SparseTracker
from regard.capture.torch_internals import (
    ATTENTION_MATH,
    FUSED_LAYERS,
    LOG_SOFTMAX,
    SOFTMAXES,
    DispatchKey,
    Isolated,
    OpOverload,
    TorchDispatchMode,
    current_backward_task,
    dispatch_mode_count,
    has_kernel_for,
    is_key_excluded,
    outer_dispatch_state,
    set_key_excluded,
    tree_map_only,
)
from regard.dispatch.observation import is_small
from regard.dispatch.torch_backends import wants_gradient
from regard.errors import RegardError
from regard.kernels.triton.support import refusal

AUTOCASTS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA", "mps": "AutocastMPS", "xpu": "AutocastXPU"}


@cache
def is_composite(func: Any) -> bool:
    """Whether an operator only calls other operators. A mode sees its parts instead, except in inference mode."""
    try:
        return isinstance(func, OpOverload) and func._can_decompose() and not _has_kernel(func, "CPU")
    except RuntimeError:  # TorchScript's own operators, such as `prim::device`, are not registered
        return False


def are_plain(args: tuple[Any, ...], types: Any) -> bool:
    """Whether all arguments are plain tensors: nested tensors and subclasses handle operators themselves."""
    return not types and not any(isinstance(x, Tensor) and x.is_nested for x in args)


def call_composite(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the composite kernel, so that the mode sees its parts; `decompose` may choose another kernel.

    Below a mode, views of weights do not require gradients, and `matmul` then folds its batch by another rule, which
    changes bits. With this key included again, views are made as they are without the mode.
    """
    was_excluded = is_key_excluded(DispatchKey.ADInplaceOrView)
    set_key_excluded(DispatchKey.ADInplaceOrView, False)
    try:
        return func._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
    finally:
        set_key_excluded(DispatchKey.ADInplaceOrView, was_excluded)


def retry_with_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Repeat an operator that raised because a mode receives its tensor constants as numbers; otherwise raise again.

    PyTorch passes the constants of a graph made by torch.jit.trace to a mode as numbers, and converts them back only
    for arithmetic.
    """
    arguments = func._schema.arguments if isinstance(func, OpOverload) else []
    pairs = zip(arguments, args, strict=False)
    is_wrong = [isinstance(x, int | float) and str(one.type) == "Tensor" for one, x in pairs]
    if not any(is_wrong):
        raise
    fixed = (torch.tensor(x, device="cpu") if wrong else x for wrong, x in zip(is_wrong, args, strict=True))
    return func(*fixed, **kwargs)


class _Applied(local):
    """Devices whose autocast was already applied to an enclosing operator: it stays off for the operators inside."""

    devices: frozenset[str] = frozenset()


_APPLIED = _Applied()


@contextmanager
def autocast_inside(func: Any) -> Iterator[None]:
    """Set autocast as it is for the operators that `func` calls."""
    applied = _APPLIED.devices
    with outer_dispatch_state():  # as it is around the outermost operator
        on = [device for device in AUTOCASTS if device not in applied and torch.is_autocast_enabled(device)]
    changed = [device for device in on if _has_kernel(func, AUTOCASTS[device])]
    on = [device for device in on if device not in changed]
    for device in on:
        torch.set_autocast_enabled(device, True)
    _APPLIED.devices = applied.union(changed)
    try:
        yield
    finally:
        _APPLIED.devices = applied
        for device in on:
            torch.set_autocast_enabled(device, False)


@cache
def _has_kernel(func: Any, key: str) -> bool:
    return has_kernel_for(func.name(), key)


_APPLY = torch.autograd.Function.apply.__func__.__code__  # type: ignore[attr-defined]


def can_replace(given: dict[str, Any]) -> bool:
    """Whether our kernels can compute this call of `scaled_dot_product_attention`; its mask is checked later."""
    q, k, v = given["query"], given["key"], given["value"]
    added = given.get("attn_mask", given.get("attn_bias"))
    if given["dropout_p"] or wants_gradient(*(x for x in (q, k, v, added) if x is not None)):
        return False
    if q.dim() != 4 or q.shape[2] == 1 or is_small(q, k) or _has_outer_mode() or _is_in_autograd_function():
        return False
    return refusal(AttentionCall(q, k, v, scale=1.0)) is None


def _has_outer_mode() -> bool:
    """Whether another mode expects to see the operator, which it would not if we replaced it."""
    return bool(dispatch_mode_count())


def _is_in_autograd_function() -> bool:
    """Whether an autograd Function is running: gradients are off there but will be needed.

    This is so in code compiled for training and in activation checkpointing.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _APPLY:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def operator_results(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: CapturedOutput
) -> tuple[Any, ...]:
    """All results of the operator: our output and LSE, and random states, which are not read."""
    assert output.out is not None
    shapes = func(*_on_meta(args), **_on_meta(kwargs))
    device = output.out.device
    rest = [torch.empty_like(x, device=device) if isinstance(x, Tensor) else x for x in shapes[2:]]
    return (_with_strides(output.out, shapes[0]), _fitted(output.lse, shapes[1], device), *rest)


def _on_meta(x: Any) -> Any:
    """The same tensors on the meta device, which computes only shapes and strides."""
    return tree_map_only(Tensor, lambda one: one.to("meta"), x)


def _with_strides(out: Tensor, like: Tensor) -> Tensor:
    if out.stride() == like.stride():
        return out
    return torch.empty_strided(like.shape, like.stride(), dtype=out.dtype, device=out.device).copy_(out)


def _fitted(lse: Tensor | None, like: Tensor | None, device: torch.device) -> Tensor | None:
    """The LSE in the operator's shape, which may have one more axis, or padded rows."""
    if lse is None or like is None:
        return None
    fitted = torch.full_like(like, torch.inf, device=device)
    if like.numel():
        fitted.view(*like.shape[:2], -1)[..., : lse.shape[-1]] = lse
    return fitted


aten = torch.ops.aten
_LAYER_IDS = {id(func) for func in FUSED_LAYERS}
"""Operators that call other operators which autocast would change."""
DECOMPOSED: set[Any] = {
    aten.scaled_dot_product_attention.default,
    ATTENTION_MATH,
    aten.softmax.int,
}
"""Operators that a mode sees as their parts, except in inference mode: there they are decomposed here."""


class CaptureMode(TorchDispatchMode):
    """Calls `report` with every attention, after it is computed and before the model continues.

    listeners       functions to call with the arguments of an operator, by operator
    replaces        report a fused attention before it is computed; if an output is then set, return it and do not
                    call the operator
    running_module  names the module that computes a softmax, if that may be attention; see `SoftmaxTracker`
    sparse          assembles sparse attention, which is reported as one matrix
    follower        is called after every operator
    refused         whether the softmaxes of the running module are not tracked
    """

    supports_higher_order_operators = True

    def __init__(
        self,
        report: Callable[[CapturedCall | CapturedWeights], None],
        listeners: Mapping[Any, Callable[..., None]] | None = None,
        replaces: bool = False,
        running_module: Callable[[bool], str | None] | None = None,
        sparse: SparseTracker | None = None,
        refused: Callable[[], bool] | None = None,
        follower: Callable[[Any, tuple[Any, ...], Any], None] | None = None,
    ) -> None:
        super().__init__()
        self._report, self._listeners, self.replaces = report, listeners or {}, replaces
        self._sparse, self._refused, self._follower = sparse, refused, follower
        self._softmaxes = SoftmaxTracker(running_module)
        self.unobserved = Unobserved(running_module)
        """What could not be observed."""
        self.is_over = False
        """Whether the block ended. Another thread may have ended it, and this one still has the mode."""
        self._ignored: dict[int, Callable[..., Any]] = {}
        """Operators that need no observation, as the function that each calls; a token runs hundreds of them. By id,
        because operators hash slowly.
        """
        self._pass_through = self._ignored
        """The operators that are called directly: none while a softmax is tracked."""
        self._kept_alive: list[Any] = []
        """The ignored operators themselves, so that their ids are not reused."""

    def lost(self) -> list[str]:
        """Modules with a softmax that may be attention and was not captured."""
        return self._softmaxes.lost()

    def wrong_axis(self) -> list[str]:
        """Modules whose softmax is over another axis than the one that their product with the values sums over."""
        return self._softmaxes.wrong_axis()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """If False, compiled code runs uncompiled under the mode."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """If True, every operator goes through a second wrapper, which costs more than those of a decoding step."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        run = self._pass_through.get(id(func))
        if run is not None:
            try:
                return run(*args, **kwargs) if kwargs else run(*args)
            except RuntimeError:
                return retry_with_tensors(func, args, kwargs or {})
        kwargs, following = kwargs or {}, bool(self._softmaxes.followed)
        if torch.is_inference_mode_enabled() and is_composite(func) and are_plain(args, types):
            with autocast_inside(func), self if following or func in DECOMPOSED else nullcontext():
                return call_composite(func, args, kwargs)
        if following and func is IN_PLACE:
            self.observe(self._softmaxes.save_before_dropout, args)
        reader = READERS[func]
        if self.replaces and reader in FUSED and not in_backward() and why_unobservable(args, types) is None:
            reported, result = self.replace(func, args, kwargs)
            if reported:
                return func(*args, **kwargs) if result is None else result
        if id(func) in _LAYER_IDS:
            with autocast_inside(func):
                result = func(*args, **kwargs)
        else:
            try:
                result = func(*args, **kwargs)
            except RuntimeError:
                result = retry_with_tensors(func, args, kwargs)
        if self._sparse is not None and func not in SOFTMAXES and not types and not in_backward():
            self.observe(self._sparse.follow, func, args, result)
        if self._follower is not None and not types:
            self.observe(self._follower, func, args, result)
        if reader is not None or func in SOFTMAXES or func is LOG_SOFTMAX or func in self._listeners:
            if not in_backward():
                self._observe_result(reader, func, types, args, kwargs, result)
        elif following:
            self.observe(self._follow, func, args, result)
        elif func not in FUSED_LAYERS and not is_composite(func):
            self._kept_alive.append(func)
            self._ignored[id(func)] = func._op if type(func) is OpOverload else func
        busy = self._softmaxes.followed or self._sparse is not None or self._follower is not None
        self._pass_through = {} if busy else self._ignored
        return result

    def replace(self, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """Report a fused attention before it is computed, if our kernels can compute it.

        Returns whether it was reported, and its results if they were computed.
        """
        reader, given = READERS[func], named(func, args, kwargs)
        if reader not in FUSED or not can_replace(given):
            return False, None
        output = CapturedOutput()

        def report() -> Any:
            self.report(FUSED[FUSED.index(reader)](given, (None, None))._replace(output=output))
            return None if output.out is None else operator_results(func, args, kwargs, output)

        return True, self.observe(report)

    # --- what `KernelCapture` reports without entering the mode ----------------------------------------------------

    def observe_attention(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Report an attention operator that was computed."""
        self.observe(self._read, READERS[func], func, args, kwargs, result)

    def observe_softmax(self, args: Any, result: Any) -> None:
        """Begin to follow a softmax; the mode must have been entered."""
        self.observe(self._softmaxes.add, args, result)
        self._pass_through = {} if self._softmaxes.followed else self._ignored

    def observe_other(self, func: Any, args: Any, result: Any) -> None:
        """Notify the listener of an operator."""
        if func is LOG_SOFTMAX:
            self.observe(self._softmaxes.note_log_softmax, args, result)
        elif func in self._listeners:
            self.observe(self._listeners[func], *args)

    def _observe_result(
        self, reader: Reader | None, func: Any, types: Any, args: Any, kwargs: Any, result: Any
    ) -> None:
        reason = why_unobservable(args, types)
        if reason is not None:
            if reader is not None or func in SOFTMAXES:
                self.unobserved.add(reason, likely=reader is not None or args[0].dim() > 3)
        elif reader is not None:
            self.observe(self._read, reader, func, args, kwargs, result)
        elif func in SOFTMAXES:
            self.observe(self._add_softmax, args, result)
        elif func is LOG_SOFTMAX:
            self.observe(self._softmaxes.note_log_softmax, args, result)
        else:
            self.observe(self._listeners[func], *args)

    def _read(self, reader: Reader, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        with autocast_inside(func) if id(func) in _LAYER_IDS else nullcontext():
            captured = reader(named(func, args, kwargs), result)
        self.report(captured)

    def _add_softmax(self, args: Any, result: Any) -> None:
        if self._sparse is not None and self._sparse.add_softmax(args[0], result):
            return
        if self._refused is None or not self._refused():
            self._softmaxes.add(args, result)

    def report(self, captured: CapturedCall | CapturedWeights) -> None:
        """Report a captured attention, after those that are being assembled."""
        if self._sparse is not None:
            self._sparse.flush()
        self._report(captured)

    def finish(self) -> None:
        """End the block: report the attention that is still being assembled."""
        if self._sparse is not None:
            self.observe(self._sparse.flush)

    def _follow(self, func: Any, args: Any, result: Any) -> None:
        captured = self._softmaxes.follow(func, args, result)
        if captured is not None:
            self.report(captured)

    def observe(self, observe: Callable[..., Any], *args: Any) -> Any:
        """Call `observe`. Our own error must not end the model's forward: it is stored and warned of later.

        Errors for the user, such as a budget that is too small, are raised.
        """
        if self.is_over:
            return None
        try:
            with Isolated():
                return observe(*args)
        except RegardError:
            raise
        except Exception as error:
            if not self.is_over:
                self.unobserved.add_error(error)
            return None


def in_backward() -> bool:
    """Whether a backward pass is running: there, activation checkpointing repeats layers that were seen already."""
    return current_backward_task() != -1
