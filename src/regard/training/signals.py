"""Signals while a run goes on: the first asks it to save and leave, the second ends it at once."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1") if hasattr(signal, name)]
"""SIGHUP: a terminal was closed. SIGUSR1: how clusters announce that time is nearly up. Windows lacks them."""


class StopRequest:
    """Whether someone asked us to stop. A value that a signal sets and a loop reads."""

    def __init__(self) -> None:
        self.asked_at: float | None = None
        """When, by the monotonic clock."""

    @property
    def asked(self) -> bool:
        """Whether someone did."""
        return self.asked_at is not None

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Stop after this step; asked again, at once."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked_at = time.monotonic()


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Signals are requests inside the block, and what they were before after it. In a thread nothing can be caught."""
    request = StopRequest()
    before = {}
    try:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` and shells in the background ask for
                before[number] = signal.signal(number, request.ask)
    except ValueError:  # not the main thread
        pass
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: it was not set from Python
