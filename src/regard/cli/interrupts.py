"""Ctrl-C from the first moment of the program to its last: exit 130, and no traceback.

While modules are being imported, and once the work is done, the process ends at once. In between, KeyboardInterrupt is
raised so that a command can clean up. This file imports only what Python has loaded already: `signal` would import
`enum`, and a Ctrl-C during these milliseconds would be a traceback.
"""

import _signal  # type: ignore[import-not-found]
import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERRUPTED = 130
AGAIN_AFTER = 0.02
"""Seconds until an interrupt that Python could not raise is raised again."""

_came = False
_main = 0
"""The thread in which the command runs."""


def came() -> bool:
    """Whether Ctrl-C was pressed while the command ran: an error after it may be a consequence of it.

    A package whose import is interrupted may raise an ImportError of its own.
    """
    return _came


def end_at_once() -> bool:
    """From now on, Ctrl-C ends the process. False where it is not ours to decide: ignored, or not the main thread."""
    if _signal.getsignal(_signal.SIGINT) not in (_signal.default_int_handler, _leave, _raise):
        return False
    try:
        _signal.signal(_signal.SIGINT, _leave)
    except ValueError:  # not the main thread
        return False
    return True


def ignore() -> None:
    """From now on, Ctrl-C does nothing: the command is interrupted already, and is leaving.

    While Python shuts down, a handler of ours would be replaced by the system's, which ends the process with no code.
    """
    if _signal.getsignal(_signal.SIGINT) in (_leave, _raise):
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


def raise_interrupts() -> None:
    """From now on, Ctrl-C raises KeyboardInterrupt, also where Python could only have printed it."""
    global _main
    _main = _thread.get_ident()
    sys.unraisablehook = _unraisable
    _signal.signal(_signal.SIGINT, _raise)


def _leave(number: int, frame: "Any") -> None:
    os._exit(INTERRUPTED)


def _raise(number: int, frame: "Any") -> None:
    global _came
    _came = True
    raise KeyboardInterrupt


def _unraisable(told: "Any") -> None:
    """An exception in a callback, such as the one with which an import lets go of its lock, is printed and lost.

    A KeyboardInterrupt comes again a moment later instead; a thread raises it, because here it would be lost as well.
    """
    if not issubclass(told.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(told)
        return
    import time

    def again() -> None:
        time.sleep(AGAIN_AFTER)
        if hasattr(_signal, "pthread_kill"):  # which also ends a wait of the main thread
            _signal.pthread_kill(_main, _signal.SIGINT)
        else:
            _thread.interrupt_main()

    _thread.start_new_thread(again, ())
