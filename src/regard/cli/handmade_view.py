"""`regard see --model handmade`: the layer with weights set by hand, whose heads have names."""

import sys
from typing import TYPE_CHECKING

from regard.cli.head_choice import record_as_json, save_files, save_svg
from regard.cli.number_options import is_count
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError, TooLargeError, UnknownNameError
from regard.messages import Listed, say

if TYPE_CHECKING:
    from pathlib import Path

NAME = "handmade"
MOST_WORDS = 20_000
"""Time is quadratic in the number of words; this number takes about ten seconds."""
MOST_WORDS_IN_JSON = 1000
"""Four heads of 1000 × 1000 weights are about 80 MB of text; use --save for more."""


def see_handmade(
    text: str,
    *,
    head: str | None,
    columns: int | None,
    as_json: bool,
    save: "Path | None",
    html: "Path | None",
    png: "Path | None",
    svg: "Path | None" = None,
) -> None:
    """Run the layer on the words of the text, and show or save the attention of each head."""
    from regard.language.handmade import HEADS, run_layer
    from regard.text import split_words

    heads = _heads(head, HEADS)
    words = split_words(text)
    if not words:
        raise ArgumentError("cli-text-empty")
    if as_json and len(words) > MOST_WORDS_IN_JSON:
        raise TooLargeError("cli-json-too-large", found=len(words), most=MOST_WORDS_IN_JSON)
    if len(words) > MOST_WORDS:
        raise TooLargeError("cli-text-too-long", found=len(words), most=MOST_WORDS)
    if svg is not None and len(heads) != 1:
        raise ArgumentError("see-svg-one")
    print_message(say("see-handmade"))
    trace = run_layer(words).trace
    save_files(trace, save, html)
    if png is not None:
        from regard.views.plots import save_plot

        save_plot(trace, png, head=heads[0] if len(heads) == 1 else None)
        print_message(say("saved", file=png))
    if svg is not None:
        save_svg(trace[0], heads[0], svg)
    if as_json:
        names = [HEADS[number] for number in heads]
        records = [record_as_json(record, 0, names, record.weights()[0, heads]) for record in trace]
        write_json({"model": NAME, "text": text, "output": None, "records": records})
    if as_json or png is not None or svg is not None:
        return
    # Without --head an overview, all heads side by side; with it, each in full under its own line.
    for number in heads:
        if head is not None and number != heads[0]:
            put()
        put(say("see-head", number=number, does=say(f"head-{HEADS[number]}")))
        if head is not None:
            trace.show(head=number, width=columns, file=sys.stdout)
    if head is None:
        put()
        trace.show(width=columns, file=sys.stdout)
        sys.stdout.flush()
        print_message(say("see-more"))


def _heads(head: str | None, names: tuple[str, ...]) -> list[int]:
    """The requested heads: one by number or name, or all."""
    if head in (None, "all"):
        return list(range(len(names)))
    if head in names:
        return [names.index(head)]
    if is_count(head) and int(head) < len(names):
        return [int(head)]
    heads = Listed(f"{number} ({name})" for number, name in enumerate(names))
    raise UnknownNameError("cli-head-unknown", asked=head, heads=heads)
