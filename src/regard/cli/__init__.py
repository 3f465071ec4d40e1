"""The command line, `regard`: a file for each of its commands, and what they share.

A command parses, calls one library function and prints: data on stdout, talk on stderr. Exit codes:

    0 fine                     3 a file that cannot be read or written    70 a mistake of ours: a bug
    1 a check failed           4 something is missing                     130 interrupted
    2 usage                    5 out of memory or disk

A bug is 70, as in BSD's sysexits, and never 1: a script must not read it as a check that failed.

Nothing heavy is imported before a command runs, so that `--help` is quick.
"""

from regard.cli.entry import main

__all__ = ["main"]
