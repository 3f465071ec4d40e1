"""From the arguments to an exit code: choose the language, run the command, report an error in one line."""

import contextlib
import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from regard.cli import interrupts
from regard.cli.streams import forget, prepare_streams, talk, tell_of_escapes
from regard.errors import ArgumentError, RegardError
from regard.messages import LANGUAGES, Language, language, say, speaking
from regard.packages import import_error

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


LONGEST_WORD = 400
LONGEST_SENTENCE = 4000
"""In characters: of what a complaint may quote, and of all of it."""


class General(NamedTuple):
    """What every command understands, and the arguments that are left."""

    rest: list[str]
    lang: Language | None
    debug: bool


def run(argv: Sequence[str] | None = None, ready: Callable[[], None] | None = None) -> int:
    """Run the command and return its exit code; `ready` is called once everything is imported that parses arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    if argv is None:
        os.environ["MPLBACKEND"] = "agg"  # no command opens a window, and matplotlib refuses to start with a wrong name
    try:
        general = take_general(arguments)
    except RegardError as error:
        return _complain(error, debug="--debug" in arguments)
    with speaking(general.lang or language()):
        try:
            code = _run(general.rest, ready)
            sys.stdout.flush()
            tell_of_escapes()
            return code
        except BrokenPipeError:
            forget(sys.stdout)
            return 0  # the reader had enough
        except (Exception, KeyboardInterrupt) as error:
            code = _complain(KeyboardInterrupt() if interrupts.came() else error, general.debug)
            if argv is None and isinstance(error, RegardError) and error.key == "rank-lost":
                _leave_at_once(code)
            return code


def _leave_at_once(code: int) -> None:
    """Without the interpreter's own end: there PyTorch's threads may wait for the process that was lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


def take_general(arguments: list[str]) -> General:
    """Take `--lang` and `--debug` out, wherever they stand before `--`.

    >>> take_general(["see", "--lang=zh", "hello", "--", "--debug"])
    General(rest=['see', 'hello', '--', '--debug'], lang='zh', debug=False)
    """
    rest: list[str] = []
    lang: Language | None = None
    debug = False
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--":
            rest += [argument, *waiting]
        elif argument == "--debug":
            debug = True
        elif argument == "--lang" or argument.startswith("--lang="):
            value = argument.partition("=")[2] if "=" in argument else next(waiting, "")
            lang = _language(value)
        else:
            rest.append(argument)
    return General(rest, lang, debug)


def _language(value: str) -> Language:
    for known in LANGUAGES:
        if value.lower() == known:
            return known
    raise ArgumentError("cli-lang-unknown", asked=value, languages="|".join(LANGUAGES))


def _run(arguments: list[str], ready: Callable[[], None] | None) -> int:
    import typer

    from regard.cli.application import application

    command = application()
    if ready is not None:
        ready()
    try:
        with command.make_context("regard", arguments) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return 0


def shortened(sentence: str) -> str:
    """Long runs without a space are cut: of a number of 5,000 digits, both ends tell enough.

    >>> shortened(f"found {'9' * 5000}") == f"found {'9' * 40}…{'9' * 40}"
    True
    """
    cut = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda found: f"{found[0][:40]}…{found[0][-40:]}", sentence)
    return cut if len(cut) <= LONGEST_SENTENCE else f"{cut[:LONGEST_SENTENCE]}…"


def _complain(error: BaseException, debug: bool) -> int:
    """One line on stderr, and the exit code; with `debug`, the traceback before it."""
    sentence, code = judge(error)
    if isinstance(error, OSError):
        forget(sys.stdout)
    if debug:
        talk("".join(traceback.format_exception(error)).rstrip("\n"))
    if sentence:
        talk(f"regard: {shortened(' '.join(sentence.splitlines()))}")
    return code
