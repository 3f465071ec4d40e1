"""`regard translate`: translate a text, or the lines of stdin in batches as they arrive."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.entry import FILE
from regard.cli.input_notes import LineNotes, notes_as_json, print_notes
from regard.cli.number_options import beam_count
from regard.cli.streams import hint_at_file, join_words, print_message, put, stdin_batches, write_json
from regard.errors import ArgumentError
from regard.messages import say
from regard.printable import one_line

if TYPE_CHECKING:
    from regard.language import LanguageModel
    from regard.language.translating import Translation

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
    width = None if beams is None else beam_count(beams)

    from regard.language.loading import load
    from regard.language.translating import translate_each

    translator = load(model)
    if text == ["-"]:
        if _translate_stdin(translator, width, as_json):
            raise typer.Exit(FILE)
        return
    given = join_words(text)
    (found,) = translate_each(translator, [given], beams=width)
    if isinstance(found, ArgumentError):
        raise found
    print_notes(translator, found.notes)
    if as_json:
        write_json(_as_json(translator, given, found))
    else:
        put(found.output)
    hint_at_file("translate", text)


def _translate_stdin(translator: "LanguageModel", beams: int | None, as_json: bool) -> int:
    """Print a line of output for each line of stdin; return the number of lines with an error."""
    from regard.language.input_text import EMPTY
    from regard.language.translating import Translation, translate_each

    notes = LineNotes(translator)
    number = bad = 0
    for batch in stdin_batches():
        for text, found in zip(batch, translate_each(translator, batch, beams=beams), strict=True):
            number += 1
            translation: Translation | None = None
            if not isinstance(found, ArgumentError):
                translation = found
                notes.add(number, found.notes if found.output else ())
            elif found.key == EMPTY:
                translation = Translation("")
            else:
                bad += 1
                print_message(say("translate-line", number=number, reason=found))
            if as_json:
                write_json(_as_json(translator, text, translation))
            else:
                put(one_line(translation.output if translation else ""))
        sys.stdout.flush()
    notes.print_all()
    return bad


def _as_json(translator: "LanguageModel", text: str, translation: "Translation | None") -> dict[str, Any]:
    """A line of --json; `translation` is None for a line with an error."""
    about = {"model": translator.name, "text": text, "output": None if translation is None else translation.output}
    return about | notes_as_json(translation.notes if translation and translation.output else ())
