"""A Trace as one page of HTML that needs nothing else: no network, no server, no library.

Maps travel as half floats, packed and in base64: the size depends on the number of cells, never on the length of a
text. What the page does with them is written in `page_files`; here is only what goes into it.
"""

import base64
import json
import os
import zlib
from collections.abc import Iterable
from importlib.resources import files
from math import isqrt, prod
from pathlib import Path
from typing import Any, get_args

import numpy as np

from regard.errors import ArgumentError
from regard.files.output import check_place, write_output
from regard.messages import LANGUAGES, Language, catalogue, say
from regard.messages.page import WORDS as PAGE_WORDS
from regard.records import Record, tokens_of
from regard.trace.token_merging import Merge
from regard.trace.trace import Range, ScaleName, Trace
from regard.views import caption
from regard.views.colours import paint
from regard.views.exact_part import Part, places
from regard.views.labels import cut, readable, visible
from regard.views.opening_head import both_texts, layer_titles, opening_head
from regard.views.picture import (
    Picture,
    as_read,
    check_scale,
    chosen_language,
    chosen_records,
    chosen_sample,
    first_share,
    picture,
    rescaled,
    share_of_no_key,
)
from regard.views.scales import DECADES, Scale, chosen_scale

MOST_CELLS = 10 * 2**20
"""Cells on one page, more than GPT-2's 144 heads have: 28 MB at most. A page of more is drawn in larger cells."""
_COARSEST = 16
_WIDEST_LABEL = 24
_SMALLEST = 2.0**-24
"""The smallest half float: a weight below it must not look hidden."""
_COLOURS = 64
SCRIPTS = ("numbers.js", "map.js", "page.js")


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
    """Write the page of one sample, whole or not at all. Raises as `show` does, and FileError."""
    target = Path(path)
    check_place(target)
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
    spoken, how = chosen_language(lang), chosen_scale(scale)
    given = chosen_records(trace, layer)
    samples = [chosen_sample(record, sample) for record in given]
    read = [as_read(record, at, merge, rows, cols) for record, at in zip(given, samples, strict=True)]
    parts = [record for record, _ in read if isinstance(record, Part)]
    _check_parts(parts, how)
    layers = _fitted([[picture(record, head, at) for head in range(record.shape[1])] for record, at in read])
    scales = [each for each in get_args(ScaleName) if each != "renormalised" or _have_whole_rows(parts)]
    titles = {each: layer_titles(given, each) for each in LANGUAGES}
    labels: dict[tuple[str, ...], int] = {}
    records = []
    for number, (heads, (record, _), before, at) in enumerate(zip(layers, read, given, samples, strict=True)):
        described = _described(record, heads, labels) | {"ceilings": _ceilings(heads, scales)}
        called = {each: visible(titles[each][number]) for each in LANGUAGES}
        merging = None if record is before or parts else merge or "characters"
        records.append(described | {"titles": called, "sample": at, "samples": before.shape[0], "merged": merging})
    tree = {
        "lang": spoken,
        "scale": how,
        "scales": scales,
        "open": opening_head(trace, given),
        "texts": trace.texts or both_texts(given, samples[0]),
        "words": {each: _words(each) for each in LANGUAGES},
        "colours": [paint(step / (_COLOURS - 1)).rgb for step in range(_COLOURS)],
        "decades": DECADES,
        "labels": list(labels),
        "records": records,
    }
    maps = zlib.compress(b"".join(_halves(one.cells) for heads in layers for one in heads))
    return _filled(spoken, tree, base64.b64encode(maps).decode())


