"""Overrides of PyTorch's attention operators: a thread listens to them, and all other operators cost nothing.

Each override calls the original kernel, then notifies the listeners of its thread. Other threads call only it.
The overrides serve the whole process. They are registered when the first listener begins and stay: to register and
remove them takes a millisecond for each watch, an override without listeners 4 µs for each attention. Where another
library overrides the same operators, two libraries could call kernels that the other removes: where it came first, our
overrides are removed after the last listener; where it came later, the caller uses a dispatch mode.
PyTorch's table of kernels is not protected against threads that use it meanwhile: while another thread runs PyTorch,
nothing is registered (the caller then uses a dispatch mode) and nothing is removed (the next listener does it).
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.capture.operators import BY_NAME
from regard.capture.torch_internals import (
    FUSED_ATTENTION,
    FUSED_LAYERS,
    LISTENING,
    LOG_SOFTMAX,
    SOFTMAXES,
    ListenersPaused,
    current_backward_task,
    flex_attention_kernel,
    has_kernel_for,
    is_being_compiled,
    is_operator,
    python_kernels,
    set_flex_attention_kernel,
)

aten = torch.ops.aten
flex_attention = torch.ops.higher_order.flex_attention

DEVICES = {"cpu": "CPU", "cuda": "CUDA"}
"""The devices with overrides, and their dispatch keys. Nested tensors have keys of their own."""
TRANSFORM = "FuncTorchDynamicLayerFrontMode"
"""The dispatch key of operators inside a transform of `torch.func`."""


class Listener(Protocol):
    """An object that receives the attention operators of a thread."""

    replaces: bool
    """Whether it may compute the output of a fused attention instead of the model."""

    def output(self, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """Whether the call was reported before it was computed, and its results if they were computed too."""

    def attention(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """A fused attention was computed."""

    def softmax(self, func: Any, args: Any, result: Any) -> bool:
        """A softmax was computed. Returns whether its use must be followed, which needs a dispatch mode."""

    def enter(self) -> None:
        """Enter the dispatch mode: from here on, the listener receives every operator through it."""

    def follow(self, func: Any, args: Any, result: Any) -> None:
        """Begin to follow this softmax through the mode."""

    def other(self, func: Any, args: Any, result: Any) -> None:
        """An operator was computed that shows token ids, or the order of a cache."""

    def unobservable(self, func: Any, args: Any) -> None:
        """An attention or a softmax was called with tensors whose data cannot be read."""


Override = Callable[..., Any]
Factory = Callable[[Any, Any], Override]
"""Makes the override of an operator from the operator and its original kernel."""


def _attention(func: Any, kernel: Any) -> Override:
    call = kernel.call_boxed

    def attention(keys: Any, *args: Any, **kwargs: Any) -> Any:
        active = LISTENING.active
        if not active or current_backward_task() != -1:
            return call(keys, *args, **kwargs)
        is_reported = False
        if len(active) == 1 and active[0].replaces:
            is_reported, result = active[0].output(func, args, kwargs)
            if result is not None:
                return result
        result = call(keys, *args, **kwargs)
        if not is_reported:
            for one in active:
                one.attention(func, args, kwargs, result)
        return result

    return attention


def _layer(func: Any, kernel: Any) -> Override:
    """An operator that calls other attention operators, which must not be reported."""
    call = kernel.call_boxed

    def layer(keys: Any, *args: Any, **kwargs: Any) -> Any:
        active = LISTENING.active
        with ListenersPaused():
            result = call(keys, *args, **kwargs)
        if active and current_backward_task() == -1:
            for one in active:
                one.attention(func, args, kwargs, result)
        return result

    return layer


def _softmax(func: Any, kernel: Any) -> Override:
    call = kernel.call_boxed

    def softmax(keys: Any, *args: Any, **kwargs: Any) -> Any:
        active = LISTENING.active
        if not active:
            return call(keys, *args, **kwargs)
        with ListenersPaused():
            result = call(keys, *args, **kwargs)
        if current_backward_task() == -1 and any(one.softmax(func, args, result) for one in active):
            LISTENING.active = ()  # from here on they receive every operator through their modes, outermost first
            for one in active:
                one.enter()
            for one in active:
                one.follow(func, args, result)
        return result

    return softmax


def _other(func: Any, kernel: Any) -> Override:
    call = kernel.call_boxed

    def other(keys: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(keys, *args, **kwargs)
        active = LISTENING.active
        if active and current_backward_task() == -1:
            for one in active:
                one.other(func, args, result)
        return result

    return other


def _without_data(func: Any, kernel: Any) -> Override:
    """An attention or a softmax of subclasses of Tensor that handle operators themselves, or below another mode."""
    call = kernel.call_boxed

    def without_data(keys: Any, *args: Any, **kwargs: Any) -> Any:
        active = LISTENING.active
        if not active or all(type(x).__torch_dispatch__ is _PLAIN and not x.is_meta for x in _tensors(args)):
            return call(keys, *args, **kwargs)
        if current_backward_task() == -1 and not is_being_compiled():
            for one in active:
                one.unobservable(func, args)
        with ListenersPaused():  # the tensors inside are parts of those of the model
            return call(keys, *args, **kwargs)

    return without_data


def _transformed(func: Any, kernel: Any) -> Override:
    """Attention or a softmax inside a transform of `torch.func`.

    The mode is entered here: a transform restores the state of dispatch when it ends, and would leave a mode that was
    entered inside.
    """
    call = kernel.call_boxed

    def transformed(keys: Any, *args: Any, **kwargs: Any) -> Any:
        active, LISTENING.active = LISTENING.active, ()
        for one in active:
            one.enter()
        return call(keys, *args, **kwargs)

    return transformed


def _for_parts(func: Any, kernel: Any) -> Override:
    """An operator of nested tensors, which calls itself for each part."""
    call = kernel.call_boxed

    def for_parts(keys: Any, *args: Any, **kwargs: Any) -> Any:
        with ListenersPaused():
            return call(keys, *args, **kwargs)

    return for_parts


_PLAIN = Tensor.__torch_dispatch__


def _tensors(args: Iterable[Any]) -> Iterator[Tensor]:
    return (x for x in args if isinstance(x, Tensor))


OTHERS = (LOG_SOFTMAX, aten.embedding.default, aten.index_select.default)


def _factories(device: str) -> Iterator[tuple[Any, str, Factory]]:
    """Every override for tensors of one device: the operator, its dispatch key, and what makes the override."""
    key, nested = DEVICES[device], f"NestedTensor{DEVICES[device]}"
    for func in FUSED_ATTENTION:
        yield from ((func, key, _attention), (func, nested, _attention))
    for func in FUSED_LAYERS:
        yield from ((func, key, _layer), (func, nested, _layer))
    for func in SOFTMAXES:
        yield from ((func, key, _softmax), (func, nested, _for_parts))
    for func in OTHERS:
        yield func, key, _other


def _factories_without_data() -> Iterator[tuple[Any, str, Factory]]:
    for func in (*FUSED_ATTENTION, *SOFTMAXES):
        if any(_has_kernel(func, key) for key in DEVICES.values()):
            yield func, "Python", _without_data
    for func in SOFTMAXES:
        yield func, "AutogradMeta", _without_data
    for func in (*SOFTMAXES, aten.softmax.int, aten.scaled_dot_product_attention.default):
        yield func, TRANSFORM, _transformed


def _has_kernel(func: Any, key: str) -> bool:
    name = func.name()
    return has_kernel_for(name, key) or (key in DEVICES.values() and has_kernel_for(name, "CompositeExplicitAutograd"))


@cache
def _needed(key: str) -> tuple[tuple[Any, str, Factory], ...]:
    """The overrides for one device, or for tensors without data, that this PyTorch has kernels for."""
    if key == "none":
        return tuple(_factories_without_data())
    return tuple(one for one in _factories(key) if _has_kernel(*one[:2]))


class Overrides:
    """The overrides of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._libraries: dict[str, torch.library.Library] = {}
        """By device; those for tensors without data under "none"."""
        self._flex: Any = None
        self._names: set[str] = set()
        """The operators and keys that are overridden, as PyTorch lists them."""
        self._may_stay = True
        self.are_supported = hasattr(torch.library, "get_kernel")
        """Whether this PyTorch can call the kernel that was overridden."""
        self._has_warned = False

    def begin(self, devices: Iterable[str]) -> bool:
        """Register what is needed for tensors on these devices. Returns False if that is not possible now."""
        with self._lock:
            if self._names and not self._names.isdisjoint(python_kernels()):  # another library is called before us
                return False
            missing = [key for key in (*devices, "none") if key not in self._libraries]
            if missing and not (self.are_supported and DEVICES.keys() >= {*missing} - {"none"} and not _others_run()):
                return False
            try:
                for key in missing:
                    self._register(key)
            except RuntimeError:  # another library has overridden one of these operators
                self.are_supported = False
                self._remove()
                return False
            self._users += 1
            return True

    def end(self) -> None:
        """End what `begin` began."""
        with self._lock:
            self._users -= 1
            if not self._users and not self._may_stay:
                self.remove()

    def remove(self) -> None:
        """Remove the overrides if there are no listeners, and no other thread runs a model."""
        with self._lock:
            if not self._users and not _others_run():
                self._remove()

    @property
    def are_registered(self) -> bool:
        return bool(self._libraries)

    def _register(self, key: str) -> None:
        library = self._libraries[key] = torch.library.Library("aten", "IMPL")
        listed = len(python_kernels())
        with warnings.catch_warnings():  # PyTorch warns of overrides
            warnings.simplefilter("ignore")
            for func, dispatch_key, factory in _needed(key):
                kernel = torch.library.get_kernel(func, dispatch_key)
                library.impl(func, factory(func, kernel), dispatch_key, with_keyset=True)
        # Without our names, PyTorch lists those of libraries that come later.
        kernels, own = python_kernels(), library._op_impls
        self._may_stay = self._may_stay and len(kernels) == listed + len(own)
        kernels -= own
        self._names |= own
        if key == "none":
            self._flex = flex_attention_kernel()
            set_flex_attention_kernel(_flex(self._flex))

    def _remove(self) -> None:
        for library in self._libraries.values():
            library._destroy()
        self._libraries.clear()
        self._names.clear()
        self._may_stay = True
        if self._flex is not None:
            set_flex_attention_kernel(self._flex)
            self._flex = None


