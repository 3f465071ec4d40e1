"""Run a command: choose the language, parse, run, report an error in one line, return the exit code."""

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
from regard.cli.streams import discard_output, prepare_streams, print_message, report_escapes
from regard.errors import ArgumentError, RegardError, import_error
from regard.messages import LANGUAGES, Language, language, say, use_language

USAGE, FILE, OUT_OF_RESOURCES, INTERNAL_ERROR, INTERRUPTED = 2, 3, 5, 70, 130

# Options of every command, which no command lists itself.
GENERAL_OPTIONS = ("--lang", "--debug", "--help")
_ALLOCATION = re.compile(
    r"can't allocate memory: you tried to allocate (\d{1,30}) bytes|out of memory\. Tried to allocate ([\d.]+ \w+)"
)
"""The messages of the RuntimeErrors that PyTorch raises when it is out of memory."""
PICTURE_OPTIONS = ("--svg", "--pdf")
"""Formats that --png writes too, by the ending of the file name."""


def message_and_code(error: BaseException) -> tuple[str | None, int]:
    """The message of an error (None to print nothing) and the exit code."""
    match error:
        case RegardError():
            return error.text(), error.exit_code
        case KeyboardInterrupt():
            return None, INTERRUPTED
        case ImportError() if missing := import_error(error, say("cli-this-command")):
            return missing.text(), missing.exit_code
        case MemoryError():
            return say("cli-out-of-memory"), OUT_OF_RESOURCES
        case RuntimeError() if allocation := _ALLOCATION.search(str(error)):
            return say("cli-out-of-memory-of", need=_size(allocation)), OUT_OF_RESOURCES
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return say("cli-out-of-disk"), OUT_OF_RESOURCES
        case OSError(strerror=str(reason)):
            return say("cli-file-trouble", file=error.filename or "-", reason=reason), FILE
    if getattr(error, "exit_code", None) == USAGE and hasattr(error, "format_message"):
        return usage_message(error), USAGE
    return say("cli-unexpected", kind=type(error).__name__, message=str(error)), INTERNAL_ERROR


def _size(allocation: "re.Match[str]") -> str:
    """The size in the message of PyTorch: bytes on a CPU, larger units on a GPU."""
    from regard.memory import format_bytes

    return format_bytes(int(allocation[1])) if allocation[1] else allocation[2]


def usage_message(error: Any) -> str:
    """Our message for a usage error of click."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "regard"
    kind = type(error).__name__
    if kind == "NoSuchOption":
        option = error.option_name
        options = _options(context)
        nearest = get_close_matches(option, [*options, *GENERAL_OPTIONS], n=1, cutoff=0.7)
        if option in PICTURE_OPTIONS and "--png" in options:
            nearest = [f"--png {say('metavar-file')}.{option.removeprefix('--')}"]
        if nearest:
            return say("cli-option-unknown-near", option=option, nearest=nearest[0], command=command)
        return say("cli-option-unknown", option=option, command=command)
    if kind == "BadOptionUsage":
        key = "cli-option-needs-value" if "require" in error.message else "cli-option-takes-no-value"
        return say(key, option=error.option_name)
    if kind == "MissingParameter" and context is not None and error.param is not None:
        arguments = [say(param.metavar) for param in context.command.params if param.param_type_name == "argument"]
        usage = " ".join([command, *arguments])
        return say("cli-argument-missing", argument=say(error.param.metavar), usage=usage, command=command)
    return say("cli-usage-other", message=error.format_message(), command=command)


def _options(context: Any) -> list[str]:
    """The long options of the command."""
    if context is None:
        return []
    return [name for param in context.command.params for name in param.opts if name.startswith("--")]


LONGEST_WORD = 400
LONGEST_MESSAGE = 4000
"""In characters: of a quoted word, and of a whole message."""


class GeneralOptions(NamedTuple):
    """The options of every command, and the remaining arguments."""

    rest: list[str]
    lang: Language | None
    debug: bool


def run(argv: Sequence[str] | None = None, ready: Callable[[], None] | None = None) -> int:
    """Run the command and return its exit code; `ready` is called when all parsing modules are imported."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    if argv is None:
        os.environ["MPLBACKEND"] = "agg"  # no command opens a window, and matplotlib fails with an unknown name
    try:
        general = split_general_options(arguments)
    except RegardError as error:
        return _report_error(error, debug="--debug" in arguments)
    with use_language(general.lang or language()):
        try:
            code = _run(general.rest, ready)
            sys.stdout.flush()
            report_escapes()
            return code
        except BrokenPipeError:
            discard_output(sys.stdout)
            return 0  # the reader closed the pipe
        except (Exception, KeyboardInterrupt) as error:
            code = _report_error(KeyboardInterrupt() if interrupts.was_interrupted() else error, general.debug)
            if argv is None and isinstance(error, RegardError) and error.key == "rank-lost":
                _exit_now(code)
            return code


def _exit_now(code: int) -> None:
    """Exit without the shutdown of Python, in which threads of PyTorch may wait for the lost process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


def split_general_options(arguments: list[str]) -> GeneralOptions:
    """Remove `--lang` and `--debug`, anywhere before `--`, from the arguments.

    >>> split_general_options(["see", "--lang=zh", "hello", "--", "--debug"])
    GeneralOptions(rest=['see', 'hello', '--', '--debug'], lang='zh', debug=False)
    """
    rest: list[str] = []
    lang: Language | None = None
    debug = False
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--":
            rest += [argument, *remaining]
        elif argument == "--debug":
            debug = True
        elif argument == "--lang" or argument.startswith("--lang="):
            value = argument.partition("=")[2] if "=" in argument else next(remaining, "")
            lang = _language(value)
        else:
            rest.append(argument)
    return GeneralOptions(rest, lang, debug)


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
    except typer.Exit as exit:
        return exit.exit_code
    return 0


def shortened(message: str) -> str:
    """The message with long words cut to both ends, such as a number of 5,000 digits.

    >>> shortened(f"found {'9' * 5000}") == f"found {'9' * 40}…{'9' * 40}"
    True
    """
    cut = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda found: f"{found[0][:40]}…{found[0][-40:]}", message)
    return cut if len(cut) <= LONGEST_MESSAGE else f"{cut[:LONGEST_MESSAGE]}…"


def _report_error(error: BaseException, debug: bool) -> int:
    """Print one line to stderr, with `debug` after the traceback, and return the exit code."""
    message, code = message_and_code(error)
    if isinstance(error, OSError):
        discard_output(sys.stdout)
    if debug:
        print_message("".join(traceback.format_exception(error)).rstrip("\n"))
    if message:
        print_message(f"regard: {shortened(' '.join(message.splitlines()))}")
    return code
