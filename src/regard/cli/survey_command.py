"""`regard survey`: what every head of a model does over the texts of a file, with its progress"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.number_options import whole_number
from regard.cli.streams import put, write_json
from regard.errors import ArgumentError
from regard.messages import say

if TYPE_CHECKING:
    from regard.surveys.running import Progress

MOST_SHOWN = 20


def survey(
    model: Annotated[str | None, typer.Option("--model", metavar="metavar-model", help="help-survey-model")] = None,
    texts: Annotated[Path | None, typer.Option("--texts", metavar="metavar-file", help="help-survey-texts")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="metavar-folder", help="help-survey-out")] = None,
    queries: Annotated[
        str | None, typer.Option("--queries", metavar="metavar-number", help="help-survey-queries")
    ] = None,
    count: Annotated[str | None, typer.Option("--count", metavar="metavar-number", help="help-heads-count")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    for name, value in (("--model", model), ("--texts", texts), ("--out", out)):
        if value is None:
            raise ArgumentError("survey-needs", name=name)
    most = MOST_SHOWN if count is None else whole_number("--count", count, least=1)
    options = {} if queries is None else {"queries": whole_number("--queries", queries, least=1)}

    from regard.surveys import survey as run

    is_first = os.environ.get("RANK", "0") == "0"
    with _progress_bar(is_first) as progress:
        found = run(model, texts, out=out, progress=progress, **options)
    if not is_first:
        return
    if as_json:
        write_json({name: value for name, value in found.as_json().items() if name != "sums"})
    else:
        put(found.text(most=most))


@contextmanager
def _progress_bar(is_first: bool) -> "Iterator[Progress | None]":
    """The number of texts and tokens while it runs, on stderr; nothing off a terminal."""
    if not is_first or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(say("survey-progress", texts=0, tokens=0))

        def show(texts: int, tokens: int) -> None:
            bar.update(task, description=say("survey-progress", texts=texts, tokens=tokens))

        yield show
