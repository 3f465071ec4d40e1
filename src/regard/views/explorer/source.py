"""TraceSource: answers the requests of the front end about one Trace, and about edits where a model is at hand.

    overview()                                       what there is: records, labels, measures, small pictures
    head(layer, head)                                the map of one head
    rectangle(layer, head, rows, cols, most)         a part of one head, exact, in at most `most` cells
    explain(layer, head, query, most)                the arithmetic of one query
    effect(silence=…) or effect(cut=…)               how far an edit moves the next token, where a model is at hand

`layer` is the index of a record among those shown, not a layer of the model. Errors are RegardErrors. For `effect`, a
PyTorch model is edited by `regard.effect`; a LanguageModel runs its text again with another attention function.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, get_args

import numpy as np

from regard.arrays import to_numpy
from regard.axes import in_range
from regard.errors import ArgumentError, NotKeptError
from regard.messages import LANGUAGES, Language, Listed
from regard.records import Record
from regard.trace.pooling import Merge, bin_size
from regard.trace.trace import Range, ScaleName, Trace
from regard.views.caption import layer_titles, opening_head, texts_of_tokens
from regard.views.colours import chosen_scale
from regard.views.exact_part import ExactPart
from regard.views.explorer import overview as shown
from regard.views.explorer.answers import Answer, half_floats
from regard.views.explorer.numbers import MOST_KEYS, ability, explained
from regard.views.explorer.overview import generation_of
from regard.views.explorer.zoom import column_norms, zoomed
from regard.views.picture import (
    Picture,
    check_scale,
    chosen_language,
    chosen_records,
    chosen_sample,
    merged_or_cut,
    picture,
)

MOST = 5
"""The number of tokens listed of each side."""


class Effects(Protocol):
    """A model that can run its input again with an edit."""

    def of(self, record: Record, head: int, edge: tuple[int, int] | None) -> "Moved":
        """What silencing the head does, or cutting one of its edges (query, key)."""


class Moved:
    """The probabilities of the next token before and after an edit, as log-probabilities (W,)."""

    def __init__(self, before: np.ndarray, after: np.ndarray, position: int | None, token_name: Any) -> None:
        self.before, self.after, self.position, self.token_name = before, after, position, token_name

    @property
    def kl(self) -> float:
        """How far the probabilities moved: Σ p log(p / p′)."""
        p = np.exp(self.before)
        terms = np.zeros_like(p)
        np.multiply(p, self.before - self.after, out=terms, where=p > 0)
        return float(terms.sum())

    def answer(self) -> Answer:
        """The likeliest tokens of both sides with their probabilities, and how far these moved."""
        p, q = np.exp(self.before), np.exp(self.after)
        ids = dict.fromkeys(int(i) for side in (p, q) for i in np.argsort(-side, kind="stable")[:MOST])
        names = {i: str(self.token_name(i)) for i in ids}
        listed = {
            side: [[names[i], float(found[i])] for i in sorted(ids, key=lambda i, found=found: -found[i])]  # type: ignore[misc]
            for side, found in (("before", p), ("after", q))
        }
        return Answer({**listed, "kl": self.kl, "position": self.position})


class TorchEffects:
    """A PyTorch model, with the inputs of its call."""

    def __init__(self, model: Any, inputs: Any, tokenizer: Any = None) -> None:
        self.model, self.inputs, self.tokenizer = model, inputs, tokenizer

    def of(self, record: Record, head: int, edge: tuple[int, int] | None) -> Moved:
        from regard.capture.effects import effect

        options: dict[str, Any] = {"tokenizer": self.tokenizer}
        if edge is None:
            options["silence"] = {record.module: [head]}
        else:
            options["cut"] = {record.module: [(head, *edge)]}
        found = effect(self.model, self.inputs, **options)
        position = None if found.position is None else int(found.position[0])
        before, after = (np.asarray(to_numpy(side[0]), np.float64) for side in (found.before, found.after))
        return Moved(before, after, position, found.token_name)


class LanguageEffects:
    """A LanguageModel, with what its `see` returned."""

    def __init__(self, model: Any, seen: Any) -> None:
        self.model, self.seen = model, seen

    def of(self, record: Record, head: int, edge: tuple[int, int] | None) -> Moved:
        before, after, position = self.model.predictions_without(self.seen, record.name, head, edge)
        return Moved(before, after, position, lambda i: self.model.tokenizer.pieces([i])[0])


def effects_of(model: Any, inputs: Any, tokenizer: Any = None) -> Effects | None:
    """How to measure effects with this model and input; None without a model. Raises ArgumentError."""
    if model is None:
        if inputs is not None:
            raise ArgumentError("widget-model")
        return None
    if hasattr(model, "predictions_without"):  # a LanguageModel: runs on NumPy too
        if isinstance(inputs, str):
            inputs = model.see(inputs)
        if not hasattr(inputs, "ids"):
            raise ArgumentError("widget-seen", found=type(inputs).__name__)
        return LanguageEffects(model, inputs)
    if inputs is None:
        raise ArgumentError("widget-inputs")
    return TorchEffects(model, inputs, tokenizer)


def edit_of(
    silence: Mapping[str, int] | None, cut: Mapping[str, int] | None
) -> tuple[int, int, tuple[int, int] | None]:
    """Layer, head and edge of a request. Raises ArgumentError where it names none or both."""
    if (silence is None) == (cut is None):
        raise ArgumentError("effect-request")
    names = ("layer", "head") if cut is None else ("layer", "head", "query", "key")
    given = silence if cut is None else cut
    assert given is not None
    if not set(names) <= set(given):
        raise ArgumentError("effect-request")
    layer, head, *edge = (given[name] for name in names)
    return layer, head, (edge[0], edge[1]) if edge else None


VERSION = 1
"""The version of the answers, which a front end checks."""


MOST_CELLS = 2048
"""The most rows, and columns, of the cells of an answer."""
Span = Sequence[int]
"""Two numbers: start and stop, or rows and columns."""


class TraceSource:
    """The answers about one sample of a Trace, or of one of its records. Raises as `show`."""

    def __init__(
        self,
        trace: Trace,
        layer: int | str | None = None,
        sample: int = 0,
        *,
        lang: Language | None = None,
        scale: ScaleName | None = None,
        merge: Merge | None = None,
        rows: Range = None,
        cols: Range = None,
        effects: Effects | None = None,
    ) -> None:
        self.trace = trace
        self.effects = effects
        self.lang = chosen_language(lang)
        self.scale = chosen_scale(scale)
        self.merge = _chosen_merge(merge)
        self._given = chosen_records(trace, layer)
        self.samples = [chosen_sample(record, sample) for record in self._given]
        # Merged tokens are drawn by the front end, so only parts are cut out here.
        parts = rows is not None or cols is not None
        cut = [
            merged_or_cut(record, at, merge if parts else "tokens", rows, cols)[0]
            for record, at in zip(self._given, self.samples, strict=True)
        ]
        self.records: list[Record] = cut
        self.bins: int | None = None
        """The most rows, and columns, of the map of a head; None for the map as it was recorded."""
        for record in self.records:
            check_scale(record, self.scale)

    # --- answers -------------------------------------------------------------------------------------------

    def overview(self) -> Answer:
        """All that the front end needs before a head is opened."""
        table, pictures = shown.LabelTable(), shown.PictureTable()
        titles = {lang: layer_titles(self._given, lang) for lang in LANGUAGES}
        found = self.patterns
        entries, thumbnails = [], []
        for number, record in enumerate(self.records):
            heads = self._pictures(number)
            at = self.samples[number]
            entry = shown.record_entry(record, heads, table)
            entry |= {
                "titles": {lang: shown.label(titles[lang][number]) for lang in LANGUAGES},
                "sample": at,
                "samples": record.shape[0],
                "measures": shown.measures_of(record, at, found[number]),
                "can": self.abilities(number),
                "images": shown.image_entries(self.whole(number), at, pictures),
                "beam": None,
            }
            entries.append(entry)
            thumbnails += [shown.thumbnail(one) for one in heads]
        texts = self.trace.texts or texts_of_tokens(self._given, self.samples[0])
        about = {
            "version": VERSION,
            "lang": self.lang,
            "words": shown.words(),
            "scale": self.scale,
            "scales": self._scales(),
            "merge": self._first_merge(entries),
            "open": list(self.opening),
            "texts": None if texts is None else [shown.bounded(text) for text in texts],
            "title": None,
            "colours": shown.colours(),
            "labels": table.lists,
            "pictures": pictures.list,
            "records": entries,
            "generation": generation_of(self.trace, self._given, self.samples),
            "compare": None,
            "levels": [],
        }
        size = shown.THUMBNAIL
        return Answer(about, {"thumbnails": np.array(thumbnails, np.uint8).reshape(-1, size, size)})

    def head(self, layer: int, head: int) -> Answer:
        """The map of one head: cells as half floats, and the number of queries of each row that attend to any key."""
        drawn = self.picture(layer, head)
        R, C = drawn.cells.shape
        about: dict[str, Any] = {"R": R, "C": C, "high": drawn.high, "wide": drawn.wide}
        arrays = {"cells": half_floats(drawn.cells), "attending": drawn.attending.astype(np.int32)}
        norms = column_norms(drawn)
        if norms is not None:
            about["norms"], arrays["norms"] = norms
        return Answer(about, arrays)

    def rectangle(self, layer: int, head: int, rows: Span, cols: Span, most: Span) -> Answer:
        """A part of one head in at most `most` cells, each an exact mean; `about` says which part and cell size.

        Positions count in the record, or in its part. Raises ArgumentError for an empty or invalid range.
        """
        drawn = self.picture(layer, head)
        T, S = drawn.record.shape[2:]
        down, across = _checked_span("rows", rows, T), _checked_span("cols", cols, S)
        limits = tuple(max(1, min(MOST_CELLS, int(each))) for each in most)
        found = zoomed(drawn, down, across, (limits[0], limits[1]))
        about = {
            "rows": [found.rows.start, found.rows.stop],
            "cols": [found.cols.start, found.cols.stop],
            "high": found.high,
            "wide": found.wide,
            "exact": found.high <= bin_size(down.stop - down.start, limits[0]),
            "note": None,
            "labels": shown.labels_in(drawn.record, drawn.sample, found),
        }
        cells, attending = found.cells.astype(np.float32), found.attending.astype(np.int32)
        return Answer(about, {"cells": cells, "attending": attending})

    def explain(self, layer: int, head: int, query: int, most: int = MOST_KEYS, *, for_file: bool = False) -> Answer:
        """The arithmetic of one query. Raises NotKeptError where q and k were not kept."""
        record, sample = self.whole(layer), self.samples[layer]
        head = in_range("head", head, record.shape[1])
        shown_part = self.records[layer]
        query = in_range("query", query, shown_part.shape[2])
        if isinstance(shown_part, ExactPart):
            query += shown_part.rows.start
        answer = explained(record, sample, head, query, most, for_file=for_file)
        queries, keys = (shown.token_labels(rows, sample) for rows in (record.query_tokens, record.key_tokens))
        answer.about["labels"] = {
            "query": f"{query}" if queries is None else queries[query],
            "keys": [str(at) if keys is None else keys[at] for at in answer.about["keys"]],
        }
        return answer

    def effect(self, silence: Mapping[str, int] | None = None, cut: Mapping[str, int] | None = None) -> Answer:
        """How far silencing a head, or cutting one of its edges, moves the next token. Needs a model."""
        if self.effects is None:
            raise NotKeptError("effect-no-model")
        layer, head, edge = edit_of(silence, cut)
        record = self.whole(layer)
        return self.effects.of(record, in_range("head", head, record.shape[1]), edge).answer()

    def head_effects(self, layer: int) -> list[float | None] | None:
        """How far silencing each head of a record moves the next token; None without a model."""
        if self.effects is None:
            return None
        record = self.whole(layer)
        return [shown.rounded(self.effects.of(record, head, None).kl) for head in range(record.shape[1])]

    def abilities(self, layer: int) -> dict[str, Any]:
        """Which requests about a record can be answered; `queries`: None where those of every query can."""
        record = self.records[layer]
        exact = "exact" if record.has_weights else "none"
        able = {"rectangle": exact, "explain": ability(self.whole(layer)), "effect": self.effects is not None}
        return able | {"queries": None}

    # --- choices -------------------------------------------------------------------------------------------

    def whole(self, layer: int) -> Record:
        """The record, also where only a part of it is drawn."""
        record = self.records[in_range("layer", layer, len(self.records))]
        return record.whole if isinstance(record, ExactPart) else record

    def picture(self, layer: int, head: int) -> Picture:
        """One head as a Picture. Raises ArgumentError for an index out of range."""
        record = self.records[in_range("layer", layer, len(self.records))]
        drawn = picture(record, in_range("head", head, record.shape[1]), self.samples[layer])
        return drawn if self.bins is None else drawn.fitted(self.bins, self.bins)

    def _pictures(self, layer: int) -> list[Picture]:
        return [self.picture(layer, head) for head in range(self.records[layer].shape[1])]

    @cached_property
    def opening(self) -> tuple[int, int]:
        """The record and head to open with: where only maps with larger cells were kept, by the exact patterns."""
        layer, head = opening_head(self.trace, self._given)
        exact = self._given[layer].map_is_exact
        if self.trace.opening is not None or exact or self.patterns[layer].pattern[head]:
            return layer, head
        kind = self._given[layer].kind
        ranked = [
            (pattern == "first", -(score or 0.0), at, number)
            for at, found in enumerate(self.patterns)
            for number, (pattern, score) in enumerate(zip(*found, strict=True))
            if pattern and self._given[at].kind == kind
        ]
        return min(ranked)[2:] if ranked else (layer, head)

    @cached_property
    def patterns(self) -> list[shown.Found]:
        """What each head of the records does."""
        return shown.patterns_of(self.records)

    def _scales(self) -> list[str]:
        """The scales that can be chosen: rows of a part without all keys cannot be normalised."""
        whole = all(not isinstance(record, ExactPart) or record.has_whole_rows for record in self.records)
        return [name for name in get_args(ScaleName) if whole or name != "renormalised"]

    def _first_merge(self, entries: list[dict[str, Any]]) -> str:
        """How tokens are merged at the start: by default only the parts of characters."""
        asked = self.merge or "characters"
        return asked if any(entry["labels"].get(asked) for entry in entries) else "tokens"


def _chosen_merge(merge: Any) -> Merge | None:
    if merge is not None and merge not in get_args(Merge):
        raise ArgumentError("option-unknown", option="merge", asked=merge, choices=Listed(get_args(Merge)))
    return merge


def _checked_span(name: str, span: Span, length: int) -> slice:
    """The range inside of 0 … length. Raises ArgumentError where nothing of it is inside."""
    start, stop = (int(end) for end in span)
    inside = slice(max(0, start), min(length, stop))
    if inside.start >= inside.stop:
        raise ArgumentError("source-range", name=name, start=start, stop=stop, length=length)
    return inside
