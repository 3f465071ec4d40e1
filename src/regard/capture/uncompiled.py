"""Compiled code run as it was written, for as long as somebody needs it; then its compiled form is used again.

PyTorch's switch is one for all threads, and puts back what it found. So the first who needs it turns it and the last
turns it back, in whatever order they come and go.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

import torch

_COMPILING = {"torch._dynamo", "torch.nn.attention.flex_attention"}
"""Where one of these was imported, something may be compiled; the switch alone would import a second's worth."""

_lock = Lock()
_users = 0
_switch = ExitStack()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Nothing runs compiled inside the block.

    >>> double = torch.compile(lambda x: x + x)
    >>> with uncompiled():
    ...     double(torch.ones(1)).item()
    2.0
    """
    global _users
    if not _COMPILING & sys.modules.keys():
        yield
        return
    with _lock:
        if _users == 0:
            _switch.enter_context(torch.compiler.set_stance("force_eager"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _switch.close()
