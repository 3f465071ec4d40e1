"""find_heads: the attention pattern of each head on a text, with its score. Defines what the scores mean."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from regard.arrays import is_integer
from regard.errors import ArgumentError
from regard.messages import Language
from regard.patterns import (
    ALIGNMENT,
    SHIFTED,
    PatternRows,
    check_name,
    is_separator,
    is_word,
    numbered,
    offset_of,
    patterns_for,
)
from regard.records import Kind, Record
from regard.trace.measures.visibility import RowBlock, Visibility, is_across, places, visibilities
from regard.trace.trace import Trace

MIN_QUERIES = 3
"""Smallest number of queries for a score to describe a head rather than two tokens."""
FEWEST_OF_FAMILY = 6
"""The same where the best of many patterns is used: a few queries match one of many by chance."""


class Score(NamedTuple):
    """How closely a head follows one pattern."""

    pattern: str
    value: float
    """0 to 1."""
    queries: int
    """The number of queries it is based on, of all samples together."""
    even: float
    """The share of the weight on these keys if attention were even."""

    @property
    def headroom(self) -> float:
        """Σ (1 − even) over its queries."""
        return self.queries * (1 - self.even)


class PatternInputs:
    """The inputs of the patterns for any rows of a record; the tokens are compared once."""

    def __init__(self, record: Record, visibility: Visibility) -> None:
        B, _, T, S = record.shape
        self.first, self.texts = visibility.first, record.key_tokens
        self.tokens = self.separators = None
        self._places = np.zeros(T, int) if is_across(record) else places(record, slice(0, T))
        if record.key_tokens is not None:
            self.tokens = numbered(record.key_tokens, B)
            flags = np.array([[is_separator(token) for token in row] for row in record.key_tokens], bool)
            self.separators = np.broadcast_to(flags, (B, S))

    def of(self, rows: slice | np.ndarray, visible: np.ndarray) -> PatternRows:
        """The input for some rows; `visible` is B r S."""
        return PatternRows(self._places[rows], visible, self.first, self.tokens, self.separators, self.texts)


class AboveEven(NamedTuple):
    """How the weight on the keys of patterns compares with even attention, … r H P; `even` may be … r 1 P."""

    mass: np.ndarray
    even: np.ndarray
    informative: np.ndarray
    """Whether a row counts: to some others, no such key or no other key is visible."""


def above_even(weights: np.ndarray, visible: np.ndarray, valid: np.ndarray, factors: np.ndarray) -> AboveEven:
    """Weights … H r S, visible keys … h r S, valid rows … H r, and the factors of the patterns … r S P."""
    mass = np.minimum(1, weights.swapaxes(-3, -2) @ factors)
    visible = visible.swapaxes(-3, -2).astype(factors.dtype)  # … r h S
    number_visible = np.maximum(visible.sum(-1, keepdims=True), 1)
    even = np.minimum(1, visible @ factors / number_visible)  # … r h P
    return AboveEven(mass, even, (even > 0) & (even < 1) & valid.swapaxes(-2, -1)[..., None])


class PatternSums:
    """Sums over the blocks so far, for every pattern and head."""

    def __init__(self, record: Record) -> None:
        self.patterns = patterns_for(is_across(record), named=record.key_tokens is not None)
        self.above, self.headroom, self.queries = np.zeros((3, record.shape[1], len(self.patterns)))  # each H P

    def add(self, block: RowBlock, visible: np.ndarray, rows: PatternRows) -> None:
        """The rows of one block; `visible` is B h r S."""
        factors = np.zeros((*rows.visible.shape, len(self.patterns)), block.weights.dtype)  # B r S P
        for number, pattern in enumerate(self.patterns.values()):
            factors[..., number] = pattern(rows)
        mass, even, informative = above_even(block.weights, visible, block.valid, factors)  # B r H P
        self.above += np.where(informative, mass - even, 0).sum((0, 1), dtype=np.float64)
        self.headroom += np.where(informative, 1 - even, 0).sum((0, 1), dtype=np.float64)
        self.queries += informative.sum((0, 1))

    def scores(self) -> list[dict[str, Score]]:
        """For each head, the patterns with at least one informative query."""
        return [
            {
                name: Score(name, float(np.clip(above / headroom, 0, 1)), int(queries), float(1 - headroom / queries))
                for name, above, headroom, queries in zip(self.patterns, *sums, strict=True)
                if queries
            }
            for sums in zip(self.above, self.headroom, self.queries, strict=True)
        ]


class OffsetSums:
    """The same sums for every distance of query and key at once, in self-attention: sums along the diagonals.

    Where the same keys are visible to all heads, `even` is one number for all of them.
    """

    def __init__(self, record: Record) -> None:
        self.S = record.shape[-1]
        width = max(2 * self.S - 1, 0)  # key − query from −(S − 1) to S − 1
        self.mass, self.even, self.headroom, self.queries = np.zeros((4, record.shape[1], width))

    def add(self, block: RowBlock, visible: np.ndarray, at: np.ndarray) -> None:
        """The rows of one block; `visible` is B h r S, `at` the key positions of its queries."""
        valid = block.valid  # B H r
        if valid.shape[1] and bool((valid == valid[:, :1]).all()):
            valid = valid[:, : visible.shape[1]]
        counted = visible & valid[..., None]  # B h r S, or B H r S
        share = counted / np.maximum(visible.sum(-1, keepdims=True), 1)
        informative = counted & (share < 1)
        first = self.S - 1 - int(at[0])
        self.mass += _diagonals(np.where(informative, block.weights, 0), first, self.S)
        self.even += _diagonals(np.where(informative, share, 0), first, self.S)
        self.headroom += _diagonals(np.where(informative, 1 - share, 0), first, self.S)
        self.queries += _diagonals(informative, first, self.S)

    def of(self, head: int, back: int) -> Score | None:
        """The score of one head for the key `back` places back; None where no query has such a key."""
        at = self.S - 1 - back
        if not 0 <= at < self.mass.shape[1] or not self.queries[head, at]:
            return None
        headroom, queries = self.headroom[head, at], int(self.queries[head, at])
        value = float(np.clip((self.mass[head, at] - self.even[head, at]) / headroom, 0, 1))
        name = f"back-{back}" if back > 0 else f"ahead-{-back}"
        return Score(name, value, queries, float(1 - headroom / queries))

    def best(self, head: int) -> Score | None:
        """The best of all distances except 0 and 1 back, which are patterns of their own.

        A third of the queries must have such a key: a distance that few queries have matches by chance.
        """
        if not self.S:
            return None
        queries = self.queries[head].copy()
        fewest = max(FEWEST_OF_FAMILY, queries.max(initial=0) / 3)
        queries[[self.S - 1, max(self.S - 2, 0)]] = 0
        above = np.where(queries >= fewest, self.mass[head] - self.even[head], 0)
        value = np.where(queries >= fewest, above / np.maximum(self.headroom[head], 1e-9), -1)
        at = int(value.argmax())
        return self.of(head, self.S - 1 - at) if value[at] > 0 else None


def _diagonals(values: np.ndarray, first: int, S: int) -> np.ndarray:
    """h (2 S − 1): sums of B h r S along its diagonals, where row 0 begins at diagonal `first`.

    Row i is shifted i places to the left, so that diagonals become columns.
    """
    rows = values.sum(0, dtype=np.float64)  # h r S
    h, r, _ = rows.shape
    shifted_rows = np.zeros((h, r, S + r - 1))
    high, row, column = shifted_rows.strides
    skewed = np.lib.stride_tricks.as_strided(shifted_rows[:, :, r - 1 :], (h, r, S), (high, row - column, column))
    skewed[:] = rows
    sums = np.zeros((h, 2 * S - 1))
    start = first - (r - 1)
    sums[:, start : start + S + r - 1] = shifted_rows.sum(1)
    return sums


class Coverage:
    """The largest weight that each key received from any query of cross-attention, so far: B H S.

    Where the generated tokens are known, only queries that generate a word and keys that are words count: a head may
    attend from the token just read, so that only the query that generates the end attends to the last key.
    """

    def __init__(self, record: Record) -> None:
        B, H, T, S = record.shape
        self.most = np.zeros((B, H, S))
        self.visible = np.zeros((B, S), bool)
        self.queries = np.zeros((B, H), int)
        self.given = np.zeros((B, H))
        """The total weight of the queries on such keys."""
        self.rows, self.keys = np.ones((B, T), bool), np.ones((B, S), bool)
        if record.written is not None and any(map(any, record.written)):
            self.rows[:] = [[is_word(token) for token in row] for row in record.written]
            if record.key_tokens is not None:
                self.keys[:] = [[is_word(token) for token in row] for row in record.key_tokens]

    def add(self, block: RowBlock, visible: np.ndarray) -> None:
        """The rows of one block; `visible` is B h r S."""
        rows = self.rows[:, None, block.rows]  # B 1 r
        weights = block.weights * (rows[..., None] & self.keys[:, None, None])
        np.maximum(self.most, weights.max(-2), out=self.most)
        self.visible |= visible.any((1, 2)) & self.keys
        self.queries += (block.valid & rows).sum(-1)
        self.given += weights.sum((-1, -2), dtype=np.float64)

    def scores(self) -> list[Score | None]:
        """For each head, the mean over samples; None where no sample has enough queries and keys."""
        pairs = np.minimum(self.queries, self.visible.sum(-1)[:, None])  # B H: queries that could have their own key
        share = np.minimum(1, self.given / np.maximum(self.queries, 1))  # B H: the share of the weight on words
        values = np.clip((self.most.sum(-1) - 1) / np.maximum(pairs - 1, 1), 0, 1) * share**2
        found: list[Score | None] = []
        for head in range(pairs.shape[1]):
            enough = pairs[:, head] >= MIN_QUERIES
            queries = int(self.queries[enough, head].sum())
            value = float(values[enough, head].mean()) if queries else 0.0
            found.append(Score(ALIGNMENT, value, queries, 0.0) if queries else None)
        return found


MIN_SCORE = 0.3
"""A head whose best score is below this follows none of the patterns."""
AS_GOOD = 0.8
"""Among patterns whose score is at least this share of the best, the one with the fewest keys names the head."""
MOST_QUERIES = 2048


@dataclass(frozen=True, slots=True)
class Head:
    """One head, with a score for each pattern that can be measured on this text.

    `scores` has only the best of all distances and the best of all shifted inductions; `score` returns any.
    """

    name: str
    """The name of its record."""
    kind: Kind
    head: int
    scores: dict[str, Score]
    _shifted: dict[str, Score] = field(default_factory=dict, repr=False)
    _offsets: OffsetSums | None = field(default=None, repr=False, compare=False)

    def score(self, pattern: str) -> Score | None:
        """The score of any pattern; None where it cannot be measured on this text."""
        check_name(pattern)
        offset = offset_of(pattern)
        if offset is not None:
            return None if self._offsets is None else self._offsets.of(self.head, offset)
        return self.scores.get(pattern) or self._shifted.get(pattern)

    @property
    def best(self) -> Score | None:
        """The pattern of the head: the highest score, or one nearly as high with fewer keys; None below `MIN_SCORE`."""
        sure = [score for score in self.scores.values() if score.queries >= MIN_QUERIES]
        top = max((score.value for score in sure), default=0.0)
        if top < MIN_SCORE:
            return None
        near = [score for score in sure if score.value >= AS_GOOD * top]
        return min(_without_coincidence(near), key=lambda score: (score.even, -score.value))


def _without_coincidence(near: list[Score]) -> list[Score]:
    """Scores without coincidences: in a text that repeats itself, the same token is at a fixed distance.

    Queries that have a key at this distance, but not the same token, decide: by distance if they attend to it, else by
    token.
    """
    by_distance = [score for score in near if score.pattern == "previous" or offset_of(score.pattern) is not None]
    by_token = [score for score in near if score.pattern.startswith("induction") or score.pattern == "same"]
    if not by_distance or not by_token:
        return near
    one, other = (max(scores, key=lambda score: score.value) for scores in (by_distance, by_token))
    headroom = one.headroom - other.headroom
    above = one.value * one.headroom - other.value * other.headroom
    keeps_distance = one.queries - other.queries >= MIN_QUERIES and headroom > 0 and above / headroom >= 0.5
    wrong = by_token if keeps_distance else by_distance
    return [score for score in near if score not in wrong]


@dataclass(frozen=True, slots=True, repr=False)
class Heads:
    """The heads of a Trace: those with a pattern first, by their score. Prints as a table.

    >>> import numpy as np
    >>> trace = Trace.from_weights(np.eye(5)[[0, 0, 1, 2, 3]])
    >>> trace.heads()[0].best.pattern
    'previous'
    """

    heads: tuple[Head, ...]
    queries: int
    """The number of measured queries of the longest text."""
    of: int
    """The number of its queries, without padding."""
    named: bool
    """Whether the tokens of all records were known, which some patterns need."""

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[Head]:
        return iter(self.heads)

    def __getitem__(self, rank: int) -> Head:
        return self.heads[rank]

    def ranked(self, pattern: str) -> list[Head]:
        """The heads by their score for one pattern; heads without a score are left out."""
        known = [(head, score) for head in self.heads if (score := head.score(pattern)) is not None]
        return [head for head, _ in sorted(known, key=lambda pair: -pair[1].value)]

    def text(self, pattern: str | None = None, most: int | None = 20, lang: Language | None = None) -> str:
        """The table of the first `most` heads, or of those ranked by one pattern."""
        from regard.views.tables import heads_table

        return heads_table(self, pattern, most, lang)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def find_heads(trace: Trace, queries: int | None = MOST_QUERIES) -> Heads:
    """Score every head of the Trace; a long text uses about `queries` rows, evenly spread (None: all).

    Needs exact weights: maps as large as the text, or kept q and k. NotKeptError where there are neither.
    """
    if not len(trace):
        raise ArgumentError("trace-empty")
    if queries is not None and not (is_integer(queries) and queries >= 1):
        raise ArgumentError("measure-queries", value=queries)
    every = list(visibilities(trace))
    found = [head for visibility in every for head in _heads(visibility, queries)]
    best = [(head, head.best) for head in found]
    best.sort(key=lambda pair: -pair[1].value if pair[1] is not None else 1.0)
    longest = max(int(visibility.queries.sum(1).max(initial=0)) for visibility in every)
    named = all(record.key_tokens is not None for record in trace)
    return Heads(tuple(head for head, _ in best), min(longest, queries or longest), longest, named)


def _heads(visibility: Visibility, queries: int | None) -> list[Head]:
    record, sums, across = visibility.record, PatternSums(visibility.record), is_across(visibility.record)
    if not record.has_weights:
        record.weights(rows=slice(0, 1))  # raises with the fix; such a record may claim any length
    inputs, coverage, offsets = PatternInputs(record, visibility), Coverage(record), OffsetSums(record)
    for block in visibility.blocks(queries):
        visible = visibility.of(block.rows)
        sums.add(block, visible, inputs.of(block.rows, np.any(visible, axis=1)))
        if across:
            coverage.add(block, visible)
        elif record.shape[-1]:
            offsets.add(block, visible, places(record, block.rows))
    scores = sums.scores()
    if across:
        for head, score in enumerate(coverage.scores()):
            if score is not None:
                scores[head][ALIGNMENT] = score
        return [Head(record.name, record.kind, head, each) for head, each in enumerate(scores)]
    return [_with_families(record, head, each, offsets) for head, each in enumerate(scores)]


def _with_families(record: Record, number: int, scores: dict[str, Score], offsets: OffsetSums) -> Head:
    """The head with its scores, including the best one of each family."""
    shifted = {name: scores.pop(name) for name in SHIFTED if name in scores}
    sure = [score for score in shifted.values() if score.queries >= FEWEST_OF_FAMILY and score.value > 0]
    best = [max(sure, key=lambda score: score.value, default=None), offsets.best(number)]
    scores |= {score.pattern: score for score in best if score is not None}
    return Head(record.name, record.kind, number, scores, shifted, offsets)
