"""`regard learn new`, `verify` and `grade`: for teachers with exercises of their own and the answers of a class."""

import os
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from regard.cli.arguments import whole_number
from regard.cli.learn.exercise_commands import answer_file, exit_on_signals, requested_exercise
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError, require_package
from regard.messages import one_line, say

if TYPE_CHECKING:
    from regard.course.own_exercises.checks import Graded


# --- new and verify ----------------------------------------------------------------------------------------


def new(
    id: Annotated[str | None, typer.Argument(metavar="metavar-new-id", help="help-new-id", show_default=False)] = None,
    parent: Annotated[Path, typer.Option("--dir", metavar="metavar-folder", help="help-new-dir")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.own_exercises.loading import write_folder

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
    from regard.course.own_exercises.checks import verify
    from regard.course.own_exercises.loading import load_folder

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


# --- grade -------------------------------------------------------------------------------------------------


def grade(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-grade-id", show_default=False)] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="metavar-folder", help="help-grade-folder", show_default=False)
    ] = None,
    table: Annotated[Path | None, typer.Option("--csv", metavar="metavar-file", help="help-grade-csv")] = None,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-grade-seed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    exercise = requested_exercise(id, "grade")
    number = None if seed is None else whole_number("--seed", seed, least=0)
    if folder is None:
        raise ArgumentError("grade-which", exercise=exercise.argument)
    from regard.course.grading.grader import fresh_seed
    from regard.course.own_exercises.checks import answer_files, as_csv, grade_class
    from regard.files.output import check_target, write_output

    if table is not None:
        check_target(table)
    if exercise.sheet is None:
        require_package(exercise.track, say("sandbox-exercise"))
    files = answer_files(folder, answer_file(exercise))
    number = fresh_seed() if number is None else number
    wide, rows = max(cell_len(one_line(file)) for file in files), []
    with exit_on_signals():
        for row in grade_class(exercise, folder, files, number):
            rows.append(row)
            if not as_json:
                put(_line(row, wide), flush=True)
    if table is not None:
        write_output(table, as_csv(rows))
    if as_json:
        write_json({"id": exercise.id, "seed": number, "answers": list(map(_as_json, rows))})
        return
    print_message("\n" + _summary(rows))
    if table is not None:
        print_message(say("grade-written", path=str(table)))


def _line(row: "Graded", wide: int) -> str:
    """✓ or ✗, the file, the tests that pass, the diagnosis."""
    file = one_line(row.file)
    passed, count = row.tests
    tests = f"{passed}/{count}" if count else "–"
    sign = {"passed": "✓", "failed": "✗", "unreadable": "!"}[row.state]
    return f"{sign} {file}{' ' * (wide - cell_len(file))}  {tests:>6}  {row.diagnosis}".rstrip()


def _summary(rows: "list[Graded]") -> str:
    passed = sum(row.state == "passed" for row in rows)
    lines = [say("grade-result", passed=passed, count=len(rows))]
    mistakes = Counter(row.mistake for row in rows if row.mistake)
    if mistakes:
        lines.append(
            say(
                "grade-mistakes",
                mistakes=" · ".join(f"{mistake} × {count}" for mistake, count in mistakes.most_common(5)),
            )
        )
    return "\n".join(lines)


def _as_json(row: "Graded") -> dict[str, Any]:
    passed, count = row.tests
    about = {"file": row.file, "verdict": row.state, "passed": passed, "tests": count}
    return about | {"mistake": row.mistake or None, "diagnosis": row.diagnosis or None}
