"""A Trace as a self-contained HTML page: no network, no server, no library.

Maps are stored as half floats, compressed, in base64: the size depends on the number of cells, not on the length of
the text. `page_payload` makes what a page shows, colours and scales included; `mount`, the script in `page_files`,
draws it into any element.
"""

import base64
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from math import isqrt, prod
from pathlib import Path
from typing import Any, get_args

import numpy as np

from regard.errors import ArgumentError
from regard.files.output import check_target, write_output
from regard.messages import LANGUAGES, Language, catalogue, say
from regard.messages.page import MESSAGES as PAGE_WORDS
from regard.records import Record, tokens_of
from regard.trace.token_merging import Merge
from regard.trace.trace import Range, ScaleName, Trace
from regard.views import caption
from regard.views.colours import RGB, nan_colour, needs_white_text, viridis
from regard.views.exact_part import ExactPart, position_range
from regard.views.labels import cut, printable_label, readable
from regard.views.opening_head import layer_titles, opening_head, source_and_target
from regard.views.picture import (
    Picture,
    check_scale,
    chosen_language,
    chosen_records,
    chosen_sample,
    first_share,
    merged_or_cut,
    picture,
    rescaled,
    share_of_no_key,
)
from regard.views.scales import Scale, chosen_scale

MOST_CELLS = 10 * 2**20
"""The most cells on one page, more than GPT-2's 144 heads have: at most 28 MB. Larger maps are pooled."""
_COARSEST = 16
_WIDEST_LABEL = 24
_SMALLEST = 2.0**-24
"""The smallest half float: a smaller weight must not become 0, which means masked."""
_COLOURS = 64
SCRIPTS = ("numbers.js", "map.js", "page.js")
"""The files of the ES module, in the order in which they are joined."""


def write_page(
    trace: Trace,
    path: str | os.PathLike[str],
    layer: int | str | None = None,
    sample: int = 0,
    lang: Language | None = None,
    scale: ScaleName | None = None,
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
) -> None:
    """Write the page of one sample, completely or not at all. Raises as `show`, and FileError."""
    target = Path(path)
    check_target(target)
    content = page(trace, layer, sample, lang=lang, scale=scale, merge=merge, rows=rows, cols=cols)
    write_output(target, content.encode())


def page(
    trace: Trace,
    layer: int | str | None = None,
    sample: int = 0,
    *,
    lang: Language | None = None,
    scale: ScaleName | None = None,
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
) -> str:
    """The page as text."""
    payload = page_payload(trace, layer, sample, lang=lang, scale=scale, merge=merge, rows=rows, cols=cols)
    return _fill_template(payload)


@dataclass(frozen=True, slots=True)
class PagePayload:
    """What `mount` in `page_files` draws: `mount(element, {...data, maps})`."""

    data: dict[str, Any]
    """Everything but the weights, as JSON values."""
    maps: bytes
    """The cells of all heads of all records, row by row, as half floats compressed by zlib."""


def page_payload(
    trace: Trace,
    layer: int | str | None = None,
    sample: int = 0,
    *,
    lang: Language | None = None,
    scale: ScaleName | None = None,
    merge: Merge | None = None,
    rows: Range = None,
    cols: Range = None,
) -> PagePayload:
    """The payload of one sample. Raises as `show`.

    lang, scale      at the start
    scales, words    the choices of scales; all texts by language
    open, texts      the indices of the record and head to open with; source and target text
    colours, nan     RGB and text colour of each level, and of NaN
    tables           boundaries, legend and threshold of each scale in use, see `_table`
    labels           lists of labels, to which records refer
    records          one entry for each record, see `_record_entry`
    """
    text_lang, chosen = chosen_language(lang), chosen_scale(scale)
    given = chosen_records(trace, layer)
    samples = [chosen_sample(record, sample) for record in given]
    read = [merged_or_cut(record, at, merge, rows, cols) for record, at in zip(given, samples, strict=True)]
    parts = [record for record, _ in read if isinstance(record, ExactPart)]
    _check_parts(parts, chosen)
    layers = _pooled_to_fit([[picture(record, head, at) for head in range(record.shape[1])] for record, at in read])
    scales = [each for each in get_args(ScaleName) if each != "renormalised" or _have_whole_rows(parts)]
    titles = {each: layer_titles(given, each) for each in LANGUAGES}
    labels: dict[tuple[str, ...], int] = {}
    tables: dict[Scale, int] = {}
    records = []
    for number, (heads, (record, _), before, at) in enumerate(zip(layers, read, given, samples, strict=True)):
        entry = _record_entry(record, heads, labels) | {"tables": _table_indices(heads, scales, tables)}
        called = {each: printable_label(titles[each][number]) for each in LANGUAGES}
        merging = None if record is before or parts else merge or "characters"
        records.append(entry | {"titles": called, "sample": at, "samples": before.shape[0], "merged": merging})
    data = {
        "lang": text_lang,
        "scale": chosen,
        "scales": scales,
        "open": opening_head(trace, given),
        "texts": trace.texts or source_and_target(given, samples[0]),
        "words": {each: _page_texts(each) for each in LANGUAGES},
        "colours": [_with_text_colour(viridis(step / (_COLOURS - 1)).rgb) for step in range(_COLOURS)],
        "nan": _with_text_colour(nan_colour().rgb),
        "tables": [_table(each) for each in tables],
        "labels": list(labels),
        "records": records,
    }
    return PagePayload(data, zlib.compress(b"".join(_half_floats(one.cells) for heads in layers for one in heads)))


