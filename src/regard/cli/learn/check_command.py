"""`regard learn check`: an answer graded, once or each time it is saved."""

import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.exercise_files import LARGEST_ANSWER, answer_file, asked_for
from regard.cli.number_options import whole_number
from regard.cli.streams import put, stdin_bytes, talk, write_json
from regard.errors import AbsentFileError, ArgumentError, FileError
from regard.messages import say

if TYPE_CHECKING:
    from regard.course.exercise import Exercise


ENDING = ("SIGTERM", "SIGHUP")
"""Besides Ctrl-C, which Python makes an exception by itself. Windows has no SIGHUP."""


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Inside, such a signal raises SystemExit with the exit code that a shell gives it, 128 and its number. A signal
    that was ignored before, as under nohup, stays ignored."""
    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    kept = {number: signal.getsignal(number) for number in numbers}

    def leave(number: int, _: FrameType | None) -> None:
        for other in kept:  # a second one must not end what the first one began
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    try:
        for number, handler in kept.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, leave)
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
"""Names of stdin."""
PAUSE = 0.2
"""Seconds between two looks at a file; what has not changed from one to the next is saved."""


def check(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    file: Annotated[str | None, typer.Argument(metavar="metavar-file", help="help-check-file")] = None,
    on_save: Annotated[bool, typer.Option("--on-save", help="help-on-save")] = False,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-check-seed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    exercise = asked_for(id, "check")
    number = None if seed is None else whole_number("--seed", seed, least=0)
    if file in STDIN and on_save:
        raise ArgumentError("on-save-stdin", exercise=exercise.id)
    path = Path(answer_file(exercise) if file is None else file)
    with ended_in_order():
        passed = _judge(exercise, path, _answer(exercise, path), number, as_json)
        if on_save:
            _watch(exercise, path, number, as_json)
    raise typer.Exit(0 if passed else 1)


def _answer(exercise: "Exercise", path: Path) -> bytes:
    """What the file, or stdin, holds, byte for byte: what is wrong with it is for the grader to tell."""
    from regard.files.input import read_file

    if str(path) in STDIN:
        return stdin_bytes(LARGEST_ANSWER)
    try:
        return read_file(path, most=LARGEST_ANSWER)
    except AbsentFileError as error:
        raise FileError("check-no-file", path=str(path), exercise=exercise.id) from error


def _judge(exercise: "Exercise", path: Path, answer: bytes, seed: int | None, as_json: bool) -> bool:
    """Grade, show and remember; whether it passed."""
    from regard.course.grading.grader import grade
    from regard.course.progress import ProgressFile

    verdict = grade(exercise, answer, seed=seed)
    if as_json:
        write_json(verdict.as_json())
    else:
        put(verdict.text(shlex.quote(str(path))))
    sys.stdout.flush()
    ProgressFile(tell=talk).checked(exercise.id, verdict.passed)
    if verdict.passed and not as_json:
        talk("\n" + say("check-then-sheet" if verdict.is_sheet else "check-then", exercise=exercise.id))
    return verdict.passed


def _watch(exercise: "Exercise", path: Path, seed: int | None, as_json: bool) -> None:
    """Judge again whenever the file has changed, until Ctrl-C. An editor that replaces the file may take its time."""
    talk(say("on-save-waiting", path=str(path)))
    judged = now = _stamp(path)
    while True:
        time.sleep(PAUSE)
        before, now = now, _stamp(path)
        if now in (None, judged) or now != before:  # not there, not new, or still being written
            continue
        judged = now
        try:
            answer = _answer(exercise, path)
        except FileError:  # gone in this very moment: it will come back
            continue
        talk(say("on-save-again", path=str(path), time=time.strftime("%H:%M:%S")))
        _judge(exercise, path, answer, seed, as_json)
        talk(say("on-save-waiting", path=str(path)))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is saved; None while it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
