"""`regard learn start`, `check`, `hint`, `solution` and `reset`: one exercise, and the file with its answer."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.arguments import is_count, whole_number
from regard.cli.streams import print_message, put, stdin_bytes, write_json
from regard.errors import AbsentFileError, ArgumentError, FileError, RegardError
from regard.messages import language, say

if TYPE_CHECKING:
    from regard.course.exercise import Entry, Exercise

LARGEST_ANSWER = 2**24
"""Limit for a file or stdin, in bytes. The grader has its own limit for programs."""


def requested_exercise(id: str | None, command: str) -> "Exercise":
    """The exercise with this id or in this folder; without either, an error with an example."""
    from regard.course.own_exercises.loading import find_exercise

    if id is None:
        raise ArgumentError("learn-which", command=command)
    return find_exercise(id)


def answer_file(row: "Entry") -> str:
    """The file name that `start` uses for an answer.

    >>> from regard.course.catalogue import entry
    >>> answer_file(entry("softmax")), answer_file(entry("by-hand"))
    ('softmax.py', 'by-hand.toml')
    """
    return f"{row.id}.toml" if row.kind == "sheet" else f"{row.id}.py"


def lacks_torch(row: "Entry") -> bool:
    """Whether the exercise needs PyTorch and PyTorch is not installed."""
    return row.track == "torch" and row.kind != "sheet" and find_spec("torch") is None


def is_untouched(exercise: "Exercise", path: Path) -> bool:
    """Whether a file is unchanged since `start`, in either language and with any seed."""
    import tomllib

    from regard.files.safe_open import read_file
    from regard.messages import LANGUAGES

    try:
        text = read_file(path, most=LARGEST_ANSWER).decode().replace("\r\n", "\n")
        if exercise.sheet is None:
            return text == exercise.stub
        seed = tomllib.loads(text).get("seed")
        return isinstance(seed, int) and any(text == exercise.sheet.make(seed, lang) for lang in LANGUAGES)
    except (ValueError, RecursionError):  # not there, not to be read, no UTF-8, no TOML
        return False


# --- start -------------------------------------------------------------------------------------------------


def start(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    folder: Annotated[Path, typer.Option("--dir", metavar="metavar-folder", help="help-learn-dir")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    exercise = requested_exercise(id, "start")
    path = folder / answer_file(exercise)
    task = getattr(exercise.task, language()).strip()
    written = write_initial_file(exercise, path)  # before printing: a closed pager would end the command
    if not as_json:
        put(f"{getattr(exercise.title, language())}\n\n{task}\n", flush=True)
    if lacks_torch(exercise):
        print_message(say("missing-package", what=say("sandbox-exercise"), package="torch", extra="torch"))
    if as_json:
        write_json({"id": exercise.id, "file": str(path), "written": written, "task": task})
        return
    if not written and not is_untouched(exercise, path):
        print_message(say("learn-changed", file=str(path), exercise=exercise.argument))
    else:
        print_message(say("learn-written" if written else "learn-already-there", file=str(path)))
    print_message(say("learn-then", exercise=exercise.argument, file=shlex.quote(str(path))))


def write_initial_file(exercise: "Exercise", path: Path) -> bool:
    """Write the stub or the empty sheet as a new file; False if the file exists, which is left unchanged."""
    from regard.files.output import write_error, write_new

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, path, 0) from error
    return write_new(path, initial_content(exercise))


def initial_content(exercise: "Exercise") -> bytes:
    """The content of the initial file."""
    import secrets

    if exercise.sheet is None:
        return exercise.stub.encode()
    return exercise.sheet.make(secrets.randbelow(10**8), language()).encode()


# --- hint --------------------------------------------------------------------------------------------------


def hint(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    step: Annotated[str | None, typer.Option("--step", metavar="metavar-number", help="help-hint-step")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress import ProgressFile

    exercise = requested_exercise(id, "hint")
    hints = exercise.hints[language()]
    wanted = None if step is None else whole_number("--step", step, least=1)
    if wanted is not None and wanted > len(hints):
        raise ArgumentError("hint-step", exercise=exercise.argument, count=len(hints), found=wanted)

    progress_file = ProgressFile(report=print_message)
    before = progress_file.read().work(exercise.key)
    given = wanted or min(before.hints + 1, len(hints))
    progress_file.change(lambda progress: progress.with_work(exercise.key, progress.work(exercise.key).hinted(given)))
    if as_json:
        write_json({"id": exercise.id, "step": given, "of": len(hints), "hint": hints[given - 1]})
        return
    put(f"{say('hint-head', step=given, count=len(hints))}\n{hints[given - 1].strip()}", flush=True)
    if given == len(hints):
        is_open = before.passed_at is not None or before.gave_up  # then `solution` needs no --give-up
        print_message(say("hint-last", exercise=exercise.argument if is_open else f"{exercise.argument} --give-up"))
    else:  # without saved progress, a plain call would give the first hint again
        print_message(
            say(
                "hint-more",
                exercise=exercise.argument if progress_file.is_saved else f"{exercise.argument} --step {given + 1}",
            )
        )


# --- solution ----------------------------------------------------------------------------------------------


def solution(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    give_up: Annotated[bool, typer.Option("--give-up", help="help-give-up")] = False,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-solution-seed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.exercise import filled_sheet
    from regard.course.progress import ProgressFile

    exercise = requested_exercise(id, "solution")
    number = _seed_here(exercise) if seed is None else whole_number("--seed", seed, least=0)
    progress_file = ProgressFile(report=print_message)
    work = progress_file.read().work(exercise.key)
    if work.passed_at is None and not work.gave_up:
        if not give_up:
            raise ArgumentError("solution-locked", exercise=exercise.argument)
        progress_file.change(lambda now: now.with_work(exercise.key, now.work(exercise.key).given_up()))
    text = exercise.solution if exercise.sheet is None else filled_sheet(exercise.sheet, number or 0)
    if as_json:
        write_json({"id": exercise.id, "solution": text})
        return
    put(text.rstrip("\n"), flush=True)
    if exercise.sheet is not None and number is None:
        print_message(say("solution-seed", exercise=exercise.argument))


def _seed_here(exercise: "Exercise") -> int | None:
    """The seed of the answer sheet in this folder, if there is one."""
    import re

    from regard.files.safe_open import read_file

    try:
        text = read_file(Path(answer_file(exercise)), most=LARGEST_ANSWER).decode()
    except ValueError:  # missing, not readable, or not UTF-8
        return None
    found = re.search(r"^\s*seed\s*[=＝]\s*(\d+)", text, flags=re.MULTILINE)  # the other lines may be invalid TOML
    return int(found[1]) if found is not None and exercise.sheet is not None and is_count(found[1]) else None


# --- reset -------------------------------------------------------------------------------------------------


def reset(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="help-reset-all")] = False,
    folder: Annotated[Path, typer.Option("--dir", metavar="metavar-folder", help="help-reset-dir")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if everything:
        if id is not None:
            raise ArgumentError("reset-one-or-all", exercise=id)
        _reset_all(as_json)
    else:
        _reset_one(id, folder, as_json)


def _reset_all(as_json: bool) -> None:
    """Reset all progress; the old progress can be restored, and answer files are unchanged."""
    from regard.course.passed_answers import PassedAnswers
    from regard.course.progress import ProgressFile

    progress_file = ProgressFile(report=print_message)
    before, kept = progress_file.read(), progress_file.forget_all()
    PassedAnswers().forget_all()
    if as_json:
        write_json({"all": True, "kept": None if kept is None else str(kept)})
    elif kept is None:
        print_message(say("reset-nothing"))
    else:
        counts = {"exercises": len(before.exercises), "questions": len(before.questions)}
        print_message(say("reset-all", kept=str(kept), name=progress_file.path.name, **counts))


def _reset_one(id: str | None, folder: Path, as_json: bool) -> None:
    from regard.course.passed_answers import PassedAnswers
    from regard.course.progress import ProgressFile

    exercise = requested_exercise(id, "reset")
    path, kept = folder / answer_file(exercise), None
    if os.path.lexists(path):
        kept = _restart(exercise, path)
    ProgressFile(report=print_message).change(lambda progress: progress.without(exercise.key))
    PassedAnswers().forget(exercise.key)
    if as_json:
        write_json({"id": exercise.id, "file": str(path), "kept": None if kept is None else str(kept)})
        return
    print_message(say("reset-done", exercise=exercise.id))
    if kept is not None:
        print_message(say("reset-kept", path=str(path), kept=str(kept)))


def _restart(exercise: "Exercise", path: Path) -> Path | None:
    """Replace an answer by the initial file; return the new name of the answer, None if it was unchanged.

    If the initial file cannot be written, the answer is restored.
    """
    from regard.files.output import resolve_target, write_bytes

    resolve_target(path)  # refuses a FIFO or a device before anything is renamed
    if is_untouched(exercise, path):
        content = initial_content(exercise)  # a sheet gets new numbers
        write_bytes(path, content)
        return None
    kept = _free_name(path)
    _rename(path, kept)
    try:
        write_initial_file(exercise, path)
    except RegardError:
        _rename(kept, path)
        raise
    return kept


def _free_name(path: Path) -> Path:
    """The first unused name: answer.1.py, answer.2.py …"""
    number = 1
    while os.path.lexists(kept := path.with_name(f"{path.stem}.{number}{path.suffix}")):
        number += 1
    return kept


def _rename(path: Path, name: Path) -> None:
    from regard.files.output import write_error

    try:
        path.rename(name)
    except OSError as error:
        raise write_error(error, name, 0) from error


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
