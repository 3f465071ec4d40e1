"""Signals during a run: the first requests a stop after the current step, the second raises KeyboardInterrupt."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1") if hasattr(signal, name)]
"""SIGHUP: the terminal was closed. SIGUSR1: clusters send it shortly before the time limit. Windows lacks both."""


class StopRequest:
    """A request to stop, set by a signal and read by the training loop."""

    def __init__(self) -> None:
        self.set_at: float | None = None
        """The time of the request by the monotonic clock."""

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self.set_at is not None

    def set(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Request a stop after the current step. A second request raises KeyboardInterrupt."""
        if self.is_set:
            raise KeyboardInterrupt
        self.set_at = time.monotonic()


@contextmanager
def handle_signals() -> Iterator[StopRequest]:
    """Turn signals into a stop request inside the block; restore the handlers after it. No effect in a thread."""
    request = StopRequest()
    before = {}
    try:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` and background shells ignore some signals
                before[number] = signal.signal(number, request.set)
    except ValueError:  # not the main thread
        pass
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: the handler was not set from Python
