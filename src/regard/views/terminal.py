"""The terminal view: one head, the heads of a layer, or all layers, with true colour, 256 colours or none.

Detects what the terminal supports and selects what to draw; `terminal_heatmap` and `thumbnails` draw it. By default one
head is shown if all of its tokens fit: an overview of many layers has no space for tokens.
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
from regard.trace.pooling import Merge
from regard.trace.trace import Colour, Range, ScaleName, Trace
from regard.views import caption
from regard.views.caption import opening_head, with_layer_label
from regard.views.colours import CellPainter, Depth, Scale, chosen_scale, places_for
from regard.views.picture import (
    Picture,
    chosen_head,
    chosen_heads,
    chosen_language,
    chosen_records,
    chosen_sample,
    merged_or_cut,
    picture,
)
from regard.views.terminal_heatmap import choose_layout, column_labels, notes_on, row_lines
from regard.views.thumbnails import heads_of, layers_by_heads, layers_of

NARROWEST = 24
ALL = "all"
"""As `layer`: an overview of all layers, also if one head would fit."""
# ASCII replacements for encodings without our characters.
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
    text_lang = chosen_language(lang)
    console = console_for(file, color)
    columns, depth = columns_of(console, width), depth_of(console)
    options: dict[str, Any] = {"scale": chosen_scale(scale), "merge": merge, "rows": rows, "cols": cols}
    several = isinstance(head, Sequence | np.ndarray) and not isinstance(head, str)
    heads: list[Any] = list(head) if several else [head]  # type: ignore[arg-type]
    if not heads:
        chosen_heads(chosen_records(trace, None if layer == ALL else layer)[0], heads)  # raises ArgumentError
    lines: list[Text] = []
    for at, each in enumerate(heads):
        drawn = trace_lines(trace, layer, each, sample, width=columns, depth=depth, lang=text_lang, **options)
        lines += [Text(), *drawn] if at else drawn
    write_lines(console, lines)


def trace_lines(
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
    read = [merged_or_cut(record, chosen_sample(record, sample), merge, rows, cols) for record in given]
    records, samples = [record for record, _ in read], [at for _, at in read]
    in_part = rows is not None or cols is not None  # only whole texts have a clearest head
    chosen = head is not None or layer == ALL or in_part
    whole = None if chosen else _opening_picture(records, opening_head(trace, given), samples, width, depth, scale)
    if whole is not None:
        count = sum(record.shape[1] for record in records)
        key = "screen-named" if trace.opening == (whole.record.name, whole.head) else "screen-clearest"
        lines = _head_lines(whole, width, depth, lang, [say(key, lang, count=count)])
    else:
        lines = _chosen_lines(records, head, samples, width, depth, lang, scale)
    if records == given or in_part:
        return lines
    notes = [say(f"screen-merged-{merge or 'characters'}", lang)]
    if (count := given[0].shape[0]) > 1:  # a merged record holds one sample and no longer knows the number of samples
        notes.append(say("screen-sample", lang, sample=chosen_sample(given[0], sample), count=count))
    return [*lines, *caption.dimmed(caption.wrap_pieces(notes, width))]


def _opening_picture(
    records: list[Record],
    opening: tuple[int, int],
    samples: list[int],
    width: int,
    depth: Depth | None,
    scale: ScaleName,
) -> Picture | None:
    """The opening head of several layers, if all of its tokens fit."""
    if len(records) < 2 or not all(size for record in records for size in record.shape):
        return None
    at, head = opening
    whole = picture(records[at], head, samples[at], scale)
    return (
        whole
        if whole.cells.shape == records[at].shape[2:] == choose_layout(whole, width, depth).drawn.cells.shape
        else None
    )


def _chosen_lines(
    records: list[Record],
    head: int | None,
    samples: list[int],
    width: int,
    depth: Depth | None,
    lang: Language,
    scale: ScaleName,
) -> list[Text]:
    """The lines for the requested layers and heads: all or one."""
    heads = [chosen_head(record, 0 if head is None else head) for record in records]
    H, T, S = records[0].shape[1:]
    if len(records) > 1:
        named = [with_layer_label(record, lang) for record in records]
        if head is None:
            return layers_by_heads(named, samples, width, depth, lang, scale)
        return layers_of(named, heads, samples, width, depth, lang, scale)
    if head is None and H > 1 and T and S:
        return heads_of(records[0], samples[0], width, depth, lang, scale)
    return _head_lines(picture(records[0], heads[0], samples[0], scale), width, depth, lang)


def _head_lines(
    whole: Picture, width: int, depth: Depth | None, lang: Language, notes: Iterable[str] = ()
) -> list[Text]:
    """One head with its labels, no line wider than `width`."""
    record = whole.record
    pieces = caption.about([record], whole.sample, lang)
    if record.shape[1] > 1:
        pieces.insert(1, say("screen-head-of", lang, head=whole.head, count=record.shape[1]))
    else:
        pieces[1:1] = caption.head_of(record, whole.head, lang)
    lines = [*caption.title(caption.name_of(record), pieces, width), Text()]
    if not whole.cells.size:
        T, S = record.shape[-2:]
        return [*lines, *caption.wrap_pieces([say("screen-nothing", lang, T=T, S=S)], width)]
    layout = choose_layout(whole, width, depth)
    places = 0
    if layout.mode == "numbers":
        cells = layout.drawn.cells
        places = places_for(float(cells.max(where=cells == cells, initial=0.0)))
    painter = CellPainter(depth, Scale.of([layout.drawn]), places)
    lines += [*column_labels(layout), *row_lines(layout, painter), Text(), *painter.legend(width)]
    units = []
    if painter.places:
        units = [say("screen-thousandths" if painter.places == 3 else "screen-times", lang, factor=10**painter.places)]
    return lines + caption.dimmed(caption.wrap_pieces([*units, *notes_on(whole, layout, lang), *notes], width))


class _Console(Console):
    """A console that raises BrokenPipeError when the reader closes the pipe; rich alone would exit."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console_for(file: TextIO | None, color: Colour | None) -> Console:
    """A console with the requested colours, else the terminal's, else none."""
    elsewhere = False if file is not None else None  # with `file`, never the display of a notebook
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
    """The requested width, else that of the console. Raises ArgumentError if it is too small."""
    if width is not None and (not isinstance(width, int) or width < NARROWEST):
        raise ArgumentError("width-narrow", asked=width, least=NARROWEST)
    return width or max(NARROWEST, console.width)


