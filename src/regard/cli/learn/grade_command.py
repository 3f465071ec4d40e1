"""`regard learn grade`: grades the answers of a class to one exercise, and prints or writes a table."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from regard.cli.learn.check_command import exit_on_signals
from regard.cli.learn.exercise_files import answer_file, requested_exercise
from regard.cli.number_options import whole_number
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import say
from regard.packages import require_package
from regard.printable import one_line

if TYPE_CHECKING:
    from regard.course.own_exercises.class_grading import Graded


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
    from regard.course.own_exercises.class_grading import answer_files, as_csv, grade_class
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
    slips = Counter(row.slip for row in rows if row.slip)
    if slips:
        lines.append(say("grade-slips", slips=" · ".join(f"{slip} × {count}" for slip, count in slips.most_common(5))))
    return "\n".join(lines)


def _as_json(row: "Graded") -> dict[str, Any]:
    passed, count = row.tests
    about = {"file": row.file, "verdict": row.state, "passed": passed, "tests": count}
    return about | {"slip": row.slip or None, "diagnosis": row.diagnosis or None}
