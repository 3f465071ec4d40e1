"""`regard learn`: the commands, by subject. The course is imported only when a command runs."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from regard.cli.learn.build_command import build
from regard.cli.learn.exercise_commands import check, hint, reset, solution, start
from regard.cli.learn.lesson_commands import notebook, read
from regard.cli.learn.overview_commands import list_exercises, overview, path
from regard.cli.learn.progress_commands import certificate, export_progress, import_progress
from regard.cli.learn.question_commands import ask, interview
from regard.cli.learn.teacher_commands import grade, new, verify
from regard.errors import ArgumentError

COMMANDS: dict[str, Callable[..., Any]] = {
    "list": list_exercises,
    "path": path,
    "start": start,
    "check": check,
    "build": build,
    "hint": hint,
    "solution": solution,
    "reset": reset,
    "ask": ask,
    "interview": interview,
    "read": read,
    "notebook": notebook,
    "certificate": certificate,
    "export": export_progress,
    "import": import_progress,
    "new": new,
    "verify": verify,
    "grade": grade,
}


def learn(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if context.invoked_subcommand is None:
        overview(as_json)
    elif as_json:
        raise ArgumentError("learn-json-place", command=context.invoked_subcommand)
