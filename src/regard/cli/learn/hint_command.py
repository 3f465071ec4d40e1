"""`regard learn hint`: three hints per exercise, one per call."""

from typing import Annotated

import typer

from regard.cli.learn.exercise_files import requested_exercise
from regard.cli.number_options import whole_number
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import language, say


def hint(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    step: Annotated[str | None, typer.Option("--step", metavar="metavar-number", help="help-hint-step")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress import ProgressFile

    exercise = requested_exercise(id, "hint")
    hints = exercise.hints[language()]
    wanted = None if step is None else whole_number("--step", step, least=1)
    if wanted is not None and wanted > len(hints):
        raise ArgumentError("hint-step", exercise=exercise.argument, count=len(hints), found=wanted)

    progress_file = ProgressFile(report=print_message)
    before = progress_file.read().work(exercise.key)
    given = wanted or min(before.hints + 1, len(hints))
    progress_file.change(lambda progress: progress.with_work(exercise.key, progress.work(exercise.key).hinted(given)))
    if as_json:
        write_json({"id": exercise.id, "step": given, "of": len(hints), "hint": hints[given - 1]})
        return
    put(f"{say('hint-head', step=given, count=len(hints))}\n{hints[given - 1].strip()}", flush=True)
    if given == len(hints):
        is_open = before.passed_at is not None or before.gave_up  # then `solution` needs no --give-up
        print_message(say("hint-last", exercise=exercise.argument if is_open else f"{exercise.argument} --give-up"))
    else:  # without saved progress, a plain call would give the first hint again
        print_message(
            say(
                "hint-more",
                exercise=exercise.argument if progress_file.is_saved else f"{exercise.argument} --step {given + 1}",
            )
        )