def _check_parts(parts: list[ExactPart], scale: ScaleName) -> None:
    """Raise ArgumentError if the parts have more weights than a page holds, or do not support the scale."""
    heads = sum(part.shape[1] for part in parts)
    if sum(prod(part.shape[1:]) for part in parts) > MOST_CELLS:
        _, _, T, S = max((part.shape for part in parts), key=prod)
        raise ArgumentError("part-page", rows=T, cols=S, heads=heads, most=isqrt(MOST_CELLS // heads))
    for part in parts:
        check_scale(part, scale)


def _have_whole_rows(parts: list[ExactPart]) -> bool:
    return all(part.has_whole_rows for part in parts)


def _pooled_to_fit(rows: list[list[Picture]]) -> list[list[Picture]]:
    """The pictures, pooled until all of them fit on one page."""
    bins = max((max(one.cells.shape, default=0) for heads in rows for one in heads), default=0)
    while sum(one.cells.size for heads in rows for one in heads) > MOST_CELLS and bins > _COARSEST:
        bins = -(-bins // 2)
        rows = [[one.fitted(bins, bins) for one in heads] for heads in rows]
    return rows


def _record_entry(record: Record, heads: list[Picture], labels: dict[tuple[str, ...], int]) -> dict[str, Any]:
    """The description of a record without its weights. Adds its labels to `labels`, each list once."""
    T, S = record.shape[2:]
    R, C = heads[0].cells.shape if heads else (0, 0)
    high, wide = (heads[0].high, heads[0].wide) if heads else (1, 1)
    shares = [first_share(one) for one in heads]
    sides = ((record.query_tokens, high), (record.key_tokens, wide), (record.written, high))
    # Cells of several tokens are labelled by positions.
    queries, keys, written = (
        None if rows is None or size > 1 else _label_index(_tokens(rows, heads), labels) for rows, size in sides
    )
    wrote = None if written is None or record.written is None else tokens_of(record.written, _sample(heads))
    return {
        "name": printable_label(record.name),
        "kind": record.kind,
        "heads": len(heads),
        "T": T,
        "S": S,
        "part": _part(record),
        "R": R,
        "C": C,
        "high": high,
        "wide": wide,
        "queries": queries,
        "keys": keys,
        "written": written,
        "silent": [] if wrote is None else [at for at, token in enumerate(wrote) if not token],
        "rows": caption.rows_key([record], named=queries is not None),
        "prompt": record.prompt,
        "firstColumn": heads[0].first_column if heads else 0,
        "first": [None if share is None else round(share, 4) for share in shares],
        "noKey": [None if share is None else round(share, 4) for share in map(share_of_no_key, heads)],
    }


def _table_indices(
    heads: list[Picture], scales: list[ScaleName], tables: dict[Scale, int]
) -> dict[ScaleName, list[int]]:
    """For each scale, the index of each head's table. Adds new scales to `tables`, each once."""
    found = {name: [Scale.of([rescaled(one, name)]) for one in heads] for name in scales}
    return {name: [tables.setdefault(one, len(tables)) for one in each] for name, each in found.items()}


def _table(scale: Scale) -> dict[str, Any]:
    """A scale as the page uses it.

    boundaries   the lowest weight of each colour but the first
    legend       a text and the number of its colour for each entry
    threshold    the weight above which colours are logarithmic, as text; None without one
    """
    boundaries = [float(f"{scale.weight((step - 0.5) / (_COLOURS - 1)):.8g}") for step in range(1, _COLOURS)]
    legend = []
    for level in scale.swatches():
        weight = scale.weight(level)
        at_most = "≤ " if level == 0 and scale.name == "log" else ""
        legend.append((at_most + _two_digits(weight), int(level * (_COLOURS - 1) + 0.5)))
    threshold = None if scale.log_threshold is None else _two_digits(scale.log_threshold)
    return {"boundaries": boundaries, "legend": legend, "threshold": threshold}


def _two_digits(weight: float) -> str:
    """A weight with two significant digits.

    >>> [_two_digits(weight) for weight in (0.0, 1.0, 0.25, 0.0996, 0.000012, 1.2e-9)]
    ['0', '1.0', '0.25', '0.10', '0.000012', '1.2e-09']
    """
    if weight == 0:
        return "0"
    weight *= 1 + 1e-9  # a tie rounds up
    exponent = int(f"{weight:.1e}".partition("e")[2])
    return f"{weight:.{1 - exponent}f}" if -7 < exponent < 1 else f"{weight:.1e}"


def _with_text_colour(rgb: RGB) -> dict[str, Any]:
    return {"rgb": rgb, "text": "#fff" if needs_white_text(rgb) else "#000"}


def _part(record: Record) -> dict[str, Any] | None:
    """The position of a part and the size of the whole map."""
    if not isinstance(record, ExactPart):
        return None
    T, S = record.whole.shape[2:]
    entry = {"rows": position_range(record.rows), "cols": position_range(record.cols), "T": T, "S": S}
    return entry | {"top": record.rows.start, "left": record.cols.start}


def _tokens(rows: tuple[tuple[str, ...], ...], heads: list[Picture]) -> tuple[str, ...]:
    """The label of each token of one side."""
    tokens = tokens_of(rows, _sample(heads))
    return tuple(cut(printable_label(token), _WIDEST_LABEL) for token in readable(tokens))


def _sample(heads: list[Picture]) -> int:
    return heads[0].sample if heads else 0


def _label_index(found: tuple[str, ...], labels: dict[tuple[str, ...], int]) -> int:
    return labels.setdefault(found, len(labels))


def _half_floats(cells: np.ndarray) -> bytes:
    """The cells as half floats; weights that are not masked stay above 0."""
    halves = np.where(cells > 0, np.maximum(cells, _SMALLEST), cells).astype("<f2")
    return halves.tobytes()


def _page_texts(lang: Language) -> dict[str, str]:
    """All texts of the page, with their placeholders."""
    names = (key.removeprefix("page-") for key in PAGE_WORDS)
    return {name: getattr(catalogue()[f"page-{name}"], lang) for name in names}


def page_script() -> str:
    """The ES module that exports `mount`."""
    return "\n".join(_page_file(name) for name in SCRIPTS)


def page_style() -> str:
    """The style sheet of what `mount` draws. All rules apply inside of it only."""
    return _page_file("page.css")


def _page_file(name: str) -> str:
    return (files("regard.views") / "page_files" / name).read_text(encoding="utf-8")


def _fill_template(payload: PagePayload) -> str:
    """The template with its values. `<` in the data is escaped, so that no text can end its script."""
    lang = payload.data["lang"]
    data = json.dumps(payload.data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    values = {
        "{{lang}}": {"zh": "zh-CN", "en": "en"}[lang],
        "{{title}}": say("page-title", lang),
        "{{style}}": page_style(),
        "{{noscript}}": say("page-noscript", lang),
        "{{data}}": data,
        "{{maps}}": base64.b64encode(payload.maps).decode(),
        "{{script}}": page_script(),
    }
    return _insert(_page_file("page.html"), values.items())


def _insert(shell: str, values: Iterable[tuple[str, str]]) -> str:
    """Each value at its placeholder. Inserted values are not searched again: a token may be {{maps}}."""
    done = ""
    for place, value in values:
        before, shell = shell.split(place, 1)
        done += before + value
    return done + shell
