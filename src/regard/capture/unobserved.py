"""Attention that cannot be observed: tensors without data, subclasses of Tensor, and our own errors.

The model runs as without `watch`. What was skipped is stored by module, so that one warning can name it.
"""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

from regard.capture.torch_internals import is_functorch_wrapped_tensor
from regard.messages import Listed, say


class Unobserved:
    """The modules whose attention was skipped, each with the first reason."""

    def __init__(self, running_module: Callable[[bool], str | None] | None = None) -> None:
        self._running_module = running_module or (lambda likely: "")
        self.reasons: dict[str, str] = {}
        self.errors: list[Exception] = []

    def add(self, reason: str, likely: bool = True) -> None:
        """Note that the running module computed attention, or what may be; `likely` as in `SoftmaxTracker`."""
        name = self._running_module(likely)
        if name is not None:
            self.reasons.setdefault(name, reason)

    def add_error(self, error: Exception, names: Iterable[str] = ()) -> None:
        """Note that observing the running module, and the modules of these names, raised `error`."""
        self.errors.append(error.with_traceback(None))  # a traceback would keep the model's tensors alive
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        self.add(reason)
        for name in names:
            self.reasons.setdefault(name, reason)


def why_unobservable(args: tuple[Any, ...], types: Any) -> str | None:
    """Why the data of an operator's arguments cannot be read; None if it can.

    types   the subclasses of Tensor among them that handle operators themselves, as PyTorch passes them to a mode

    >>> import torch
    >>> why_unobservable((torch.ones(2),), ()) is None, why_unobservable((torch.ones(2, device="meta"),), ()) is None
    (True, False)
    """
    if types:
        return say("watch-unseen-type", found=Listed.few(sorted({one.__name__ for one in types}), 3))
    for x in args:
        if isinstance(x, Tensor):
            if x.is_meta:
                return say("watch-unseen-meta")
            if is_functorch_wrapped_tensor(x):
                return say("watch-unseen-type", found="functorch")
    return None


def is_readable(tensor: Tensor) -> bool:
    """Whether the data of a tensor on the Python stack can be read: not if functorch or a mode made it."""
    return type(tensor).__torch_dispatch__ is _PLAIN and why_unobservable((tensor,), ()) is None


_PLAIN = Tensor.__torch_dispatch__
