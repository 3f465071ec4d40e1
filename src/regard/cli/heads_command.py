"""`regard heads`: run a model on a text and tell what its heads look at."""

import shlex
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.handmade_view import MOST_WORDS
from regard.cli.handmade_view import NAME as HANDMADE
from regard.cli.input_notes import load_reader, tell_of_reading
from regard.cli.number_options import whole_number
from regard.cli.see_command import MODEL, first_line
from regard.cli.see_command import TEXTS as SHORT
from regard.cli.streams import given_text, one_text, put, talk, write_json
from regard.errors import ArgumentError, TooLargeError
from regard.messages import say
from regard.printable import printable

if TYPE_CHECKING:
    from regard.trace import Trace
    from regard.trace.measures import Head, Heads

TEXTS = {
    "translation": "He likes tea and she likes tea, too.",
    "text": "床前明月光",
}
"""Where no text is given: one that says things twice, so that heads that look for such things are found; for a model
that reads no more, what `regard see` takes.
"""
SHOWN = 20


class Ran(NamedTuple):
    """A model on a text: what to say first, and the Trace."""

    text: str
    output: str | None
    line: str
    trace: "Trace"


def heads(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-text", show_default=False)
    ] = None,
    model: Annotated[str, typer.Option("--model", metavar="metavar-see-model", help="help-see-model")] = MODEL,
    find: Annotated[str | None, typer.Option("--find", metavar="metavar-pattern", help="help-find")] = None,
    count: Annotated[str | None, typer.Option("--count", metavar="metavar-number", help="help-heads-count")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.patterns import check_name

    most = SHOWN if count is None else whole_number("--count", count, least=1)
    if find is not None:
        check_name(find)
    ran = _run(model, given_text(text))
    found = ran.trace.heads()
    if as_json:
        write_json(_as_json(model, ran, found, find))
        return
    put(ran.line)
    put()
    put(found.text(find, most))
    ranked = list(found) if find is None else found.ranked(find)
    if model != HANDMADE and ranked:
        talk(_hint(model, one_text(text) if text else ran.text, ran.trace, ranked[0]))


def _run(model: str, given: str | None) -> Ran:
    if model == HANDMADE:
        from regard.language.handmade import look
        from regard.text import split_words

        sentence = say("see-sentence") if given is None else given
        words = split_words(sentence)
        if not words:
            raise ArgumentError("cli-text-empty")
        if len(words) > MOST_WORDS:
            raise TooLargeError("cli-text-too-long", found=len(words), most=MOST_WORDS)
        talk(say("see-handmade"))
        return Ran(sentence, None, " ".join(words), look(words).trace)

    from regard.language.seeing import look as look_at

    reader = load_reader(model)
    read = TEXTS[reader.settings.task] if given is None else given
    try:
        seen = look_at(reader, read)
    except TooLargeError:
        if given is not None:
            raise
        read = SHORT[reader.settings.task]
        seen = look_at(reader, read)
    tell_of_reading(reader, read, seen.output)
    return Ran(seen.text, seen.output, first_line(reader, seen), seen.trace)


def _hint(model: str, text: str, trace: "Trace", head: "Head") -> str:
    """How to draw the first head of the table on the same text: layers are counted within a kind."""
    names = trace.select(kind=head.kind).names
    which = {"kind": head.kind, "layer": names.index(head.name), "head": head.head}
    return say("heads-see", model=shlex.quote(model), text=_quoted(text), **which)


def _quoted(text: str) -> str:
    """A text as it is written after a command; - is stdin, and what else begins so would be an option."""
    quoted = shlex.quote(printable(text))
    return f"-- {quoted}" if text.startswith("-") and text != "-" else quoted


def _as_json(model: str, ran: Ran, found: "Heads", find: str | None) -> dict[str, Any]:
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
    return {"model": model, "text": ran.text, "output": ran.output, "heads": listed}
