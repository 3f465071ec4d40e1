"""The terminal view: one head, the heads of a layer, or all layers, in true colour, 256 colours or none.

Here the terminal is asked what it can do and what is to be drawn is chosen; the drawing is done next door. Where
nothing is asked for and one head can be shown whole, it is: an overview of many layers has no room for tokens.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO, cast, get_args

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from regard.errors import ArgumentError
from regard.messages import Language, Listed, say
from regard.records import Record
from regard.trace.token_merging import Merge
from regard.trace.trace import Colour, Range, ScaleName, Trace
from regard.views import caption
from regard.views.colours import Depth, Ink, places_for
from regard.views.one_head import column_labels, lay_out, notes_on, row_lines
from regard.views.opening_head import opening_head, with_layer_named
from regard.views.picture import (
    Picture,
    as_read,
    chosen_head,
    chosen_heads,
    chosen_language,
    chosen_records,
    chosen_sample,
    picture,
)
from regard.views.scales import Scale, chosen_scale
from regard.views.thumbnails import heads_of, layers_by_heads, layers_of

NARROWEST = 24
ALL = "all"
"""As a layer: an overview of all of them, also where one head could be shown whole."""
# For files that cannot hold our signs: each has a neighbour that every encoding has.
_PLAIN = str.maketrans(
    {"░": ":", "▒": "+", "▓": "#", "█": "@", "·": ".", "∅": "o", "…": "~", "×": "x", "≥": ">", "╌": "-", "–": "-"}
    | {"␃": "$", "␂": "^", "◇": "*"}
)


def show(
    trace: Trace,
    layer: int | str | None = None,
    head: int | Sequence[int] | None = None,
    sample: int = 0,
    *,
    file: TextIO | None = None,
    width: int | None = None,
    color: Colour | None = None,
    lang: Language | None = None,
    scale: ScaleName | None = None,
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
) -> None:
    """Draw the trace on `file`, by default on the screen. Raises ArgumentError and NotKeptError."""
    spoken = chosen_language(lang)
    console = console_for(file, color)
    columns, depth = columns_of(console, width), depth_of(console)
    asked: dict[str, Any] = {"scale": chosen_scale(scale), "merge": merge, "rows": rows, "cols": cols}
    several = isinstance(head, Sequence | np.ndarray) and not isinstance(head, str)
    heads: list[Any] = list(head) if several else [head]  # type: ignore[arg-type]
    if not heads:
        chosen_heads(chosen_records(trace, None if layer == ALL else layer)[0], heads)  # which says what is wrong
    for at, each in enumerate(heads):
        lines = drawing(trace, layer, each, sample, width=columns, depth=depth, lang=spoken, **asked)
        write_lines(console, [Text(), *lines] if at else lines)


def drawing(
    trace: Trace,
    layer: int | str | None,
    head: int | None,
    sample: int,
    *,
    width: int,
    depth: Depth | None,
    lang: Language,
    scale: ScaleName = "auto",
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
) -> list[Text]:
    """The lines that `show` writes."""
    given = chosen_records(trace, None if layer == ALL else layer)
    read = [as_read(record, chosen_sample(record, sample), merge, rows, cols) for record in given]
    records, samples = [record for record, _ in read], [at for _, at in read]
    in_part = rows is not None or cols is not None  # which head is clear is told by whole texts only
    chosen = head is not None or layer == ALL or in_part
    whole = None if chosen else _one_for_all(records, opening_head(trace, given), samples, width, depth, scale)
    if whole is not None:
        count = sum(record.shape[1] for record in records)
        key = "screen-named" if trace.opening == (whole.record.name, whole.head) else "screen-telling"
        lines = _in_full(whole, width, depth, lang, [say(key, lang, count=count)])
    else:
        lines = _chosen(records, head, samples, width, depth, lang, scale)
    if records == given or in_part:
        return lines
    notes = [say(f"screen-merged-{merge or 'characters'}", lang)]
    if (count := given[0].shape[0]) > 1:  # a merged record holds one sample, and could not tell
        notes.append(say("screen-sample", lang, sample=chosen_sample(given[0], sample), count=count))
    return [*lines, *caption.dimmed(caption.flow(notes, width))]


def _one_for_all(
    records: list[Record],
    opening: tuple[int, int],
    samples: list[int],
    width: int,
    depth: Depth | None,
    scale: ScaleName,
) -> Picture | None:
    """Of several layers, the head to show, if every token of it fits."""
    if len(records) < 2 or not all(size for record in records for size in record.shape):
        return None
    at, head = opening
    whole = picture(records[at], head, samples[at], scale)
    return (
        whole if whole.cells.shape == records[at].shape[2:] == lay_out(whole, width, depth).drawn.cells.shape else None
    )


def _chosen(
    records: list[Record],
    head: int | None,
    samples: list[int],
    width: int,
    depth: Depth | None,
    lang: Language,
    scale: ScaleName,
) -> list[Text]:
    """What was asked for: all layers or one, all heads or one."""
    heads = [chosen_head(record, 0 if head is None else head) for record in records]
    H, T, S = records[0].shape[1:]
    if len(records) > 1:
        named = [with_layer_named(record, lang) for record in records]
        if head is None:
            return layers_by_heads(named, samples, width, depth, lang, scale)
        return layers_of(named, heads, samples, width, depth, lang, scale)
    if head is None and H > 1 and T and S:
        return heads_of(records[0], samples[0], width, depth, lang, scale)
    return _in_full(picture(records[0], heads[0], samples[0], scale), width, depth, lang)


def _in_full(whole: Picture, width: int, depth: Depth | None, lang: Language, notes: Iterable[str] = ()) -> list[Text]:
    """One head with its labels, none of the lines wider than `width`."""
    record = whole.record
    pieces = caption.about([record], whole.sample, lang)
    if record.shape[1] > 1:
        pieces.insert(1, say("screen-head-of", lang, head=whole.head, count=record.shape[1]))
    else:
        pieces[1:1] = caption.head_of(record, whole.head, lang)
    lines = [*caption.title(caption.name_of(record), pieces, width), Text()]
    if not whole.cells.size:
        T, S = record.shape[-2:]
        return [*lines, *caption.flow([say("screen-nothing", lang, T=T, S=S)], width)]
    layout = lay_out(whole, width, depth)
    places = 0
    if layout.mode == "numbers":
        cells = layout.drawn.cells
        places = places_for(float(cells.max(where=cells == cells, initial=0.0)))
    ink = Ink(depth, Scale.of([layout.drawn]), places)
    lines += [*column_labels(layout), *row_lines(layout, ink), Text(), *ink.legend(width)]
    told = []
    if ink.places:
        told = [say("screen-thousandths" if ink.places == 3 else "screen-times", lang, factor=10**ink.places)]
    return lines + caption.dimmed(caption.flow([*told, *notes_on(whole, layout, lang), *notes], width))


class _Console(Console):
    """A console whose reader may leave, as `head` does: that is for the command to answer, not for rich to exit on."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console_for(file: TextIO | None, color: Colour | None) -> Console:
    """A console that knows its colours: those asked for, else the terminal's, else none."""
    elsewhere = False if file is not None else None  # a notebook's own display is for its own output
    if color is None:
        return _Console(file=file or sys.stdout, force_jupyter=elsewhere, highlight=False)
    if color not in get_args(Colour):
        raise ArgumentError("option-unknown", option="color", asked=color, choices=Listed(get_args(Colour)))
    system = None if color == "none" else color
    return _Console(
        file=file or sys.stdout,
        color_system=system,
        force_terminal=color != "none",
        no_color=color == "none",
        force_jupyter=elsewhere,
        highlight=False,
    )


