"""From the arguments to an exit code: choose the language, run the command, say in one line what went wrong.

`--lang` and `--debug` are taken out of the arguments before anything else looks at them, so they may stand
anywhere, and even the help page and the complaints about other options speak the language that was asked for.
"""

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from regard.cli import interrupts
from regard.cli.streams import forget, prepare_streams, talk, tell_of_escapes
from regard.cli.verdict import judge
from regard.errors import ArgumentError, RegardError
from regard.words import LANGUAGES, Language, language, speaking

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
