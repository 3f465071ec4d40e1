"""What went wrong, as one sentence and an exit code.

Typer's own complaints are English only, so they are told apart by the names of their classes and said again
in our words. The classes are Click's, or Typer's copy of them, by Typer's version; their names are the same.
"""

import errno
import re
from difflib import get_close_matches
from typing import Any

from regard.errors import RegardError
from regard.packages import import_error
from regard.words import say

USAGE, FILE, NO_ROOM, OUR_MISTAKE, INTERRUPTED = 2, 3, 5, 70, 130

# Known everywhere, though no command lists them: see `entry`.
GENERAL = ("--lang", "--debug", "--help")
_ALLOCATION = re.compile(
    r"can't allocate memory: you tried to allocate (\d{1,30}) bytes|out of memory\. Tried to allocate ([\d.]+ \w+)"
)
"""How PyTorch says that memory is short: its own kind of RuntimeError."""
BY_ENDING = ("--svg", "--pdf")
"""What --png writes too, by the ending of its file."""


def judge(error: BaseException) -> tuple[str | None, int]:
    """The sentence (None for silence) and the exit code."""
    match error:
        case RegardError():
            return error.text(), error.exit_code
        case KeyboardInterrupt():
            return None, INTERRUPTED
        case ImportError() if missing := import_error(error, say("cli-this-command")):
            return missing.text(), missing.exit_code
        case MemoryError():
            return say("cli-out-of-memory"), NO_ROOM
        case RuntimeError() if asked := _ALLOCATION.search(str(error)):
            return say("cli-out-of-memory-of", need=_size(asked)), NO_ROOM
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return say("cli-out-of-disk"), NO_ROOM
        case OSError(strerror=str(reason)):
            return say("cli-file-trouble", file=error.filename or "-", reason=reason), FILE
    if getattr(error, "exit_code", None) == USAGE and hasattr(error, "format_message"):
        return usage_sentence(error), USAGE
    return say("cli-unexpected", kind=type(error).__name__, message=str(error)), OUR_MISTAKE


def _size(asked: "re.Match[str]") -> str:
    """The size in PyTorch's words, which names bytes on a CPU and larger units on a GPU."""
    from regard.memory import spell

    return spell(int(asked[1])) if asked[1] else asked[2]


def usage_sentence(error: Any) -> str:
    """A complaint about the arguments, in our words."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "regard"
    kind = type(error).__name__
    if kind == "NoSuchOption":
        asked = error.option_name
        options = _options(context)
        near = get_close_matches(asked, [*options, *GENERAL], n=1, cutoff=0.7)
        if asked in BY_ENDING and "--png" in options:
            near = [f"--png {say('metavar-file')}.{asked.removeprefix('--')}"]
        if near:
            return say("cli-option-unknown-near", option=asked, nearest=near[0], command=command)
        return say("cli-option-unknown", option=asked, command=command)
    if kind == "BadOptionUsage":
        key = "cli-option-needs-value" if "require" in error.message else "cli-option-takes-no-value"
        return say(key, option=error.option_name)
    return say("cli-usage-other", message=error.format_message(), command=command)


def _options(context: Any) -> list[str]:
    """The long options of the command that was being read."""
    if context is None:
        return []
    return [name for param in context.command.params for name in param.opts if name.startswith("--")]
