"""`regard learn read` and `notebook`: a lesson in the terminal, or as a Jupyter notebook."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import WIDEST, print_message, put, write_json
from regard.errors import ArgumentError, FileError
from regard.messages import language, say

if TYPE_CHECKING:
    from regard.course.lessons import Lesson
    from regard.course.progress import Progress


# --- read --------------------------------------------------------------------------------------------------


def read(
    lesson: Annotated[
        str | None, typer.Argument(metavar="metavar-lesson", help="help-lesson", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if lesson is None:
        _list(as_json)
        return
    from regard.course.lessons import lesson as find

    found = find(lesson)
    title, text = getattr(found.title, language()), found.text()
    if as_json:
        write_json({"number": found.number, "name": found.name, "title": title, "text": text})
    elif sys.stdout.isatty():
        _show(text)
        _mark(found)
    else:  # files and pipes get plain Markdown
        put(text, end="")


def _mark(lesson: "Lesson") -> None:
    """Record that the lesson was shown on a terminal, and say so the first time."""
    from regard.course.progress import ProgressFile

    file = ProgressFile(report=print_message)
    is_first = lesson.name not in file.read().lessons
    progress = file.change(lambda now: now.with_lesson(lesson.name))
    if is_first:
        sys.stdout.flush()
        print_message(say("read-marked", number=lesson.number, next=_command_after(lesson, progress)))


def _command_after(lesson: "Lesson", progress: "Progress") -> str:
    """The command of the next step that is not done: an exercise or question of this lesson, or a later one."""
    from regard.course.study_path import steps

    left = (step.command for step in steps(progress) if step.lesson >= lesson.number and not step.is_done)
    return next(left, "regard learn")


def _show(text: str) -> None:
    """Draw the lesson, through the reader's pager if it is longer than the screen."""
    import click
    from rich.console import Console

    from regard.course.lessons.markdown import draw

    console = Console()
    with console.capture() as captured:
        draw(text, console, min(console.width, WIDEST))
    drawn = captured.get()
    if drawn.count("\n") < console.height:
        put(drawn, end="")
    else:
        click.echo_via_pager(drawn, color=not console.no_color)


def _list(as_json: bool) -> None:
    from regard.course.lessons import lessons

    rows = [{"number": one.number, "name": one.name, "title": getattr(one.title, language())} for one in lessons()]
    if as_json:
        write_json({"lessons": rows})
        return
    longest = max((len(str(row["name"])) for row in rows), default=0)
    for row in rows:
        put(f"{row['number']:2}  {row['name']:{longest}}  {row['title']}")
    sys.stdout.flush()
    print_message(say("read-more"))


# --- notebook ----------------------------------------------------------------------------------------------


def notebook(
    lesson: Annotated[
        str | None, typer.Argument(metavar="metavar-lesson", help="help-notebook-lesson", show_default=False)
    ] = None,
    target: Annotated[
        str | None,
        typer.Argument(metavar="metavar-file-or-folder", help="help-notebook-target", show_default=False),
    ] = None,
    all_lessons: Annotated[bool, typer.Option("--all", help="help-notebook-all")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    rows = []
    for found, path in _requested(lesson, target, all_lessons):
        written, is_same = _write(found, path)
        rows.append({"number": found.number, "name": found.name, "file": str(path), "written": written})
        if not as_json:
            key = "learn-written" if written else "learn-already-there" if is_same else "notebook-kept"
            print_message(say(key, file=str(path)))
    if as_json:
        write_json({"notebooks": rows})
    else:
        print_message(say("notebook-open"))


def _requested(lesson: str | None, target: str | None, all_lessons: bool) -> list[tuple["Lesson", Path]]:
    """The lessons to write, each with the path of its file."""
    from regard.course.lessons import lesson as find
    from regard.course.lessons import lessons
    from regard.course.lessons.markdown import notebook_name

    if all_lessons and lesson is not None and target is not None:
        raise ArgumentError("notebook-all-folder", lesson=lesson, target=target)
    if not all_lessons and lesson is None:
        raise ArgumentError("notebook-which")
    found = lessons() if all_lessons else [find(lesson or "")]
    place = (lesson if all_lessons else target) or "."
    if not _is_folder(place):
        if all_lessons:
            raise ArgumentError("notebook-all-file", path=place)
        return [(found[0], Path(place))]
    return [(one, Path(place, notebook_name(one, language()))) for one in found]


def _is_folder(place: str) -> bool:
    """Whether the name is that of a folder. ArgumentError if it is neither a folder nor a file name of a notebook.

    A folder that does not exist yet is recognised by a name without an ending, or by a / at its end.
    """
    from regard.course.lessons.markdown import ENDING
    from regard.files.output import extension_of

    path = Path(place)
    if place == "-":
        raise ArgumentError("file-is-dash")
    if path.is_dir() or place.endswith("/") or not path.suffix:
        return True
    extension_of(path, ENDING)
    return False


def _write(lesson: "Lesson", path: Path) -> tuple[bool, bool]:
    """Write a new file. Returns whether it was written, and whether the file now has the content of the lesson."""
    from regard.course.lessons.markdown import notebook_text
    from regard.files.output import write_error, write_new
    from regard.files.safe_open import read_file

    content = notebook_text(lesson, language()).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, path, 0) from error
    if write_new(path, content):
        return True, True
    try:
        return False, read_file(path, most=len(content)) == content
    except FileError:  # larger, or not readable
        return False, False
