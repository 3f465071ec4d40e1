"""`regard learn reset`: begin an exercise, or all of them, anew; what was there stays under another name."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.exercise_files import answer_file, asked_for, is_untouched
from regard.cli.learn.start_command import beginning, write_beginning
from regard.cli.streams import talk, write_json
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
    """Progress begins anew, and what was there can be had back; files of answers stay as they are."""
    from regard.course.progress import ProgressFile

    book = ProgressFile(tell=talk)
    before, kept = book.read(), book.forget_all()
    if as_json:
        write_json({"all": True, "kept": None if kept is None else str(kept)})
    elif kept is None:
        talk(say("reset-nothing"))
    else:
        counts = {"exercises": len(before.exercises), "questions": len(before.questions)}
        talk(say("reset-all", kept=str(kept), name=book.path.name, **counts))


def _reset_one(id: str | None, folder: Path, as_json: bool) -> None:
    from regard.course.progress import ProgressFile

    exercise = asked_for(id, "reset")
    path, kept = folder / answer_file(exercise), None
    if os.path.lexists(path):
        kept = _begin_anew(exercise, path)
    ProgressFile(tell=talk).change(lambda progress: progress.without(exercise.id))
    if as_json:
        write_json({"id": exercise.id, "file": str(path), "kept": None if kept is None else str(kept)})
        return
    talk(say("reset-done", exercise=exercise.id))
    if kept is not None:
        talk(say("reset-kept", path=str(path), kept=str(kept)))


def _begin_anew(exercise: "Exercise", path: Path) -> Path | None:
    """The beginning in the place of an answer, which stays under the name that is given back; None for an empty one.

    Where the beginning cannot be written, the answer is where it was.
    """
    from regard.files.output import real_place, write_aside

    real_place(path)  # a FIFO or a device is no answer: refused before anything is renamed
    if is_untouched(exercise, path):
        content = beginning(exercise)  # a sheet gets new numbers
        write_aside(path, lambda aside: aside.write_bytes(content), need=len(content))
        return None
    kept = _free_name(path)
    _rename(path, kept)
    try:
        write_beginning(exercise, path)
    except RegardError:
        _rename(kept, path)
        raise
    return kept


def _free_name(path: Path) -> Path:
    """The first name that nothing has: answer.1.py, answer.2.py …"""
    number = 1
    while os.path.lexists(kept := path.with_name(f"{path.stem}.{number}{path.suffix}")):
        number += 1
    return kept


def _rename(path: Path, name: Path) -> None:
    from regard.files.output import refusal

    try:
        path.rename(name)
    except OSError as error:
        raise refusal(error, name, 0) from error
