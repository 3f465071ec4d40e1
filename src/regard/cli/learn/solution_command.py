"""`regard learn solution`: shows a solution once the exercise is passed or given up."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.exercise_files import LARGEST_ANSWER, answer_file, requested_exercise
from regard.cli.number_options import is_count, whole_number
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import say

if TYPE_CHECKING:
    from regard.course.exercise import Exercise


def solution(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    give_up: Annotated[bool, typer.Option("--give-up", help="help-give-up")] = False,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-solution-seed")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.filled_sheets import filled_sheet
    from regard.course.progress import ProgressFile

    exercise = requested_exercise(id, "solution")
    number = _seed_here(exercise) if seed is None else whole_number("--seed", seed, least=0)
    progress_file = ProgressFile(report=print_message)
    work = progress_file.read().work(exercise.key)
    if work.passed_at is None and not work.gave_up:
        if not give_up:
            raise ArgumentError("solution-locked", exercise=exercise.argument)
        progress_file.change(lambda now: now.with_work(exercise.key, now.work(exercise.key).given_up()))
    text = exercise.solution if exercise.sheet is None else filled_sheet(exercise.sheet, number or 0)
    if as_json:
        write_json({"id": exercise.id, "solution": text})
        return
    put(text.rstrip("\n"), flush=True)
    if exercise.sheet is not None and number is None:
        print_message(say("solution-seed", exercise=exercise.argument))


def _seed_here(exercise: "Exercise") -> int | None:
    """The seed of the answer sheet in this folder, if there is one."""
    import re

    from regard.files.input import read_file

    try:
        text = read_file(Path(answer_file(exercise)), most=LARGEST_ANSWER).decode()
    except ValueError:  # missing, not readable, or not UTF-8
        return None
    found = re.search(r"^\s*seed\s*[=＝]\s*(\d+)", text, flags=re.MULTILINE)  # the other lines may be invalid TOML
    return int(found[1]) if found is not None and exercise.sheet is not None and is_count(found[1]) else None
