"""`regard translate`: a text, or the lines of stdin in batches as they come."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.entry import FILE
from regard.cli.input_notes import NOTHING_UNKNOWN, ReadLines, reading_as_json, tell_of_reading
from regard.cli.number_options import beam_count
from regard.cli.streams import one_text, put, stdin_batches, talk, tell_of_file, write_json
from regard.errors import ArgumentError
from regard.messages import say
from regard.printable import one_line

if TYPE_CHECKING:
    from regard.language import LanguageModel

MODEL = "translator"


def translate(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-translate-text", show_default=False)
    ] = None,
    beams: Annotated[str | None, typer.Option("--beams", metavar="metavar-number", help="help-beams")] = None,
    model: Annotated[str, typer.Option("--model", metavar="metavar-folder", help="help-translate-model")] = MODEL,
    as_json: Annotated[bool, typer.Option("--json", help="help-translate-json")] = False,
) -> None:
    if not text:
        raise ArgumentError("translate-no-text")
    asked = None if beams is None else beam_count(beams)

    from regard.language import load
    from regard.language.translating import translate_each

    translator = load(model)
    if text == ["-"]:
        if _translate_stdin(translator, asked, as_json):
            raise typer.Exit(FILE)
        return
    given = one_text(text)
    (output,) = translate_each(translator, [given], beams=asked)
    if isinstance(output, ArgumentError):
        raise output
    tell_of_reading(translator, given, output)
    if as_json:
        write_json(_as_json(translator, given, output))
    else:
        put(output)
    tell_of_file("translate", text)


def _translate_stdin(translator: "LanguageModel", beams: int | None, as_json: bool) -> int:
    """A line of output for each line of input; how many lines had none to give, and the reason is said."""
    from regard.language.input_text import EMPTY
    from regard.language.translating import translate_each

    readings = ReadLines(translator)
    number = bad = 0
    for batch in stdin_batches():
        for text, found in zip(batch, translate_each(translator, batch, beams=beams), strict=True):
            number += 1
            output: str | None = "" if isinstance(found, ArgumentError) else found
            if isinstance(found, ArgumentError) and found.key != EMPTY:
                bad, output = bad + 1, None
                talk(say("translate-line", number=number, reason=found))
            elif output:
                readings.add(number, text, output)
            if as_json:
                write_json(_as_json(translator, text, output))
            else:
                put(one_line(output or ""))
        sys.stdout.flush()
    readings.tell()
    return bad


def _as_json(translator: "LanguageModel", text: str, output: str | None) -> dict[str, Any]:
    about = {"model": translator.name, "text": text, "output": output}
    return about | (reading_as_json(translator, text, output) if output else NOTHING_UNKNOWN)
