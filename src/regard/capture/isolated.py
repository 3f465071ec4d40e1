"""`Isolated`: a context manager that turns off other dispatch modes, autograd and autocast."""

from typing import Any

import torch
from torch._C import _len_torch_dispatch_stack
from torch.utils._python_dispatch import _disable_current_modes


class Isolated:
    """Context in which other dispatch modes, autograd and autocast are off.

    A class, not a generator, because it is entered for every attention of every step.
    """

    __slots__ = ("_autocast", "_grad", "_modes")

    def __enter__(self) -> None:
        self._modes = _disable_current_modes() if _len_torch_dispatch_stack() else None
        if self._modes is not None:
            self._modes.__enter__()
        self._grad = torch.is_grad_enabled()
        if self._grad:
            torch._C._set_grad_enabled(False)
        self._autocast = torch._C._DisableAutocast() if torch._C._is_any_autocast_enabled() else None
        if self._autocast is not None:
            self._autocast.__enter__()

    def __exit__(self, *raised: Any) -> None:
        if self._autocast is not None:
            self._autocast.__exit__(*raised)
        if self._grad:
            torch._C._set_grad_enabled(True)
        if self._modes is not None:
            self._modes.__exit__(*raised)
