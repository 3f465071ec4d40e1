"""`regard learn read`: shows a lesson in the terminal, or lists the lessons."""

import sys
from typing import Annotated

import typer

from regard.cli.streams import print_message, put, write_json
from regard.messages import language, say


def read(
    lesson: Annotated[
        str | None, typer.Argument(metavar="metavar-lesson", help="help-lesson", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    if lesson is None:
        _list(as_json)
        return
    from regard.course.lessons.index import lesson as find
    from regard.course.progress import ProgressFile

    found = find(lesson)
    title, text = getattr(found.title, language()), found.text()
    if as_json:
        write_json({"number": found.number, "name": found.name, "title": title, "text": text})
    elif sys.stdout.isatty():
        _show(text)
    else:  # files and pipes get plain Markdown
        put(text, end="")
    ProgressFile(report=print_message).change(lambda now: now.with_lesson(found.name))


def _show(text: str) -> None:
    """Draw the lesson, through the reader's pager if it is longer than the screen."""
    import click
    from rich.console import Console

    from regard.cli.learn.lesson_page import draw

    console = Console()
    with console.capture() as captured:
        draw(text, console)
    drawn = captured.get()
    if drawn.count("\n") < console.height:
        put(drawn, end="")
    else:
        click.echo_via_pager(drawn, color=not console.no_color)


def _list(as_json: bool) -> None:
    from regard.course.lessons.index import lessons

    rows = [{"number": one.number, "name": one.name, "title": getattr(one.title, language())} for one in lessons()]
    if as_json:
        write_json({"lessons": rows})
        return
    longest = max((len(str(row["name"])) for row in rows), default=0)
    for row in rows:
        put(f"{row['number']:2}  {row['name']:{longest}}  {row['title']}")
    sys.stdout.flush()
    print_message(say("read-more"))
