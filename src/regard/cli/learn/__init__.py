"""`regard learn`: one module per command. The course is imported only when a command runs."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from regard.cli.learn.ask_command import ask
from regard.cli.learn.build_command import build
from regard.cli.learn.certificate_command import certificate
from regard.cli.learn.check_command import check
from regard.cli.learn.grade_command import grade
from regard.cli.learn.hint_command import hint
from regard.cli.learn.interview_command import interview
from regard.cli.learn.list_command import list_exercises
from regard.cli.learn.notebook_command import notebook
from regard.cli.learn.overview_command import overview
from regard.cli.learn.path_command import path
from regard.cli.learn.read_command import read
from regard.cli.learn.reset_command import reset
from regard.cli.learn.solution_command import solution
from regard.cli.learn.start_command import start
from regard.cli.learn.teacher_commands import new, verify
from regard.cli.learn.transfer_commands import export_progress, import_progress
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
