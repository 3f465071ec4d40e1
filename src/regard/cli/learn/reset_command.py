"""`regard learn reset`: restarts one exercise or all of them; the old files are kept under other names."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.exercise_files import answer_file, is_untouched, requested_exercise
from regard.cli.learn.start_command import initial_content, write_initial_file
from regard.cli.streams import print_message, write_json
from regard.errors import ArgumentError, RegardError
from regard.messages import say

if TYPE_CHECKING:
    from regard.course.exercise import Exercise


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
