"""A Trace as one self-contained HTML file: the answers to all requests stored in it, no network, no server.

The size depends on the number of heads, not on the length of the text:

overview            first: the file opens with it
head-L-H            the map of every head, pooled until all of them fit
numbers-L-H         what the arithmetic of every query is computed from, for short texts
numbers-L-H-Q       of longer texts, the arithmetic of the opening query, and of one query of each head with a pattern
level-N             exact parts of longer texts, around the strongest places of each head and the end of the diagonal
"""

import base64
import hashlib
import html
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.attention_call import WeightsFromQK
from regard.files.output import check_target, write_output
from regard.messages import Language, say
from regard.trace.pooling import Merge
from regard.trace.trace import Range, ScaleName, Trace
from regard.views.explorer import front
from regard.views.explorer.answers import Answer, half_floats
from regard.views.explorer.numbers import all_queries, can_explain
from regard.views.explorer.overview import labels_in, token_labels
from regard.views.explorer.source import TraceSource, effects_of
from regard.views.explorer.zoom import Cells, pooled_rectangle
from regard.views.picture import Picture

TAGS: dict[Language, str] = {"zh": "zh-CN", "en": "en"}


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
    *,
    model: Any = None,
    inputs: Any = None,
    tokenizer: Any = None,
) -> None:
    """Write the page of one sample, completely or not at all. Raises as `widget`, and FileError."""
    target = Path(path)
    check_target(target)
    options: dict[str, Any] = {"lang": lang, "scale": scale, "merge": merge, "rows": rows, "cols": cols}
    source = TraceSource(trace, layer, sample, effects=effects_of(model, inputs, tokenizer), **options)
    write_output(target, page(source).encode())


def page(source: TraceSource) -> str:
    """The page as text."""
    return filled(stored_answers(source), source.lang)


def filled(answers: Mapping[str, str], lang: Language) -> str:
    """The template with compressed answers, by the ids of their elements.

    Answers are in base64, so no token can end its element. The policy allows the one script by its hash.
    """
    script = "\n" + front.script("page.js") + "\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    values = {
        "{{lang}}": TAGS[lang],
        "{{policy}}": f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        "{{title}}": html.escape(say("explorer-title", lang)),
        "{{style}}": front.style(),
        "{{noscript}}": html.escape(say("explorer-noscript", lang)),
        "{{answers}}": "\n".join(_element(name, answer) for name, answer in answers.items()),
        "{{script}}": script,
    }
    return _insert(front.template(), values.items())


def _element(name: str, answer: str) -> str:
    return f'<script type="application/octet-stream;base64" id="regard-{name}">{answer}</script>'


def _insert(template: str, values: Iterable[tuple[str, str]]) -> str:
    """Each value at its placeholder. Inserted values are not searched again."""
    done = ""
    for place, value in values:
        before, template = template.split(place, 1)
        done += before + value
    return done + template


FEW_HEADS = 12
BUDGET, PER_HEAD, LARGEST = 4_500_000, 80_000, 14_000_000
"""Bytes of the answers in a file: for up to FEW_HEADS heads, for each further one, and at most."""
SHARE_OF_MAPS, SHARE_OF_NUMBERS = 0.85, 0.65
"""The parts of the budget that maps and numbers may take; for longer texts half of what is left is for levels."""
COARSEST = 16
SAMPLED = 8
"""The number of heads from which the size of all maps is estimated."""
LONGEST_EXPLAINED = 64
"""Queries, and keys, of the longest text of which the arithmetic of every query is stored."""
LARGEST_KEYS = 2**25
"""Numbers of the largest k of one head from which the arithmetic of single queries is computed."""
LEVEL = 128
"""Rows and columns of a level."""
WIDEST_CELL, STEP = 32, 8
"""The cell size of the coarsest level, and how many times smaller that of the next is."""
PLACES, DIAGONAL = 3, 1
"""The number of places of a head around which levels are stored; the second is the end of the diagonal."""


def stored_answers(source: TraceSource) -> dict[str, str]:
    """The answers by their names in the file, compressed."""
    heads = sum(record.shape[1] for record in source.records)
    budget = min(LARGEST, BUDGET + PER_HEAD * max(0, heads - FEW_HEADS))
    maps = _maps(source, int(SHARE_OF_MAPS * budget))
    left = budget - sum(map(len, maps.values()))
    queries, numbers = _numbers(source, int(min(left, SHARE_OF_NUMBERS * budget)))
    left -= sum(map(len, numbers.values()))
    entries, levels = _levels(source, left)
    overview = source.overview()
    overview.about["levels"] = entries
    for layer, entry in enumerate(overview.about["records"]):
        can = entry["can"]
        entry["measures"]["effect"] = source.head_effects(layer)
        can["rectangle"] = "stored" if any(level["layer"] == layer for level in entries) else "none"
        can["queries"] = None if can["explain"] == "none" else queries[layer]
        can["effect"] = False
    return {"overview": overview.compressed(), **maps, **numbers, **levels}


