"""Signals that end a command: it leaves in order, so that its folders are removed and its programs ended."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = ("SIGTERM", "SIGHUP")
"""Besides Ctrl-C, which Python makes an exception by itself. Windows has no SIGHUP."""


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Inside, such a signal raises SystemExit with the exit code that a shell gives it, 128 and its number. A signal
    that was ignored before, as under nohup, stays ignored."""
    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    kept = {number: signal.getsignal(number) for number in numbers}

    def leave(number: int, _: FrameType | None) -> None:
        for other in kept:  # a second one must not end what the first one began
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    try:
        for number, handler in kept.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, leave)
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