def _flex(original: Callable[..., Any]) -> Callable[..., Any]:
    """The override of flex_attention, whose kernels are Python functions."""

    def flex(*args: Any, **kwargs: Any) -> Any:
        active = LISTENING.active
        if not active:
            return original(*args, **kwargs)
        with ListenersPaused():
            result = original(*args, **kwargs)
        if current_backward_task() == -1:
            for one in active:
                one.attention(flex_attention, args, kwargs, result)
        return result

    return flex


RUNNING = tuple(f"torch.{name}." for name in ("nn", "_dynamo", "_functorch", "_ops", "autograd", "fx", "jit"))
"""The modules of PyTorch that are on the stack of a thread that may call attention; others load data or compile."""


def _others_run() -> bool:
    """Whether another thread runs a model of PyTorch."""
    frames = sys._current_frames()
    del frames[threading.get_ident()]  # a function that refers to its own frame keeps all its callers' locals alive
    for frame in frames.values():
        at: FrameType | None = frame
        while at is not None:
            if f"{at.f_globals.get('__name__', '')}.".startswith(RUNNING):
                return True
            at = at.f_back
    return False


OVERRIDES = Overrides()

OVERRIDDEN = frozenset(str(func) for func in (*FUSED_ATTENTION, *FUSED_LAYERS)) | {"flex_attention"}
OTHER_OPERATORS = tuple(name for name in BY_NAME if name not in OVERRIDDEN)
"""Attention operators that cannot be overridden: those of other packages and of other devices."""


def has_other_operators() -> bool:
    """Whether an operator of another package, such as flash_attn, is loaded that cannot be overridden."""
    names = (name.removesuffix(".default").replace(".", "::", 1) for name in OTHER_OPERATORS)
    return any(not name.startswith("aten::") and is_operator(name) for name in names)
