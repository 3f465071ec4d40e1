"""`regard learn`, `list` and `path`: what has been done, what comes next, all exercises, and the course in order.

`path` gives estimated times, and one lesson in detail.
"""

import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.cells import cell_len

from regard.cli.learn.exercise_commands import lacks_torch
from regard.cli.streams import print_message, put, write_json
from regard.messages import language, say
from regard.views.labels import fold

if TYPE_CHECKING:
    from regard.course.exercise import Entry
    from regard.course.lessons import Lesson
    from regard.course.progress import ExerciseProgress, Progress
    from regard.course.study_path import LastDone, PathStep


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


# --- list --------------------------------------------------------------------------------------------------


CHECKLIST = {
    "flow": ("order-the-flow",),
    "hand": ("by-hand",),
    "code": ("self-attention", "multi-head-attention"),
}
"""The first three of the four items of the interview check-list, with their exercises."""


class ChecklistItem(NamedTuple):
    """One line of the check-list: what it needs, and what is left."""

    name: str
    needs: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def is_done(self) -> bool:
        return not self.left


def list_exercises(as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False) -> None:
    from regard.course.catalogue import entries
    from regard.course.progress import ProgressFile

    progress = ProgressFile(report=print_message).read()
    items = list(checklist_items(progress))
    following = next_exercise(entries(), progress)
    if as_json:
        write_json(list_as_json(entries(), progress, items, following))
        return
    width = get_terminal_size().columns
    put("\n".join([*_table(entries(), progress, width), "", *checklist_lines(items, width)]))
    print_message("")
    if any(map(lacks_torch, entries())):
        print_message(say("missing-package", what=say("learn-torch-exercises"), package="torch", extra="torch"))
    if due := count_due(progress):
        print_message(say("learn-due", count=due))
    if following is None:
        print_message(say("learn-all-passed"))
    else:
        print_message(say("learn-next", step=next_step(following, progress)))


def next_step(row: "Entry", progress: "Progress") -> str:
    """The next command: the first lesson for a newcomer; later an exercise, with its lesson if there is one."""
    from regard.course.lessons import lessons

    if not progress.exercises and not progress.lessons and lessons():
        return say("learn-next-begin", lesson=row.lesson, exercise=row.id)
    if progress.work(row.id).attempts:
        return say("learn-next-go-on", exercise=row.id)
    step = say("learn-next-start", exercise=row.id)
    if any(lesson.number == row.lesson and lesson.name not in progress.lessons for lesson in lessons()):
        step += say("learn-next-read", lesson=row.lesson)
    return step


def _table(rows: "tuple[Entry, ...]", progress: "Progress", width: int) -> Iterator[str]:
    """A block of lines for each lesson, with the titles aligned.

    The kind column is shown only if every row fits the width.
    """
    from regard.course.lessons import lessons

    titles = {lesson.number: getattr(lesson.title, language()) for lesson in lessons()}
    kinds = column([_kind(row) for row in rows])
    names = [getattr(row.title, language()) for row in rows]
    longest = max(len(row.id) for row in rows)
    if longest + max(cell_len(kind + name) for kind, name in zip(kinds, names, strict=True)) + 6 > width:
        kinds = [""] * len(rows)
    for number in sorted({*titles, *(row.lesson for row in rows)}):
        yield say("learn-lesson", number=number, title=titles.get(number, ""))
        group = [line for line in zip(rows, kinds, names, strict=True) if line[0].lesson == number]
        if not group:
            yield f"    regard learn read {number}"
        for row, kind, name in group:
            yield f"  {mark(row, progress.work(row.id))} {row.id:{longest}}  {kind}{name}"
        yield ""
    passed = sum(progress.passed(row.id) for row in rows)
    yield (
        say("learn-passed", passed=passed, count=len(rows))
        + "  "
        + say("learn-marks-torch" if any(map(lacks_torch, rows)) else "learn-marks")
    )


def column(texts: list[str]) -> list[str]:
    """Pad texts to equal width, with two spaces after the widest."""
    wide = max(map(cell_len, texts)) + 2
    return [text + " " * (wide - cell_len(text)) for text in texts]


def _kind(row: "Entry") -> str:
    """The kind of an exercise and its package; answer sheets need neither."""
    track = {"numpy": "NumPy", "torch": "PyTorch"}[row.track]
    return say(f"learn-kind-{row.kind}", track=track)


def mark(row: "Entry", work: "ExerciseProgress") -> str:
    if work.passed_at is not None:
        return "✓"
    if lacks_torch(row):
        return "×"
    return "·" if not work.attempts and not work.gave_up else "…"


def checklist_items(progress: "Progress") -> Iterator[ChecklistItem]:
    from regard.course.questions import IN_OWN_WORDS

    for name, needs in CHECKLIST.items():
        yield ChecklistItem(name, needs, tuple(one for one in needs if not progress.passed(one)))
    well = [one for one, card in progress.questions.items() if card.rated == "good"]
    yield ChecklistItem("words", IN_OWN_WORDS, tuple(one for one in IN_OWN_WORDS if one not in well))


def checklist_lines(items: list[ChecklistItem], width: int) -> Iterator[str]:
    yield say("learn-checklist", done=sum(item.is_done for item in items), count=len(items))
    names = column([say(f"learn-item-{item.name}") for item in items])
    for item, name in zip(items, names, strict=True):
        done = f"{len(item.needs) - len(item.left)}/{len(item.needs)}"
        start = f"  {'✓' if item.is_done else '·'} {name}{done}  "
        how = "ask " * (item.name == "words") + ", ".join(item.left or item.needs)
        for line in fold(how, max(24, width - cell_len(start))):
            yield start + line
            start = " " * cell_len(start)


def count_due(progress: "Progress") -> int:
    from datetime import date

    from regard.course.questions import is_due

    return sum(is_due(card, date.today()) for card in progress.questions.values())


def next_exercise(rows: "tuple[Entry, ...]", progress: "Progress") -> "Entry | None":
    """The first exercise that is not passed and can run here."""
    open_ones = [row for row in rows if not progress.passed(row.id)]
    return next((row for row in open_ones if not lacks_torch(row)), next(iter(open_ones), None))


def list_as_json(
    rows: "tuple[Entry, ...]", progress: "Progress", items: list[ChecklistItem], following: "Entry | None"
) -> dict[str, Any]:
    from dataclasses import asdict

    listed = [
        {**asdict(row), "title": getattr(row.title, language()), "passed": progress.passed(row.id)}
        | {"missing": "torch" if lacks_torch(row) else None}
        | asdict(progress.work(row.id))
        for row in rows
    ]
    checklist = [{"item": item.name, "done": item.is_done, "needs": list(item.needs)} for item in items]
    return {
        "exercises": listed,
        "checklist": checklist,
        "questions_due": count_due(progress),
        "next": None if following is None else following.id,
    }


# --- overview ----------------------------------------------------------------------------------------------


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


def _summary(progress: "Progress", last: "LastDone | None", path: "tuple[PathStep, ...]", width: int) -> Iterator[str]:
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
    from regard.course.lessons import lessons

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


def _counts(path: "tuple[PathStep, ...]") -> dict[str, dict[str, int]]:
    """How many lessons, exercises and questions there are, and how many are done."""
    found: dict[str, dict[str, int]] = {}
    for step in path:
        both = found.setdefault(f"{step.kind}s", {"done": 0, "count": 0})
        both["count"] += 1
        both["done"] += step.is_done
    return found


def _by_lesson(progress: "Progress", path: "tuple[PathStep, ...]", width: int) -> Iterator[str]:
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
