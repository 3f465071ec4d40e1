"""`regard see`: where a model looks. The model is the hand-built layer, and the screen says so."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import read_stdin, talk, write_json
from regard.errors import ArgumentError, TooLargeError, UnknownNameError
from regard.words import say

if TYPE_CHECKING:
    from regard.records import Record

MODEL = "handmade"
MOST_WORDS_IN_JSON = 1000
MOST_WORDS = 20_000
"""Time grows with the square of the words; so many take some ten seconds."""
"""Four heads of 1000 × 1000 weights are some 80 MB of text; more is a file's work."""


def see(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-text", show_default=False)
    ] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="metavar-head", help="help-head")] = None,
    width: Annotated[str | None, typer.Option("--width", metavar="metavar-number", help="help-width")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
    save: Annotated[Path | None, typer.Option("--save", metavar="metavar-file", help="help-save")] = None,
) -> None:
    columns = None if width is None else _columns(width)
    sentence = _sentence(text)

    from regard.language.handmade import HEADS, look
    from regard.text import split_words

    heads = _heads(head, HEADS)
    words = split_words(sentence)
    if not words:
        raise ArgumentError("cli-text-empty")
    if as_json and len(words) > MOST_WORDS_IN_JSON:
        raise TooLargeError("cli-json-too-large", found=len(words), most=MOST_WORDS_IN_JSON)
    if len(words) > MOST_WORDS:
        raise TooLargeError("cli-text-too-long", found=len(words), most=MOST_WORDS)
    talk(say("see-handmade"))
    trace = look(words).trace
    if save is not None:
        trace.save(save, qk=True)
        talk(say("saved", file=save))
    if as_json:
        records = [_as_json(record, heads, HEADS) for record in trace]
        write_json({"model": MODEL, "text": sentence, "output": None, "records": records})
        return
    # Without --head an overview, all heads side by side; with it, each in full under its own line.
    for number in heads:
        print(say("see-head", number=number, does=say(f"head-{HEADS[number]}")))
        if head is not None:
            trace.show(head=number, width=columns, file=sys.stdout)
            print()
    if head is None:
        print()
        trace.show(width=columns, file=sys.stdout)
        sys.stdout.flush()
        talk(say("see-more"))


def _sentence(given: list[str] | None) -> str:
    """The text: as given, from stdin, or ours. Words without quotes around them are one text."""
    if not given:
        return say("see-sentence")
    text = " ".join(given)
    return read_stdin() if text == "-" else text


def _heads(asked: str | None, names: tuple[str, ...]) -> list[int]:
    """The heads that were asked for: one by number or by name, or all."""
    if asked in (None, "all"):
        return list(range(len(names)))
    if asked in names:
        return [names.index(asked)]
    if asked.isdecimal() and int(asked) < len(names):
        return [int(asked)]
    heads = ", ".join(f"{number} ({name})" for number, name in enumerate(names))
    raise UnknownNameError("cli-head-unknown", asked=asked, heads=heads)


def _columns(width: str) -> int:
    from regard.views.terminal import NARROWEST

    if not width.isdecimal() or int(width) < NARROWEST:
        raise ArgumentError("cli-width-value", found=width, least=NARROWEST)
    return int(width)


def _as_json(record: "Record", heads: list[int], names: tuple[str, ...]) -> dict[str, Any]:
    weights = record.weights()[0]  # H T S
    assert record.queries is not None
    assert record.keys is not None
    return {
        "name": record.name,
        "kind": record.kind,
        "heads": [names[number] for number in heads],
        "queries": list(record.queries[0]),
        "keys": list(record.keys[0]),
        "weights": [weights[number].tolist() for number in heads],
    }
