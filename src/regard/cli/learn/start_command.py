"""`regard learn start`: shows the task and writes the initial file."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.exercise_files import answer_file, is_untouched, lacks_torch, requested_exercise
from regard.cli.streams import print_message, put, write_json
from regard.messages import language, say

if TYPE_CHECKING:
    from regard.course.exercise import Exercise


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
