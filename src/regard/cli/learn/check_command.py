"""`regard learn check`: grades an answer, once or each time it is saved."""

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

from regard.cli.learn.exercise_commands import LARGEST_ANSWER, answer_file, requested_exercise
from regard.cli.number_options import whole_number
from regard.cli.streams import print_message, put, stdin_bytes, write_json
from regard.errors import AbsentFileError, ArgumentError, FileError
from regard.messages import say

if TYPE_CHECKING:
    from regard.course.exercise import Exercise


ENDING = ("SIGTERM", "SIGHUP")
"""Signals besides Ctrl-C, which Python already turns into an exception. Windows has no SIGHUP."""


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Inside the block, such a signal raises SystemExit with the shell's exit code, 128 + number. An ignored signal, as
    under nohup, stays ignored."""
    numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    kept = {number: signal.getsignal(number) for number in numbers}

    def leave(number: int, _: FrameType | None) -> None:
        for other in kept:  # a second signal must not interrupt the cleanup
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
"""Seconds between two checks of a file; a file that did not change in between is completely saved."""


def check(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    file: Annotated[str | None, typer.Argument(metavar="metavar-file", help="help-check-file")] = None,
    on_save: Annotated[bool, typer.Option("--on-save", help="help-on-save")] = False,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-check-seed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    exercise = requested_exercise(id, "check")
    number = None if seed is None else whole_number("--seed", seed, least=0)
    if file in STDIN and on_save:
        raise ArgumentError("on-save-stdin", exercise=exercise.argument)
    path = Path(answer_file(exercise) if file is None else file)
    with exit_on_signals():
        passed = _grade(exercise, path, _answer(exercise, path), number, as_json)
        if on_save:
            _watch(exercise, path, number, as_json)
    raise typer.Exit(0 if passed else 1)


def _answer(exercise: "Exercise", path: Path) -> bytes:
    """The bytes of the file or of stdin; the grader reports what is wrong with them."""
    from regard.files.safe_open import read_file

    if str(path) in STDIN:
        return stdin_bytes(LARGEST_ANSWER)
    try:
        return read_file(path, most=LARGEST_ANSWER)
    except AbsentFileError as error:
        raise FileError("check-no-file", path=str(path), exercise=exercise.argument) from error


def _grade(exercise: "Exercise", path: Path, answer: bytes, seed: int | None, as_json: bool) -> bool:
    """Grade the answer, record the verdict, show it; return whether it passed. A closed stdout loses no pass."""
    from regard.course.grading.grader import grade
    from regard.course.passed_answers import record

    verdict = grade(exercise, answer, seed=seed)
    record(exercise, verdict, answer, report=print_message)
    if as_json:
        write_json(verdict.as_json())
    else:
        put(verdict.text(shlex.quote(str(path))))
    sys.stdout.flush()
    if verdict.passed and not as_json:
        print_message("\n" + say("check-then-sheet" if verdict.is_sheet else "check-then", exercise=exercise.argument))
    return verdict.passed


def _watch(exercise: "Exercise", path: Path, seed: int | None, as_json: bool) -> None:
    """Grade again whenever the file has changed, until Ctrl-C. An editor may delete the file before writing it."""
    print_message(say("on-save-waiting", path=str(path)))
    graded = now = _stamp(path)
    while True:
        time.sleep(PAUSE)
        before, now = now, _stamp(path)
        if now in (None, graded) or now != before:  # missing, unchanged, or still being written
            continue
        graded = now
        try:
            answer = _answer(exercise, path)
        except FileError:  # just removed: the editor will write it again
            continue
        print_message(say("on-save-again", path=str(path), time=time.strftime("%H:%M:%S")))
        _grade(exercise, path, answer, seed, as_json)
        print_message(say("on-save-waiting", path=str(path)))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Modification time, size and inode of a file; None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
