"""`regard learn reset`: begin an exercise, or all of them, anew; what was there stays under another name."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.learn.naming import answer_file, asked_for, is_untouched
from regard.cli.learn.start_command import write_beginning
from regard.cli.streams import talk, write_json
from regard.errors import ArgumentError, FileError
from regard.words import say


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
    if path.is_dir():
        raise FileError("file-is-folder", path=str(path))
    if path.exists():
        if not is_untouched(exercise, path):
            kept = _kept(path)
        else:
            path.unlink()  # a sheet gets new numbers
        write_beginning(exercise, path)
    ProgressFile(tell=talk).change(lambda progress: progress.without(exercise.id))
    if as_json:
        write_json({"id": exercise.id, "file": str(path), "kept": None if kept is None else str(kept)})
        return
    talk(say("reset-done", exercise=exercise.id))
    if kept is not None:
        talk(say("reset-kept", path=str(path), kept=str(kept)))


def _kept(path: Path) -> Path:
    """The file under the first name that is free: answer.1.py, answer.2.py …"""
    from regard.files import reason_of

    number = 1
    while (kept := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    try:
        return path.rename(kept)
    except OSError as error:
        raise FileError("file-unwritable", path=str(kept), reason=reason_of(error)) from error