def columns_of(console: Console, width: int | None = None) -> int:
    """The columns that were asked for, else the console's. ArgumentError where nothing could be drawn in so few."""
    if width is not None and (not isinstance(width, int) or width < NARROWEST):
        raise ArgumentError("width-narrow", asked=width, least=NARROWEST)
    return width or max(NARROWEST, console.width)


def depth_of(console: Console) -> Depth | None:
    """The colours, if they are enough for a scale and the encoding has the blocks to fill with them."""
    if console.no_color or not holds("▀▄", console.encoding):
        return None
    return cast(Depth, console.color_system) if console.color_system in get_args(Depth) else None


def holds(text: str, encoding: str) -> bool:
    """Whether a file of that encoding can hold the text.

    >>> holds("█", "utf-8"), holds("█", "ascii")
    (True, False)
    """
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_lines(console: Console, lines: list[Text]) -> None:
    """Write the lines in signs that the encoding has; where nothing is coloured, without spaces at their ends."""
    if depth_of(console) is None:
        for line in lines:
            line.rstrip()
    if not console.encoding.lower().startswith("utf"):
        lines = [_in_encoding(line, console.encoding) for line in lines]
    for line in lines:
        console.print(line, soft_wrap=True)


def _in_encoding(line: Text, encoding: str) -> Text:
    """The line with what the encoding lacks replaced by as many columns of something plainer."""
    signs = []
    for sign in line.plain:
        plain = sign if holds(sign, encoding) else sign.translate(_PLAIN)
        signs.append(plain if holds(plain, encoding) else "?" * cell_len(sign))
    return Text("".join(signs))
