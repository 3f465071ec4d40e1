"""`regard translate` and `regard generate`: text from a language model."""

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.entry import FILE
from regard.cli.input_notes import LineNotes, notes_as_json, print_notes
from regard.cli.number_options import beam_count, number_from_zero, whole_number
from regard.cli.streams import hint_at_file, join_words, print_message, put, read_stdin, stdin_batches, write_json
from regard.errors import ArgumentError
from regard.messages import say
from regard.printable import one_line, printable

if TYPE_CHECKING:
    from regard.language import LanguageModel
    from regard.language.translating import Translation


# --- translate ---------------------------------------------------------------------------------------------


TRANSLATOR = "translator"


def translate(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-text", help="help-translate-text", show_default=False)
    ] = None,
    beams: Annotated[str | None, typer.Option("--beams", metavar="metavar-number", help="help-beams")] = None,
    model: Annotated[str, typer.Option("--model", metavar="metavar-folder", help="help-translate-model")] = TRANSLATOR,
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


# --- generate ----------------------------------------------------------------------------------------------


POET = "poet"
MOST_SHOWN = 48
"""Characters of a prompt that a message quotes: a poem of eight short lines."""
_ENDS = re.compile(r"(?<=[。！？])(?=[^”’』」）\n])")


def generate(
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="metavar-prompt", help="help-prompt", show_default=False)
    ] = None,
    form: Annotated[str | None, typer.Option("--form", metavar="metavar-form", help="help-form")] = None,
    seed: Annotated[str, typer.Option("--seed", metavar="metavar-number", help="help-generate-seed")] = "0",
    temperature: Annotated[
        str | None, typer.Option("--temperature", metavar="metavar-value", help="help-temperature")
    ] = None,
    count: Annotated[str, typer.Option("--count", metavar="metavar-number", help="help-count")] = "1",
    model: Annotated[str, typer.Option("--model", metavar="metavar-generate-model", help="help-generate-model")] = POET,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    first, texts = whole_number("--seed", seed, least=0), whole_number("--count", count, least=1)
    temperature_value = None if temperature is None else number_from_zero("--temperature", temperature)
    given = join_words(prompt or [])
    if given == "-":
        given = read_stdin().strip()

    from regard.language.loading import load
    from regard.language.writing import with_punctuation

    writer = load(model)
    outputs = []
    for at in range(first, first + texts):
        output = writer.generate(given, form=form, temperature=temperature_value, seed=at)
        if as_json:
            outputs.append({"seed": at, "output": output})
        else:
            if at > first:
                put()
            put(in_lines(output), flush=True)
    if as_json:
        write_json({"model": writer.name, "prompt": given, "outputs": outputs})
    if written := with_punctuation(writer.settings, given, form):
        print_message(
            say("generate-no-marks", written=written if len(written) <= MOST_SHOWN else f"{written[:MOST_SHOWN]}…")
        )


def in_lines(text: str) -> str:
    """The text with a line for each sentence of Chinese.

    >>> print(in_lines("白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"))
    白日依山尽，黄河入海流。
    欲穷千里目，更上一层楼。
    """
    return _ENDS.sub("\n", printable(text))