def depth_of(console: Console) -> Depth | None:
    """The colour depth; None if the colours are too few for a scale or the encoding lacks block characters."""
    if console.no_color or not can_encode("▀▄", console.encoding):
        return None
    return cast(Depth, console.color_system) if console.color_system in get_args(Depth) else None


def can_encode(text: str, encoding: str) -> bool:
    """Whether the encoding has all characters of the text.

    >>> can_encode("█", "utf-8"), can_encode("█", "ascii")
    (True, False)
    """
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_lines(console: Console, lines: list[Text]) -> None:
    """Write the lines in characters of the encoding; without colour, trailing spaces are removed."""
    if depth_of(console) is None:
        for line in lines:
            line.rstrip()
    if not console.encoding.lower().startswith("utf"):
        lines = [_in_encoding(line, console.encoding) for line in lines]
    with console:  # in a notebook every print outside it would be an output of its own
        for line in lines:
            console.print(line, soft_wrap=True)


def _in_encoding(line: Text, encoding: str) -> Text:
    """The line with characters that the encoding lacks replaced by plain ones of the same width."""
    signs = []
    for sign in line.plain:
        plain = sign if can_encode(sign, encoding) else sign.translate(_PLAIN)
        signs.append(plain if can_encode(plain, encoding) else "?" * cell_len(sign))
    return Text("".join(signs))
