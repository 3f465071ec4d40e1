"""Attention that cannot be observed: tensors without numbers, subclasses of Tensor, and errors of our own.

The model goes on as it does unwatched. What was skipped is kept by module, so that one warning can name it.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from regard.messages import Listed, say


class Unseen:
    """The modules whose attention was skipped, each with the first reason."""

    def __init__(self, whose: Callable[[bool], str | None] | None = None) -> None:
        self._whose = whose or (lambda likely: "")
        self.reasons: dict[str, str] = {}
        self.errors: list[Exception] = []

    def add(self, reason: str, likely: bool = True) -> None:
        """The module that is running computed attention, or a softmax that may be; `likely` as in `Softmaxes`."""
        name = self._whose(likely)
        if name is not None:
            self.reasons.setdefault(name, reason)

    def fail(self, error: Exception) -> None:
        """Observation of the module that is running raised `error`."""
        self.errors.append(error.with_traceback(None))  # a traceback would keep the model's tensors alive
        self.add(f"{type(error).__name__}: {error}".splitlines()[0])


def why_unseen(args: tuple[Any, ...], types: Any) -> str | None:
    """Why the numbers of an operator's arguments cannot be read; None where they can.

    types   the subclasses of Tensor among them that handle operators themselves, as PyTorch passes them to a mode

    >>> import torch
    >>> why_unseen((torch.ones(2),), ()) is None, why_unseen((torch.ones(2, device="meta"),), ()) is None
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
    """Whether the numbers of a tensor on the Python stack can be read: not those that functorch or a mode made."""
    return type(tensor).__torch_dispatch__ is _PLAIN and why_unseen((tensor,), ()) is None


_PLAIN = Tensor.__torch_dispatch__
