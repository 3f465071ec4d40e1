"""`regard learn hint`: three steps towards an answer, one with each call."""

from dataclasses import replace
from typing import Annotated

import typer

from regard.cli.learn.exercise_files import asked_for
from regard.cli.number_options import whole_number
from regard.cli.streams import put, talk, write_json
from regard.errors import ArgumentError
from regard.messages import language, say


def hint(
    id: Annotated[str | None, typer.Argument(metavar="metavar-id", help="help-id", show_default=False)] = None,
    step: Annotated[str | None, typer.Option("--step", metavar="metavar-number", help="help-hint-step")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress import ProgressFile

    exercise = asked_for(id, "hint")
    hints = exercise.hints[language()]
    wanted = None if step is None else whole_number("--step", step, least=1)
    if wanted is not None and wanted > len(hints):
        raise ArgumentError("hint-step", exercise=exercise.id, count=len(hints), found=wanted)

    book = ProgressFile(tell=talk)
    before = book.read().work(exercise.id)
    given = wanted or min(before.hints + 1, len(hints))
    book.change(
        lambda progress: progress.with_work(
            exercise.id, replace(work := progress.work(exercise.id), hints=max(work.hints, given))
        )
    )
    if as_json:
        write_json({"id": exercise.id, "step": given, "of": len(hints), "hint": hints[given - 1]})
        return
    put(f"{say('hint-head', step=given, count=len(hints))}\n{hints[given - 1].strip()}", flush=True)
    if given == len(hints):
        is_open = before.passed_at is not None or before.gave_up  # then `solution` asks for nothing more
        talk(say("hint-last", exercise=exercise.id if is_open else f"{exercise.id} --give-up"))
    else:  # where nothing is kept, a plain call would give the first one again
        talk(say("hint-more", exercise=exercise.id if book.is_kept else f"{exercise.id} --step {given + 1}"))
