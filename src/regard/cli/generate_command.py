"""`regard generate`: continue a prompt by sampling; the bundled poet writes Tang poems."""

import re
from typing import Annotated

import typer

from regard.cli.number_options import number_from_zero, whole_number
from regard.cli.streams import join_words, print_message, put, read_stdin, write_json
from regard.messages import say
from regard.printable import printable

MODEL = "poet"
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
    model: Annotated[
        str, typer.Option("--model", metavar="metavar-generate-model", help="help-generate-model")
    ] = MODEL,
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
