"""The command line, `regard`: a file for each of its commands, and what they share.

A command parses, calls one library function and prints: data on stdout, talk on stderr. Exit codes:

    0 fine                     3 a file that cannot be read or written    70 a mistake of ours: a bug
    1 a check failed           4 something is missing                     130 interrupted
    2 usage                    5 out of memory or disk

A bug is 70, as in BSD's sysexits, and never 1: a script must not read it as a check that failed.

Nothing heavy is imported before a command runs, so that `--help` is quick; and nothing at all before Ctrl-C is handled.
"""

from regard.cli import interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command that `argv` (or the command line) asks for, and return its exit code."""
    if argv is not None or not interrupts.end_at_once():  # called by a program, which handles Ctrl-C itself
        from regard.cli.entry import run

        return run(argv)
    try:
        from regard.cli.entry import run

        return run(None, ready=interrupts.raise_interrupts)
    except KeyboardInterrupt:  # before the command began, or while it ended
        return interrupts.INTERRUPTED
    finally:
        interrupts.ignore() if interrupts.came() else interrupts.end_at_once()
