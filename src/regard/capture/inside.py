"""Operators that call others: how these would run if nobody stood in between.

Python sees an operator after autocast has had its turn, and autocast is off from there on. An operator that autocast
lets pass, and whose parts it would have changed, needs it on again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import OpOverload

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
