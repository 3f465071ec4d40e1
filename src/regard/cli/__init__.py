"""The command line `regard`: one file for each command or group of commands, and shared modules.

A command parses its arguments, calls one library function and prints: data to stdout, messages to stderr. Exit codes:

    0 success                  3 a file cannot be read or written         70 a bug in regard
    1 a check failed           4 something is missing                     130 interrupted
    2 usage                    5 out of memory or disk

A bug is 70, as in BSD's sysexits, and never 1: a script must not take it for a failed check.

No large package is imported before a command runs, so that `--help` is fast; nothing is imported before Ctrl-C is
handled.
"""

from regard.cli import interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command in `argv` (by default sys.argv) and return its exit code."""
    if argv is not None or not interrupts.exit_on_interrupt():  # called from Python, which handles Ctrl-C itself
        from regard.cli.entry import run

        return run(argv)
    try:
        from regard.cli.entry import run

        return run(None, ready=interrupts.raise_interrupts)
    except KeyboardInterrupt:  # before the command started, or while it ended
        return interrupts.INTERRUPTED
    finally:
        interrupts.ignore() if interrupts.was_interrupted() else interrupts.exit_on_interrupt()
