"""The dispatch mode of `watch`: every operator of the thread passes through it. It changes no result.

Only with `See(fused=True)` may our kernel compute the output in place of a fused operator. Hooks and function modes
are not used: both disable PyTorch's fused paths and make compiled code recompile. Composite operators are run as they
would run without the mode: under the same autocast and inference mode.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import local
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from regard.capture.captured import Caught, CaughtWeights, Output
from regard.capture.isolated import Aside
from regard.capture.operators import FUSED, READERS, Reader, named
from regard.capture.softmax_tracking import IN_PLACE, LOGARITHM, SOFTMAXES, Softmaxes
from regard.capture.sparse_attention import Blocks
from regard.capture.unobserved import Unseen, why_unseen
from regard.dispatch.observation import is_little
from regard.dispatch.torch_backends import wants_gradient
from regard.errors import RegardError
from regard.kernels.triton.support import refusal

AUTOCASTS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA", "mps": "AutocastMPS", "xpu": "AutocastXPU"}


@cache
def is_composed(func: Any) -> bool:
    """Whether an operator is nothing but others in turn. Such come in their parts, except in inference mode."""
    try:
        return isinstance(func, OpOverload) and func._can_decompose() and not _has_kernel(func, "CPU")
    except RuntimeError:  # operators of TorchScript's own, as `prim::device`, are registered nowhere
        return False


def are_plain(args: tuple[Any, ...], types: Any) -> bool:
    """Whether these are tensors as usual; nested ones and other types have their own ways with an operator."""
    return not types and not any(isinstance(x, Tensor) and x.is_nested for x in args)


def call_composed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call its own kernel, so that the mode sees the parts; not `decompose`, which may take another one.

    Below a mode, views of weights do not require gradients, and `matmul` then folds its batch by another rule, which
    changes bits. With this key back, views are made as they are without the mode.
    """
    was_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(DispatchKey.ADInplaceOrView)
    torch._C._dispatch_tls_set_dispatch_key_excluded(DispatchKey.ADInplaceOrView, False)
    try:
        return func._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
    finally:
        torch._C._dispatch_tls_set_dispatch_key_excluded(DispatchKey.ADInplaceOrView, was_excluded)


def call_again(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operator that has just raised, where the cause is how a mode gets its arguments; else raise again.

    PyTorch hands a mode the constants of a graph that torch.jit.trace made as numbers, and takes them back only where
    arithmetic does.
    """
    arguments = func._schema.arguments if isinstance(func, OpOverload) else []
    pairs = zip(arguments, args, strict=False)
    is_wrong = [isinstance(x, int | float) and str(one.type) == "Tensor" for one, x in pairs]
    if not any(is_wrong):
        raise
    fixed = (torch.tensor(x) if wrong else x for wrong, x in zip(is_wrong, args, strict=True))
    return func(*fixed, **kwargs)


class _Had(local):
    """Devices whose autocast has had its turn with an operator around those that run now: it stays off for them."""

    devices: frozenset[str] = frozenset()


_HAD = _Had()


@contextmanager
def autocast_inside(func: Any) -> Iterator[None]:
    """Autocast as it is for the operators that `func` calls."""
    had = _HAD.devices
    with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]  # as it is around the outermost operator
        on = [device for device in AUTOCASTS if device not in had and torch.is_autocast_enabled(device)]
    changed = [device for device in on if _has_kernel(func, AUTOCASTS[device])]
    on = [device for device in on if device not in changed]
    for device in on:
        torch.set_autocast_enabled(device, True)
    _HAD.devices = had.union(changed)
    try:
        yield
    finally:
        _HAD.devices = had
        for device in on:
            torch.set_autocast_enabled(device, False)


@cache
def _has_kernel(func: Any, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)


_APPLY = torch.autograd.Function.apply.__func__.__code__  # type: ignore[attr-defined]


def may_answer(given: dict[str, Any]) -> bool:
    """Whether this call of `scaled_dot_product_attention` is one for our kernels, as far as its mask lets it."""
    q, k, v = given["query"], given["key"], given["value"]
    added = given.get("attn_mask", given.get("attn_bias"))
    if given["dropout_p"] or wants_gradient(*(x for x in (q, k, v, added) if x is not None)):
        return False
    if q.dim() != 4 or q.shape[2] == 1 or is_little(q, k) or _is_watched_by_others() or _is_inside_a_function():
        return False
    return refusal(q, k, v) is None


def _is_watched_by_others() -> bool:
    """Whether another mode is to see the operator: it would not, if we answered."""
    return bool(torch._C._len_torch_dispatch_stack())


def _is_inside_a_function() -> bool:
    """Whether an autograd Function is running, which has gradients off and will ask for them all the same.

    Code that was compiled for training does, and what is to be computed again when the gradients are.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _APPLY:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def results_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Output) -> tuple[Any, ...]:
    """Everything that the operator would have given: our output and LSE, and random states that nobody reads."""
    assert output.out is not None
    shapes = func(*_without_memory(args), **_without_memory(kwargs))
    device = output.out.device
    rest = [torch.empty_like(x, device=device) if isinstance(x, Tensor) else x for x in shapes[2:]]
    return (_laid_out(output.out, shapes[0]), _fitted(output.lse, shapes[1], device), *rest)


def _without_memory(x: Any) -> Any:
    """The same tensors on the device that computes nothing but shapes and strides."""
    return tree_map_only(Tensor, lambda one: one.to("meta"), x)


def _laid_out(out: Tensor, like: Tensor) -> Tensor:
    if out.stride() == like.stride():
        return out
    return torch.empty_strided(like.shape, like.stride(), dtype=out.dtype, device=out.device).copy_(out)


def _fitted(lse: Tensor | None, like: Tensor | None, device: torch.device) -> Tensor | None:
    """The LSE in a shape that may have one more axis, or more rows than there are."""
    if lse is None or like is None:
        return None
    fitted = torch.full_like(like, torch.inf, device=device)
    if like.numel():
        fitted.view(*like.shape[:2], -1)[..., : lse.shape[-1]] = lse
    return fitted


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
