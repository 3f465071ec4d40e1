"""`regard learn new` and `regard learn verify`: an exercise of a teacher's own, written and verified."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.learn.check_command import exit_on_signals
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import say
from regard.printable import one_line


def new(
    id: Annotated[str | None, typer.Argument(metavar="metavar-new-id", help="help-new-id", show_default=False)] = None,
    parent: Annotated[Path, typer.Option("--dir", metavar="metavar-folder", help="help-new-dir")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.own_exercises.new_folder import write_folder

    if id is None:
        raise ArgumentError("new-which")
    if Path(id).name != id:
        raise ArgumentError("new-id", found=id)
    written = write_folder(parent / id)
    if as_json:
        write_json({"folder": str(parent / id), "files": list(map(str, written))})
        return
    print_message(say("new-written", path=str(parent / id)))
    for path in written:
        print_message(f"  {path}")
    print_message(say("new-then", folder=shlex.quote(as_argument(parent / id))))


def as_argument(folder: Path) -> str:
    """A folder as commands take it: with a separator, so that it is not an exercise of the course.

    >>> as_argument(Path("mean-pooling"))
    './mean-pooling'
    """
    text = str(folder)
    return text if os.sep in text or "/" in text else f"./{text}"


def verify(
    folder: Annotated[
        str | None, typer.Argument(metavar="metavar-folder", help="help-verify-folder", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.own_exercises.loading import load_folder
    from regard.course.own_exercises.verification import verify

    if folder is None:
        raise ArgumentError("verify-which")
    exercise, found = load_folder(folder), []
    with exit_on_signals():
        for finding in verify(exercise):
            found.append(finding)
            if not as_json:
                put(f"{'✓' if finding.is_right else '✗'} {finding.what}", flush=True)
                if not finding.is_right:
                    put(f"    {one_line(finding.problem)}", flush=True)
    is_right = all(finding.is_right for finding in found)
    if as_json:
        listed = [{"what": one.what, "right": one.is_right, "problem": one.problem or None} for one in found]
        write_json({"id": exercise.id, "right": is_right, "findings": listed})
    elif is_right:
        print_message("\n" + say("verify-done", folder=shlex.quote(as_argument(Path(folder)))))
    else:
        print_message("\n" + say("verify-undone", count=sum(not one.is_right for one in found)))
    raise typer.Exit(0 if is_right else 1)
