"""`regard learn` alone: where the learner was, the next step, what is due today, and progress by lesson."""

import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from regard.cli.learn.exercise_files import lacks_torch
from regard.cli.learn.list_command import (
    checklist_items,
    checklist_lines,
    column,
    count_due,
    list_as_json,
    mark,
    next_exercise,
    next_step,
)
from regard.cli.learn.path_command import hours
from regard.cli.streams import print_message, put, write_json
from regard.messages import language, say
from regard.views.line_breaks import fold

if TYPE_CHECKING:
    from regard.course.progress import Progress
    from regard.course.study_path import LastDone, Step


def overview(as_json: bool) -> None:
    from regard.course.catalogue import entries
    from regard.course.progress import ProgressFile
    from regard.course.study_path import last_done, minutes_left, steps

    progress = ProgressFile(report=print_message).read()
    path, last, items = steps(progress), last_done(progress), list(checklist_items(progress))
    if as_json:
        about = list_as_json(entries(), progress, items, next_exercise(entries(), progress))
        was = None if last is None else {"kind": last.kind, "id": last.id, "at": last.at}
        write_json(about | {"last": was, "counts": _counts(path), "minutes_left": round(minutes_left(path))})
        return
    width = get_terminal_size().columns
    lines = [*_summary(progress, last, path, width), "", *_by_lesson(progress, path, width), ""]
    put("\n".join([*lines, *checklist_lines(items, width)]))
    sys.stdout.flush()
    print_message("")
    if any(map(lacks_torch, entries())):
        print_message(say("missing-package", what=say("learn-torch-exercises"), package="torch", extra="torch"))
    print_message(say("overview-more"))


def _summary(progress: "Progress", last: "LastDone | None", path: "tuple[Step, ...]", width: int) -> Iterator[str]:
    """The four lines at the top, with their texts aligned."""
    from regard.course.catalogue import entries
    from regard.course.study_path import minutes_left

    following, due = next_exercise(entries(), progress), count_due(progress)
    left = minutes_left(path)
    counts = {f"{kind}_{what}": count for kind, both in _counts(path).items() for what, count in both.items()}
    texts = {
        "was": say("overview-was-none") if last is None else _was(last, progress),
        "next": say("learn-all-passed") if following is None else next_step(following, progress),
        "due": say("overview-due-some", count=due) if due else say("overview-due-none"),
        "progress": say("overview-counts", **counts) + (" · " + say("overview-left", time=hours(left)) if left else ""),
    }
    names = column([say(f"overview-{name}") for name in texts])
    for name, text in zip(names, texts.values(), strict=True):
        for number, line in enumerate(fold(text, max(24, width - cell_len(name)))):
            yield (" " * cell_len(name) if number else name) + line


def _was(last: "LastDone", progress: "Progress") -> str:
    """What the learner did last, and the day."""
    from regard.course.lessons.index import lessons

    values: dict[str, Any] = {"id": last.id}
    if last.kind == "exercise":
        kind = "passed" if progress.passed(last.id) else "exercise"
    elif last.kind == "question":
        kind, values["rated"] = "question", progress.questions[last.id].rated
    else:
        kind = "lesson"
        found = next((one for one in lessons() if one.name == last.id), None)
        values["id"] = last.id if found is None else f"{found.number} {getattr(found.title, language())}"
    return f"{say(f'overview-was-{kind}', **values)} · {_day(last.at)}"


def _day(at: str) -> str:
    """The day of a time, in the local time zone."""
    day = datetime.fromisoformat(at).astimezone().date()
    ago = (date.today() - day) // timedelta(days=1)
    return say({0: "overview-today", 1: "overview-yesterday"}.get(ago, "overview-day"), day=day.isoformat())


def _counts(path: "tuple[Step, ...]") -> dict[str, dict[str, int]]:
    """How many lessons, exercises and questions there are, and how many are done."""
    found: dict[str, dict[str, int]] = {}
    for step in path:
        both = found.setdefault(f"{step.kind}s", {"done": 0, "count": 0})
        both["count"] += 1
        both["done"] += step.is_done
    return found


def _by_lesson(progress: "Progress", path: "tuple[Step, ...]", width: int) -> Iterator[str]:
    """One line for each lesson: whether it was read, its title, the time left, and a mark for each exercise."""
    from regard.course.catalogue import entries

    numbers = sorted({step.lesson for step in path})
    groups = {number: tuple(step for step in path if step.lesson == number) for number in numbers}
    names = {number: next((one for one in group if one.kind == "lesson"), None) for number, group in groups.items()}
    titles = column([step.title if step else "" for step in names.values()])
    marks = {
        number: "".join(mark(row, progress.work(row.id)) for row in entries() if row.lesson == number)
        for number in numbers
    }
    longest = max(map(len, marks.values()))
    for (number, group), title in zip(groups.items(), titles, strict=True):
        left = sum(step.minutes for step in group if not step.is_done)
        step = names[number]
        line = f"  {'✓' if step and step.is_done else '·'} {number:2} {title}{marks[number]:{longest}}"
        time = say("path-hours", hours=f"{left / 60:.1f}") if left else say("overview-lesson-done")
        yield f"{line}  {time}" if cell_len(line) + 2 + cell_len(time) <= width else line.rstrip()
    yield from fold(say("overview-marks-torch" if any(map(lacks_torch, entries())) else "overview-marks"), width)
