"""Sums over the texts of a corpus, for every head: exact, so that they merge in any order to the same numbers.

Every number is a ratio of two sums, above / of: a pattern's weight above even attention and its headroom, or a sum over
queries and their number. Each text adds integers (fixed point), so that addition does not depend on the order. Each
text also adds the squares from which the spread between texts is computed. Of every head and pattern the texts with the
highest scores are kept, with the place where it shows best.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import to_numpy
from regard.patterns import ALIGNMENT, Pattern, PatternRows, offset_of, offset_pattern, patterns_for
from regard.records import Kind, Record
from regard.reference.statistics import entropy
from regard.trace import Trace
from regard.trace.from_weights import KINDS
from regard.trace.measures.heads import MIN_QUERIES, MIN_SCORE, Coverage, PatternInputs, above_even
from regard.trace.measures.visibility import RowBlock, Visibility, is_across, not_fully_masked, visibilities

MEASURES = ("entropy", "sink", "distance")
OFFSETS = (*(f"back-{n}" for n in range(2, 9)), *(f"ahead-{n}" for n in range(1, 9)))
FINE, SQUARE = 2.0**24, 2.0**16
"""Units of the sums and of the sums of squares: 64 bits hold those of 2^25 texts of 2,048 queries."""
FIELDS = ("above", "of", "queries", "texts", "above_squared", "above_of", "of_squared")
BLOCKS = 8
"""Evenly spread blocks of rows that are measured of a long text."""
CELLS_AT_A_TIME = 2**24
"""Weights, and factors of patterns, that are held at once."""


class Best(NamedTuple):
    """A text in which a head shows a pattern best; of equal scores the first text counts."""

    score: int
    text: int
    query: int
    key: int
    tokens: tuple[str, ...]
    """A part of the text around the query, or, of cross-attention, the token that the query reads."""
    at: int
    """The query in `tokens`."""
    key_tokens: tuple[str, ...]
    """The part around the key, where it is not within `tokens`; else empty."""
    key_at: int


class HeadSums:
    """The sums of all heads of a model."""

    def __init__(self, columns: tuple[str, ...], best_of: int) -> None:
        self.columns, self.best_of = columns, best_of
        self.names: list[tuple[str, Kind, int]] = []
        """Name, kind and number of heads of each layer, in call order."""
        self.sums: dict[str, np.ndarray] = {}
        """By layer: fields × heads × columns, int64."""
        self.best: dict[tuple[str, int, str], list[Best]] = {}
        self.tokens = self.texts = 0

    def add(self, trace: Trace, text: int, queries: int | None) -> None:
        """Add a text: `queries` of its rows, evenly spread, None for all."""
        self.texts += 1
        self.tokens += max(record.shape[2] for record in trace)
        for group in groups(trace, queries):
            found = TextSums(group, self.columns)
            for name, heads in group.layers():
                self._add(name, group, found, heads, text)

    def _add(self, name: str, group: "LayerGroup", found: "TextSums", heads: slice, text: int) -> None:
        count = heads.stop - heads.start
        if name not in self.sums:
            self.names.append((name, group.record.kind, count))
            self.sums[name] = np.zeros((len(FIELDS), count, len(self.columns)), np.int64)
        above, of = (np.rint(x[heads] * FINE) / FINE for x in (found.above, found.of))
        counted = of > 0
        parts = (above * FINE, of * FINE, found.queries[heads], counted)
        squares = (above * above * SQUARE, above * of * SQUARE, of * of * SQUARE)
        self.sums[name] += np.stack([np.rint(part).astype(np.int64) for part in (*parts, *squares)])
        enough = counted & (found.queries[heads] >= MIN_QUERIES) & (above >= MIN_SCORE * of)
        for head, column in zip(*np.nonzero(enough), strict=True):
            pattern = self.columns[column]
            if pattern in MEASURES:
                continue
            score = round(float(above[head, column] / of[head, column]) * 2**20)
            kept = self.best.setdefault((name, int(head), pattern), [])
            if len(kept) < self.best_of or (-score, text) < (-kept[-1].score, kept[-1].text):
                kept.append(group.passage(*found.place(heads.start + int(head), pattern), score, text))
                kept.sort(key=_rank)
                del kept[self.best_of :]

    def merge(self, other: "HeadSums") -> None:
        """Add the sums of other texts of the same model."""
        for name, kind, count in other.names:
            if name not in self.sums:
                self.names.append((name, kind, count))
                self.sums[name] = np.zeros_like(other.sums[name])
            self.sums[name] = self.sums[name] + other.sums[name]
        for key, kept in other.best.items():
            both = sorted([*self.best.get(key, []), *kept], key=_rank)
            self.best[key] = both[: self.best_of]
        self.tokens, self.texts = self.tokens + other.tokens, self.texts + other.texts

    # --- as JSON ---------------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        best = sorted(self.best.items())
        return {
            "columns": list(self.columns),
            "best_of": self.best_of,
            "tokens": self.tokens,
            "texts": self.texts,
            "layers": [
                {"name": name, "kind": kind, "heads": count, "sums": self.sums[name].tolist()}
                for name, kind, count in self.names
            ],
            "best": [[*key, [list(one) for one in kept]] for key, kept in best],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "HeadSums":
        """The sums of a file. Raises KeyError, TypeError or ValueError for what is none."""
        sums = cls(tuple(map(str, found["columns"])), int(found["best_of"]))
        sums.tokens, sums.texts = int(found["tokens"]), int(found["texts"])
        for layer in found["layers"]:
            name, count = str(layer["name"]), int(layer["heads"])
            values = np.array(layer["sums"], np.int64)
            wanted = (len(FIELDS), count, len(sums.columns))
            if values.shape != wanted or name in sums.sums or layer["kind"] not in KINDS:
                raise ValueError(name)
            sums.names.append((name, layer["kind"], count))
            sums.sums[name] = values
        for name, head, pattern, kept in found["best"]:
            places = []
            for score, text, query, key, tokens, at, key_tokens, key_at in kept:
                numbers = int(score), int(text), int(query), int(key)
                places.append(Best(*numbers, _texts(tokens), int(at), _texts(key_tokens), int(key_at)))
            sums.best[str(name), int(head), str(pattern)] = places
        return sums


def _rank(one: Best) -> tuple[int, int]:
    return -one.score, one.text


def _texts(found: Any) -> tuple[str, ...]:
    return tuple(map(str, found))


def columns_of() -> tuple[str, ...]:
    """The columns of the sums: measures, then patterns, registered ones included."""
    named = {**patterns_for(across=False, named=True), **patterns_for(across=True, named=True)}
    return (*MEASURES, *named, *OFFSETS, ALIGNMENT)


# --- one text --------------------------------------------------------------------------------------------


class LayerRows(NamedTuple):
    """The measured rows of one layer of a text."""

    record: Record
    weights: np.ndarray
    """H r S; rows that are padding or fully masked are 0."""
    valid: np.ndarray
    """H r"""
    sink_mass: np.ndarray | None
    """H r"""


class LayerGroup(NamedTuple):
    """Layers of the same kind with the same visible keys, so that each pattern is computed once for all of them."""

    members: list[LayerRows]
    visibility: Visibility
    rows: np.ndarray
    """r: the measured queries."""
    visible: np.ndarray
    """r S: which keys are visible."""

    @property
    def record(self) -> Record:
        """The record of the first layer."""
        return self.members[0].record

    def layers(self) -> Iterator[tuple[str, slice]]:
        """The name of each layer, and which of the joined heads are its own."""
        start = 0
        for layer in self.members:
            yield layer.record.name, slice(start, start + len(layer.weights))
            start += len(layer.weights)

    def pattern_rows(self) -> PatternRows:
        """The input of the patterns."""
        return PatternInputs(self.record, self.visibility).of(self.rows, self.visible[None])

    def passage(self, row: int, key: int, score: int, text: int) -> Best:
        """The place of a pattern as it is kept: with the tokens around it."""
        record, query = self.record, int(self.rows[row])
        across, (T, S) = is_across(record), record.shape[2:]
        at = query if across else query + S - T
        part, start = _part(record.query_tokens if across else record.key_tokens, at, AROUND)
        if not across and start <= key < start + len(part):
            return Best(score, text, query, key, part, at - start, (), key - start)
        other, before = _part(record.key_tokens, key, AROUND // 2)
        return Best(score, text, query, key, part, at - start, other, key - before)


AROUND = 10
"""Tokens of a passage on each side."""


def _part(tokens: tuple[tuple[str, ...], ...] | None, at: int, around: int) -> tuple[tuple[str, ...], int]:
    """The tokens around a position, and where they begin."""
    start = max(0, at - around)
    return (() if tokens is None else tokens[0][start : at + around + 1]), start


def groups(trace: Trace, queries: int | None) -> Iterator[LayerGroup]:
    """The layers of a text, in groups of at most `CELLS_AT_A_TIME` weights."""
    waiting: dict[Any, LayerGroup] = {}
    for visibility in visibilities(trace):
        record = visibility.record
        parts = measured_rows(record.shape[2], None if is_across(record) else queries)
        visible = np.concatenate([np.any(visibility.of(part), axis=1)[0] for part in parts])
        layer = _layer(visibility, parts)
        key = (record.kind, record.shape[2:], layer.sink_mass is None, visible.tobytes())
        group = waiting.get(key)
        if group is None or layer.weights.size * (len(group.members) + 1) > CELLS_AT_A_TIME:
            if group is not None:
                yield group
            rows = np.concatenate([np.arange(part.start, part.stop) for part in parts])
            waiting[key] = LayerGroup([layer], visibility, rows, visible)
        else:
            group.members.append(layer)
    yield from waiting.values()


def measured_rows(T: int, queries: int | None) -> list[slice]:
    """The rows that are measured, in a few evenly spread blocks.

    >>> measured_rows(100, 16)[:2], measured_rows(10, 16)
    ([slice(0, 2, None), slice(14, 16, None)], [slice(0, 10, None)])
    """
    if queries is None or queries >= T:
        return [slice(0, T)]
    high = max(1, queries // BLOCKS)
    starts = np.linspace(0, T - high, max(1, queries // high)).astype(int)
    return [slice(start, start + high) for start in starts.tolist()]


def _layer(visibility: Visibility, parts: list[slice]) -> LayerRows:
    record = visibility.record
    weights = np.concatenate([np.asarray(to_numpy(record.weights(rows=part)))[0] for part in parts], axis=1)
    weights = weights.astype(np.float32, copy=False)
    sums = weights.sum(-1)
    valid = np.isfinite(sums) & (sums > 0)
    valid &= np.concatenate([visibility.queries[0, part] for part in parts])
    if record.lse is not None:
        valid &= np.concatenate([not_fully_masked(record.lse[0, :, part]) for part in parts], axis=1)
    sink = record.sink_mass
    if sink is not None:
        sink = np.concatenate([np.asarray(to_numpy(sink[0, :, part])) for part in parts], axis=1)
    return LayerRows(record, weights if valid.all() else np.where(valid[..., None], weights, 0), valid, sink)


class TextSums:
    """What one text adds, H × columns: `above`, `of` and `queries`; and where each pattern shows best."""

    def __init__(self, group: LayerGroup, columns: tuple[str, ...]) -> None:
        self.weights = np.concatenate([layer.weights for layer in group.members])  # H r S
        self.valid = np.concatenate([layer.valid for layer in group.members])  # H r
        self.column = {name: number for number, name in enumerate(columns)}
        self.above, self.of, self.queries = (np.zeros((len(self.weights), len(columns))) for _ in range(3))
        self._factors = np.zeros((len(group.rows), group.visible.shape[1], 0), np.float32)
        self._gain = np.zeros((len(group.rows), len(self.weights), 0), np.float32)
        self._patterns: list[str] = []
        self._add_measures(group)
        self._add_patterns(group)
        if is_across(group.record):
            self._add_alignment(group)

    def _add_measures(self, group: LayerGroup) -> None:
        sink = None
        if group.members[0].sink_mass is not None:
            sink = np.concatenate([np.asarray(layer.sink_mass) for layer in group.members])
        S, T = group.record.shape[3], group.record.shape[2]
        values = {"entropy": entropy(self.weights, sink)}
        if S:
            values["sink"] = self.weights[:, :, int(group.visibility.first[0])]
        if not is_across(group.record):
            far = np.abs(np.arange(S) - (group.rows + S - T)[:, None]).astype(np.float32)
            values["distance"] = np.einsum("hrs,rs->hr", self.weights, far)
        count = self.valid.sum(1)
        for name, value in values.items():
            self._set(name, np.where(self.valid, value, 0).sum(1, dtype=np.float64), count, count)

    def _add_patterns(self, group: LayerGroup) -> None:
        across, named = is_across(group.record), group.record.key_tokens is not None
        patterns: dict[str, Pattern] = {
            name: one for name, one in patterns_for(across, named).items() if name in self.column
        }
        if not across:
            patterns |= {name: offset_pattern(offset_of(name) or 0) for name in OFFSETS}
        self._patterns, rows = list(patterns), group.pattern_rows()
        self._factors = np.zeros((*group.visible.shape, len(patterns)), np.float32)  # r S P
        for number, pattern in enumerate(patterns.values()):
            self._factors[..., number] = pattern(rows)[0]
        mass, even, informative = above_even(self.weights, group.visible[None], self.valid, self._factors)  # r H P
        self._gain = np.where(informative, mass - even, -1)
        above = np.where(informative, mass - even, 0).sum(0, dtype=np.float64)
        of = np.where(informative, 1 - even, 0).sum(0, dtype=np.float64)
        for number, name in enumerate(patterns):
            self._set(name, above[:, number], of[:, number], informative[..., number].sum(0))

    def _add_alignment(self, group: LayerGroup) -> None:
        """The score of the whole text counts once."""
        H, _, S = self.weights.shape
        record = group.record.changed(shape=(1, H, len(group.rows), S))
        coverage = Coverage(record)
        coverage.add(
            RowBlock(slice(0, len(group.rows)), self.weights[None], self.valid[None]), group.visible[None, None]
        )
        scores = coverage.scores()
        values, queries = (
            np.array([0.0 if one is None else getattr(one, name) for one in scores]) for name in ("value", "queries")
        )
        self._set(ALIGNMENT, values, (queries > 0).astype(float), queries)

    def _set(self, name: str, above: np.ndarray, of: np.ndarray, queries: np.ndarray) -> None:
        at = self.column[name]
        self.above[:, at], self.of[:, at], self.queries[:, at] = above, of, queries

    def place(self, head: int, pattern: str) -> tuple[int, int]:
        """(measured row, key) where a head shows a pattern best."""
        if pattern not in self._patterns:  # alignment
            row = int(self.weights[head].max(-1).argmax())
            return row, int(self.weights[head, row].argmax())
        at = self._patterns.index(pattern)
        row = int(self._gain[:, head, at].argmax())
        return row, int((self.weights[head, row] * self._factors[row, :, at]).argmax())
