"""`regard learn path`: the whole course in order with estimated times, or one lesson of it in detail."""

import sys
from collections.abc import Iterator
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from regard.cli.streams import print_message, put, write_json
from regard.messages import language, say
from regard.views.labels import fold

if TYPE_CHECKING:
    from regard.course.lessons import Lesson
    from regard.course.study_path import PathStep


def path(
    lesson: Annotated[
        str | None, typer.Argument(metavar="metavar-lesson", help="help-path-lesson", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.lessons import lesson as find
    from regard.course.lessons import lessons
    from regard.course.progress import ProgressFile
    from regard.course.study_path import steps

    shown = lessons() if lesson is None else (find(lesson),)
    numbers = {one.number for one in shown}
    found = tuple(step for step in steps(ProgressFile(report=print_message).read()) if step.lesson in numbers)
    groups = {one: tuple(step for step in found if step.lesson == one.number) for one in shown}
    if as_json:
        write_json(_as_json(groups, found))
        return
    put("\n".join(_lines(groups, found, is_detailed=lesson is not None)))
    sys.stdout.flush()
    print_message(_rule())


def _lines(
    groups: "dict[Lesson, tuple[PathStep, ...]]", found: "tuple[PathStep, ...]", is_detailed: bool
) -> Iterator[str]:
    from regard.course.study_path import minutes_left

    width = get_terminal_size().columns
    total = sum(step.minutes for step in found)
    yield say("path-head", total=hours(total), left=hours(minutes_left(found)))
    for lesson, steps in groups.items():
        total, left = sum(step.minutes for step in steps), minutes_left(steps)
        title = getattr(lesson.title, language())
        time = hours(total) if left in (0, total) else say("path-lesson-left", total=hours(total), left=hours(left))
        yield ""
        yield f"{'✓' if not left else ' '} {say('learn-lesson', number=lesson.number, title=title)}  ({time})"
        for mark, minutes, text in _rows(steps, is_detailed):
            start = f"    {mark} {say('path-minutes', count=max(1, round(minutes))):>7}  "
            for line in fold(text, max(24, width - cell_len(start))):
                yield start + line
                start = " " * cell_len(start)


def _rows(steps: "tuple[PathStep, ...]", is_detailed: bool) -> Iterator[tuple[str, float, str]]:
    """(mark, minutes, text) of each step; the questions of a lesson are one row unless details are wanted."""
    asked = [step for step in steps if step.kind == "question"]
    for step in steps:
        text = step.command if step.kind == "lesson" else f"{step.id}  {step.title}"
        if step.kind != "question" or is_detailed:
            yield _mark(step.is_done), step.minutes, text
    if asked and not is_detailed:
        done, minutes = sum(step.is_done for step in asked), sum(step.minutes for step in asked)
        yield _mark(done == len(asked)), minutes, say("path-questions", done=done, count=len(asked))


def _mark(is_done: bool) -> str:
    return "✓" if is_done else "·"


def _rule() -> str:
    """The rule by which the times are estimated, with its numbers."""
    from regard.course import study_path as rule

    numbers = {"block": rule.BLOCK, "exercise": rule.EXERCISE, "line": rule.LINE, "searched": rule.SEARCHED_LINE}
    numbers |= {"words": rule.WORDS, "characters": rule.CHARACTERS, "step": rule.SHEET_STEP}
    return say("path-rule", **numbers)


def hours(minutes: float) -> str:
    """A time in hours and minutes.

    >>> hours(80.2), hours(45)
    ('1 h 20 min', '45 min')
    """
    whole, rest = divmod(max(1, round(minutes)), 60)
    if whole >= 10:  # minutes would pretend to be exact
        return say("path-hours", hours=round(minutes / 60))
    parts = ([say("path-hours", hours=whole)] if whole else []) + ([say("path-minutes", count=rest)] if rest else [])
    return " ".join(parts)


def _as_json(groups: "dict[Lesson, tuple[PathStep, ...]]", found: "tuple[PathStep, ...]") -> dict[str, Any]:
    from dataclasses import asdict

    from regard.course.study_path import minutes_left

    def about(step: "PathStep") -> dict[str, Any]:
        data = asdict(step)
        return data | {"minutes": round(step.minutes, 1), "done": data.pop("is_done")}

    listed = [
        {"number": one.number, "name": one.name, "title": getattr(one.title, language())}
        | {"minutes": round(sum(step.minutes for step in steps)), "minutes_left": round(minutes_left(steps))}
        | {"steps": [about(step) for step in steps]}
        for one, steps in groups.items()
    ]
    total = round(sum(step.minutes for step in found))
    return {"lessons": listed, "minutes": total, "minutes_left": round(minutes_left(found))}
