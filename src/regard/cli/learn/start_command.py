"""`regard learn start`: the task on the screen, and a file to begin from."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.exercise_files import answer_file, asked_for, is_untouched, lacks_torch
from regard.cli.streams import put, talk, write_json
from regard.messages import language, say

if TYPE_CHECKING:
    from regard.course.exercise import Exercise


def start(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    folder: Annotated[Path, typer.Option("--dir", metavar="metavar-folder", help="help-learn-dir")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    exercise = asked_for(id, "start")
    path = folder / answer_file(exercise)
    task = getattr(exercise.task, language()).strip()
    written = write_beginning(exercise, path)  # first: who reads the task through a pager may leave it early
    if not as_json:
        put(f"{getattr(exercise.title, language())}\n\n{task}\n", flush=True)
    if lacks_torch(exercise):
        talk(say("missing-package", what=say("sandbox-exercise"), package="torch", extra="torch"))
    if as_json:
        write_json({"id": exercise.id, "file": str(path), "written": written, "task": task})
        return
    if not written and not is_untouched(exercise, path):
        talk(say("learn-changed", file=str(path), exercise=exercise.id))
    else:
        talk(say("learn-written" if written else "learn-already-there", file=str(path)))
    talk(say("learn-then", exercise=exercise.id, file=shlex.quote(str(path))))


def write_beginning(exercise: "Exercise", path: Path) -> bool:
    """The stub or the empty sheet, as a new file; False where it is there already, which is left as it is."""
    from regard.files.output import refusal, write_new

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(error, path, 0) from error
    return write_new(path, beginning(exercise))


def beginning(exercise: "Exercise") -> bytes:
    """What `start` writes."""
    import secrets

    if exercise.sheet is None:
        return exercise.stub.encode()
    return exercise.sheet.make(secrets.randbelow(10**8), language()).encode()
