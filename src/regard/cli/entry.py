"""From the arguments to an exit code: choose the language, run the command, say in one line what went wrong.

`--lang` and `--debug` are taken out of the arguments before anything else looks at them, so they may stand
anywhere, and even the help page and the complaints about other options speak the language that was asked for.
"""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NamedTuple

from regard.cli.verdict import judge
from regard.errors import ArgumentError, RegardError
from regard.printable import printable
from regard.words import LANGUAGES, Language, language, speaking


class General(NamedTuple):
    """What every command understands, and the arguments that are left."""

    rest: list[str]
    lang: Language | None
    debug: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (or the command line) asks for, and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character gets "?" for it, and no traceback.
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        general = take_general(arguments)
    except RegardError as error:
        return _complain(error, debug="--debug" in arguments)
    with speaking(general.lang or language()):
        try:
            code = _run(general.rest)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            _forget_stdout()
            return 0  # the reader had enough
        except (Exception, KeyboardInterrupt) as error:
            code = _complain(error, general.debug)
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


def _run(arguments: list[str]) -> int:
    import typer

    from regard.cli.application import application

    command = application()
    try:
        with command.make_context("regard", arguments) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return 0


def _complain(error: BaseException, debug: bool) -> int:
    """One line on stderr, and the exit code; with `debug`, the traceback before it."""
    sentence, code = judge(error)
    if isinstance(error, OSError):
        _forget_stdout()
    if debug:
        print(printable("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    if sentence:
        print(f"regard: {printable(' '.join(sentence.splitlines()))}", file=sys.stderr)
    return code


def _forget_stdout() -> None:
    """Send what is still unwritten nowhere: Python would try it again at its end, and complain about it."""
    with contextlib.suppress(Exception):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
