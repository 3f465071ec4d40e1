"""`regard heads` and `regard survey`: the pattern that each head follows, in a text or over a corpus."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.arguments import HANDMADE, BackendOption, load_model, see_text, whole_number
from regard.cli.see_command import MODEL, MOST_WORDS, first_line
from regard.cli.see_command import TEXTS as SHORT_TEXTS
from regard.cli.streams import given_text, join_words, print_message, put, write_json
from regard.errors import ArgumentError, TooLargeError
from regard.messages import printable, say

if TYPE_CHECKING:
    from regard.surveys.running import Progress
    from regard.trace import Trace
    from regard.trace.measures import Head, Heads

TEXTS = {
    "translation": "Tom likes tea, and Mary likes tea, too.",
    "text": "床前明月光",
    "encoding": "The cat sat on the mat because the cat was tired.",
}
"""The default text by task: with repeated words, so that heads that attend to repetitions are found. If it is too long
for the model, that of `regard see`.
"""
MOST_SHOWN = 20


class ModelRun(NamedTuple):
    """A model run on a text: the first line to print, and the Trace."""

    text: str
    output: str | None
    line: str
    trace: "Trace"


def heads(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-text", show_default=False)
    ] = None,
    model: Annotated[str, typer.Option("--model", metavar="metavar-see-model", help="help-see-model")] = MODEL,
    backend: BackendOption = None,
    find: Annotated[str | None, typer.Option("--find", metavar="metavar-pattern", help="help-find")] = None,
    survey: Annotated[Path | None, typer.Option("--survey", metavar="metavar-folder", help="help-heads-survey")] = None,
    count: Annotated[str | None, typer.Option("--count", metavar="metavar-number", help="help-heads-count")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.patterns import check_name

    most = MOST_SHOWN if count is None else whole_number("--count", count, least=1)
    if find is not None:
        check_name(find)
    if survey is not None:
        _show_survey(survey, text, find, most, as_json)
        return
    result = _run(model, given_text(text), backend)
    found = result.trace.heads()
    if as_json:
        write_json(_as_json(model, result, found, find))
        return
    put(result.line)
    put()
    put(found.text(find, most))
    ranked = list(found) if find is None else found.ranked(find)
    if model != HANDMADE and ranked:
        listed = find is not None or ranked[0].best is not None
        print_message(_hint(model, join_words(text) if text else result.text, result.trace, ranked[0], listed))


def _show_survey(folder: Path, text: list[str] | None, find: str | None, most: int, as_json: bool) -> None:
    """The heads that `regard survey` measured."""
    from regard.surveys import read_survey

    if text:
        raise ArgumentError("heads-survey-text")
    found = read_survey(folder)
    if as_json:
        heads = list(found) if find is None else found.ranked(find)
        about = {"model": found.model, "texts": found.texts, "tokens": found.tokens, "skipped": found.skipped}
        write_json({**about, "heads": [head.as_json() for head in heads]})
    else:
        put(found.text(find, most))


def _run(model: str, given: str | None, backend: str | None = None) -> ModelRun:
    if model == HANDMADE:
        from regard.language.handmade import run_layer
        from regard.text import split_words

        sentence = say("see-sentence") if given is None else given
        words = split_words(sentence)
        if not words:
            raise ArgumentError("cli-text-empty")
        if len(words) > MOST_WORDS:
            raise TooLargeError("cli-text-too-long", found=len(words), most=MOST_WORDS)
        print_message(say("see-handmade"))
        return ModelRun(sentence, None, " ".join(words), run_layer(words).trace)
    reader = load_model(model, backend)
    try:
        seen = see_text(reader, TEXTS[reader.settings.task] if given is None else given)
    except TooLargeError:
        if given is not None:
            raise
        seen = see_text(reader, SHORT_TEXTS[reader.settings.task])
    return ModelRun(seen.text, seen.output, first_line(reader, seen), seen.trace)


def _hint(model: str, text: str, trace: "Trace", head: "Head", listed: bool) -> str:
    """A hint with the command that draws the first head of the table, or a head where the table is empty.

    Layers are counted within a kind.
    """
    names = trace.select(kind=head.kind).names
    which = {"kind": head.kind, "layer": names.index(head.name), "head": head.head}
    key = "heads-see" if listed else "heads-see-one"
    return say(key, model=shlex.quote(model), text=_quoted(text), **which)


def _quoted(text: str) -> str:
    """A text quoted for the shell, after -- if it would be read as an option; - is stdin."""
    quoted = shlex.quote(printable(text))
    return f"-- {quoted}" if text.startswith("-") and text != "-" else quoted


def _as_json(model: str, result: ModelRun, found: "Heads", find: str | None) -> dict[str, Any]:
    """Every head in the order of the table, with every score."""
    ranked = list(found) if find is None else found.ranked(find)
    listed = [
        {
            "name": head.name,
            "kind": head.kind,
            "head": head.head,
            "looks_at": best.pattern if (best := head.best) else None,
            "scores": {name: {"score": score.value, "queries": score.queries} for name, score in head.scores.items()},
        }
        for head in ranked
    ]
    return {"model": model, "text": result.text, "output": result.output, "heads": listed}


# --- survey ------------------------------------------------------------------------------------------------


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