# --- maps ------------------------------------------------------------------------------------------------


def _maps(source: TraceSource, budget: int) -> dict[str, str]:
    """The maps of all heads, pooled by the smallest factor that lets them fit; `source` then draws them so too."""
    places = _places_of_heads(source)
    largest = max((max(source.picture(*place).cells.shape, default=0) for place in places[:1]), default=0)
    factor = 1
    while True:
        source.bins = None if factor == 1 else max(COARSEST, -(-largest // factor))
        sampled = places[:: max(1, len(places) // SAMPLED)]
        guess = sum(len(source.head(*place).compressed()) for place in sampled) * len(places) / max(1, len(sampled))
        is_coarsest = source.bins is not None and source.bins <= COARSEST
        if guess <= budget or is_coarsest:
            found = {f"head-{layer}-{head}": source.head(layer, head).compressed() for layer, head in places}
            if is_coarsest or sum(map(len, found.values())) <= budget:
                return found
        factor += 1


def _places_of_heads(source: TraceSource) -> list[tuple[int, int]]:
    return [(layer, head) for layer, record in enumerate(source.records) for head in range(record.shape[1])]


# --- numbers ---------------------------------------------------------------------------------------------


Queries = dict[int, list[list[int] | None]]
"""For each head of a record the queries whose arithmetic is stored; None for all of them."""


def _numbers(source: TraceSource, budget: int) -> tuple[Queries, dict[str, str]]:
    """The arithmetic of as many heads as fit: the one that opens, then those with a pattern, the clearest first."""
    queries: Queries = {layer: [[] for _ in range(record.shape[1])] for layer, record in enumerate(source.records)}
    texts: dict[str, str] = {}
    scores = {place: source.patterns[place[0]].score[place[1]] or 0.0 for place in _places_of_heads(source)}
    opening = source.opening
    for layer, head in sorted(scores, key=lambda place: (place != opening, place[0] != opening[0], -scores[place])):
        record = source.records[layer]
        if not can_explain(record):  # nothing was kept, or only a part is drawn
            continue
        if max(record.shape[2:]) <= LONGEST_EXPLAINED:
            text = _every_query(source, layer, head)
            if len(text) <= budget:
                texts[f"numbers-{layer}-{head}"] = text
                queries[layer][head] = None
                budget -= len(text)
            continue
        budget = min(budget, budget // 2 if not texts else budget)  # the rest is for levels
        for query in _chosen_queries(source, layer, head, scores[layer, head]):
            text = source.explain(layer, head, query, for_file=True).compressed()
            held = queries[layer][head]
            if len(text) <= budget and held is not None:
                texts[f"numbers-{layer}-{head}-{query}"] = text
                held.append(query)
                budget -= len(text)
    return queries, texts


def _every_query(source: TraceSource, layer: int, head: int) -> str:
    record, sample = source.records[layer], source.samples[layer]
    answer = all_queries(record, sample, head)
    sides = {"queries": record.query_tokens, "keys": record.key_tokens}
    answer.about["labels"] = {side: token_labels(rows, sample) for side, rows in sides.items()}
    return answer.compressed()


def _chosen_queries(source: TraceSource, layer: int, head: int, score: float) -> list[int]:
    """The query that is selected when the file opens, and the strongest one of a head with a pattern."""
    drawn = source.picture(layer, head)
    T, S = drawn.record.shape[2:]
    exact = drawn.record.exact
    assert isinstance(exact, WeightsFromQK)
    if not drawn.cells.size or S * exact.q.shape[-1] > LARGEST_KEYS:
        return []
    selected = 0 if drawn.record.kind == "cross" else (len(drawn.cells) - 1) * drawn.high
    found = [selected] if (layer, head) == source.opening else []
    if score:
        query, key = next(_strong_places(drawn), (T - 1, S - 1))
        if drawn.high > 1 or drawn.wide > 1:
            rows, cols = _around(query, LEVEL, T), _around(key, LEVEL, S)
            near = pooled_rectangle(drawn.record, drawn.sample, head, rows, cols, (LEVEL, LEVEL))
            query = _strongest(near, drawn.first_key)[0]
        found.append(query)
    return sorted(set(found))


# --- levels ----------------------------------------------------------------------------------------------


def _levels(source: TraceSource, budget: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Levels of all heads in turn, the head that opens first, until the budget is used up."""
    entries: list[dict[str, Any]] = []
    texts: dict[str, str] = {}
    opening = tuple(source.opening)
    waiting = [
        (place, iter(_levels_of(source.picture(*place))))
        for place in sorted(_places_of_heads(source), key=lambda place: place != opening)
        if source.records[place[0]].has_weights
    ]
    while waiting:
        still = []
        for place, levels in waiting:
            found = next(levels, None)
            if found is None:
                continue
            text = _answer(source, place, found).compressed()
            budget -= len(text)
            if budget < 0:
                return entries, texts
            texts[f"level-{len(entries)}"] = text
            entries.append({"id": len(entries), "layer": place[0], "head": place[1], **_region(found)})
            still.append((place, levels))
        waiting = still
    return entries, texts


def _answer(source: TraceSource, place: tuple[int, int], found: Cells) -> Answer:
    layer = place[0]
    about = {**_region(found), "labels": labels_in(source.records[layer], source.samples[layer], found)}
    arrays = {"cells": half_floats(found.cells), "attending": found.attending.astype(np.int32)}
    return Answer(about, arrays)


def _region(found: Cells) -> dict[str, Any]:
    rows, cols = ([span.start, span.stop] for span in (found.rows, found.cols))
    return {"rows": rows, "cols": cols, "high": found.high, "wide": found.wide}


def _levels_of(drawn: Picture) -> Iterator[Cells]:
    """The levels of a head: around each strong place from coarse to single tokens."""
    if drawn.high == drawn.wide == 1 or not drawn.cells.size:
        return
    seen: set[tuple[int, int, int]] = set()
    for number, (query, key) in enumerate(_strong_places(drawn)):
        for size in _cell_sizes(max(drawn.high, drawn.wide)):
            rows, cols = (
                _around(at, size * LEVEL, length)
                for at, length in zip((query, key), drawn.record.shape[2:], strict=True)
            )
            if (rows.start, cols.start, size) in seen:
                continue
            seen.add((rows.start, cols.start, size))
            found = pooled_rectangle(drawn.record, drawn.sample, drawn.head, rows, cols, (LEVEL, LEVEL))
            if number != DIAGONAL:
                query, key = _strongest(found, drawn.first_key)
            yield found


def _cell_sizes(bins: int) -> Iterable[int]:
    """From an eighth of a bin of the map down to 1.

    >>> list(_cell_sizes(512)), list(_cell_sizes(20)), list(_cell_sizes(2))
    ([32, 4, 1], [2, 1], [1])
    """
    size = max(1, min(WIDEST_CELL, bins // STEP))
    while size > 1:
        yield size
        size //= STEP
    yield 1


def _strong_places(drawn: Picture) -> Iterator[tuple[int, int]]:
    """Query and key of the strongest cells beside the first key, each in a row of its own, and of the last tokens."""
    T, S = drawn.record.shape[2:]
    cells = _beside(drawn.cells, drawn.first_column)
    for place in range(PLACES):
        if place == DIAGONAL:
            yield T - 1, S - 1
            continue
        row, column = np.unravel_index(int(cells.argmax()), cells.shape)
        if cells[row, column] <= 0:
            return
        yield int(row) * drawn.high + drawn.high // 2, int(column) * drawn.wide + drawn.wide // 2
        cells[max(0, row - 1) : row + 2] = 0


def _strongest(found: Cells, first_key: int) -> tuple[int, int]:
    """Query and key of the strongest cell that is not the first key's; the middle where nothing is visible."""
    cells = _beside(found.cells, (first_key - found.cols.start) // found.wide)
    row, column = np.unravel_index(int(cells.argmax()), cells.shape)
    if cells[row, column] <= 0:
        return (found.rows.start + found.rows.stop) // 2, (found.cols.start + found.cols.stop) // 2
    query = found.rows.start + int(row) * found.high + found.high // 2
    return query, found.cols.start + int(column) * found.wide + found.wide // 2


def _beside(cells: np.ndarray, first_column: int) -> np.ndarray:
    """Cells relative to an even share of their row, without the first key: the first queries see few keys."""
    strong = np.nan_to_num(cells) * (cells > 0).sum(-1, keepdims=True)
    if 0 <= first_column < cells.shape[1] and cells.shape[1] > 1:
        strong[:, first_column] = 0
    return strong


def _around(at: int, size: int, length: int) -> slice:
    """`size` positions around one, inside of 0 … length."""
    start = min(max(0, at - size // 2), max(0, length - size))
    return slice(start, min(length, start + size))