def _check_parts(parts: list[Part], scale: ScaleName) -> None:
    """Raise ArgumentError where they have more weights than a page holds, or the scale is not for them."""
    heads = sum(part.shape[1] for part in parts)
    if sum(prod(part.shape[1:]) for part in parts) > MOST_CELLS:
        _, _, T, S = max((part.shape for part in parts), key=prod)
        raise ArgumentError("part-page", rows=T, cols=S, heads=heads, most=isqrt(MOST_CELLS // heads))
    for part in parts:
        check_scale(part, scale)


def _have_whole_rows(parts: list[Part]) -> bool:
    return all(part.has_whole_rows for part in parts)


def _fitted(rows: list[list[Picture]]) -> list[list[Picture]]:
    """The pictures in cells so large that all of them fit on one page."""
    bins = max((max(one.cells.shape, default=0) for heads in rows for one in heads), default=0)
    while sum(one.cells.size for heads in rows for one in heads) > MOST_CELLS and bins > _COARSEST:
        bins = -(-bins // 2)
        rows = [[one.fitted(bins, bins) for one in heads] for heads in rows]
    return rows


def _described(record: Record, heads: list[Picture], labels: dict[tuple[str, ...], int]) -> dict[str, Any]:
    """What a record is, without its numbers; its labels are put among `labels`, each list of them once."""
    T, S = record.shape[2:]
    R, C = heads[0].cells.shape if heads else (0, 0)
    high, wide = (heads[0].high, heads[0].wide) if heads else (1, 1)
    shares = [first_share(one) for one in heads]
    sides = ((record.queries, high), (record.keys, wide), (record.written, high))
    # A cell of several tokens is named by their positions.
    queries, keys, written = (
        None if rows is None or size > 1 else _listed(_tokens(rows, heads), labels) for rows, size in sides
    )
    wrote = None if written is None or record.written is None else tokens_of(record.written, _sample(heads))
    return {
        "name": visible(record.name),
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


def _ceilings(heads: list[Picture], scales: list[ScaleName]) -> dict[str, list[list[float | None]]]:
    """Of each scale and head the ceiling, the bend, and how light the weight at the bend is."""
    found = {name: [Scale.of([rescaled(one, name)]) for one in heads] for name in scales}
    return {name: [[one.ceiling, one.bend, round(one.bend_level, 6)] for one in each] for name, each in found.items()}


def _part(record: Record) -> dict[str, Any] | None:
    """Where a part stands, and of how much it is one."""
    if not isinstance(record, Part):
        return None
    T, S = record.whole.shape[2:]
    told = {"rows": places(record.rows), "cols": places(record.cols), "T": T, "S": S}
    return told | {"top": record.rows.start, "left": record.cols.start}


def _tokens(rows: tuple[tuple[str, ...], ...], heads: list[Picture]) -> tuple[str, ...]:
    """A label for each token of one side."""
    tokens = tokens_of(rows, _sample(heads))
    return tuple(cut(visible(token), _WIDEST_LABEL) for token in readable(tokens))


def _sample(heads: list[Picture]) -> int:
    return heads[0].sample if heads else 0


def _listed(found: tuple[str, ...], labels: dict[tuple[str, ...], int]) -> int:
    return labels.setdefault(found, len(labels))


def _halves(cells: np.ndarray) -> bytes:
    """The cells as half floats; what is not hidden stays above 0."""
    halves = np.where(cells > 0, np.maximum(cells, _SMALLEST), cells).astype("<f2")
    return halves.tobytes()


def _words(lang: Language) -> dict[str, str]:
    """All sentences of the page, their values not yet filled in."""
    names = (key.removeprefix("page-") for key in PAGE_WORDS)
    return {name: getattr(catalogue()[f"page-{name}"], lang) for name in names}


def _filled(lang: Language, tree: dict[str, Any], maps: str) -> str:
    """The template with everything in its place. No text can end the script that holds it: `<` is written as code."""
    parts = files("regard.views") / "page_files"
    shell, style, *scripts = (
        (parts / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", *SCRIPTS)
    )
    data = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    inserted = {
        "{{lang}}": {"zh": "zh-CN", "en": "en"}[lang],
        "{{title}}": say("page-title", lang),
        "{{style}}": style,
        "{{noscript}}": say("page-noscript", lang),
        "{{script}}": "\n".join(scripts),
        "{{data}}": data,
        "{{maps}}": maps,
    }
    return _inserted(shell, inserted.items())


def _inserted(shell: str, values: Iterable[tuple[str, str]]) -> str:
    """Each value in its place, never looked at again: a token may well read {{maps}}."""
    done = ""
    for place, value in values:
        before, shell = shell.split(place, 1)
        done += before + value
    return done + shell
