"""Ctrl-C from start to end of the program: exit code 130 and no traceback.

While modules are imported, and after the command is done, the process ends at once. In between, KeyboardInterrupt is
raised so that a command can clean up. This file imports only modules that Python has loaded already: `signal` imports
`enum`, and Ctrl-C during these milliseconds would print a traceback.
"""

import _signal  # type: ignore[import-not-found]
import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERRUPTED = 130
RESEND_AFTER = 0.02
"""Seconds until an interrupt that Python could not raise is sent again."""

_was_interrupted = False
_main = 0
"""The thread in which the command runs."""


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed while the command ran: a later error may be its consequence.

    A package whose import is interrupted may raise its own ImportError.
    """
    return _was_interrupted


def clear_interrupt() -> None:
    """Ctrl-C stopped one part of the command, which continues: a later error is not its consequence."""
    global _was_interrupted
    _was_interrupted = False


def exit_on_interrupt() -> bool:
    """From now on, Ctrl-C ends the process. Returns False where SIGINT is ignored or this is not the main thread."""
    if _signal.getsignal(_signal.SIGINT) not in (_signal.default_int_handler, _exit, _raise):
        return False
    try:
        _signal.signal(_signal.SIGINT, _exit)
    except ValueError:  # not the main thread
        return False
    return True


def ignore() -> None:
    """From now on, Ctrl-C does nothing: the command was interrupted already and is ending.

    While Python shuts down, it replaces our handler by the system's, which ends the process without an exit code.
    """
    if _signal.getsignal(_signal.SIGINT) in (_exit, _raise):
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


def raise_interrupts() -> None:
    """From now on, Ctrl-C raises KeyboardInterrupt, even where Python could only print it."""
    global _main
    _main = _thread.get_ident()
    sys.unraisablehook = _unraisable
    _signal.signal(_signal.SIGINT, _raise)


def _exit(number: int, frame: "Any") -> None:
    os._exit(INTERRUPTED)


def _raise(number: int, frame: "Any") -> None:
    global _was_interrupted
    _was_interrupted = True
    raise KeyboardInterrupt


def _unraisable(unraisable: "Any") -> None:
    """Send a lost KeyboardInterrupt again: Python only prints exceptions in callbacks, such as those of import locks.

    A thread sends it a moment later, because an exception raised here would be lost as well.
    """
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    import time

    def send_again() -> None:
        time.sleep(RESEND_AFTER)
        if hasattr(_signal, "pthread_kill"):  # which also wakes the main thread
            _signal.pthread_kill(_main, _signal.SIGINT)
        else:
            _thread.interrupt_main()

    _thread.start_new_thread(send_again, ())
