"""find_heads: the pattern that each head follows on a text, with its score. What the scores mean is defined here."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from regard.arrays import is_whole
from regard.errors import ArgumentError
from regard.messages import Language
from regard.patterns import ALIGNMENT, SHIFTED, View, check_name, chosen, is_separator, is_word, numbered, offset_of
from regard.records import Kind, Record
from regard.trace.measures.row_blocks import Block, is_across, places
from regard.trace.measures.visibility import Sight, sights
from regard.trace.trace import Trace

FEWEST = 3
"""Queries from which on a score says something about a head, and not about two tokens."""
FEWEST_OF_FAMILY = 6
"""The same for patterns of which the best of many is taken: among many, a few queries fit one by chance."""


class Score(NamedTuple):
    """How far a head does one thing."""

    pattern: str
    value: float
    """0 to 1."""
    queries: int
    """How many queries it rests on, of all samples together."""
    even: float
    """The share that looking evenly would have given."""

    @property
    def room(self) -> float:
        """Σ (1 − even) over its queries."""
        return self.queries * (1 - self.even)


class Views:
    """What the patterns are told, block by block."""

    def __init__(self, record: Record, sight: Sight) -> None:
        B, _, _, S = record.shape
        self.record, self.first = record, sight.first
        self.tokens = self.separators = None
        if record.keys is not None:
            self.tokens = numbered(record.keys, B)
            flags = np.array([[is_separator(token) for token in row] for row in record.keys], bool)
            self.separators = np.broadcast_to(flags, (B, S))

    def of(self, rows: slice, seen: np.ndarray) -> View:
        """The view of some rows; `seen` is B h r S."""
        at = np.zeros(rows.stop - rows.start, int) if is_across(self.record) else places(self.record, rows)
        return View(at, np.any(seen, axis=1), self.first, self.tokens, self.separators, self.record.keys)


class PatternSums:
    """Mass and room of every pattern and head, so far."""

    def __init__(self, record: Record) -> None:
        self.patterns = chosen(is_across(record), named=record.keys is not None)
        self.above, self.room, self.queries = np.zeros((3, record.shape[1], len(self.patterns)))  # each H P

    def add(self, block: Block, seen: np.ndarray, view: View) -> None:
        """The rows of one block; `seen` is B h r S."""
        shape = (*view.seen.shape, len(self.patterns))
        counts = np.zeros(shape, block.weights.dtype)  # B r S P
        for number, pattern in enumerate(self.patterns.values()):
            counts[..., number] = pattern(view)
        mass = np.minimum(1, block.weights.swapaxes(1, 2) @ counts)  # B r H P
        lookable = seen.swapaxes(1, 2).astype(counts.dtype)  # B r h S
        number_seen = np.maximum(lookable.sum(-1, keepdims=True), 1)
        even = np.minimum(1, lookable @ counts / number_seen)  # B r h P
        # Who sees no such key, or no other, shows nothing.
        telling = (even > 0) & (even < 1) & block.looking.swapaxes(1, 2)[..., None]  # B r H P
        self.above += np.where(telling, mass - even, 0).sum((0, 1), dtype=np.float64)
        self.room += np.where(telling, 1 - even, 0).sum((0, 1), dtype=np.float64)
        self.queries += telling.sum((0, 1))

    def scores(self) -> list[dict[str, Score]]:
        """For each head, the patterns that any query told about."""
        return [
            {
                name: Score(name, float(np.clip(above / room, 0, 1)), int(queries), float(1 - room / queries))
                for name, above, room, queries in zip(self.patterns, *sums, strict=True)
                if queries
            }
            for sums in zip(self.above, self.room, self.queries, strict=True)
        ]


class Offsets:
    """The same for every distance of query and key at once, in self-attention: sums along the diagonals.

    Where each head sees the same keys, `even` is one number for all of them.
    """

    def __init__(self, record: Record) -> None:
        self.S = record.shape[-1]
        width = max(2 * self.S - 1, 0)  # key − query from −(S − 1) to S − 1
        self.mass, self.even, self.room, self.queries = np.zeros((4, record.shape[1], width))

    def add(self, block: Block, seen: np.ndarray, at: np.ndarray) -> None:
        """The rows of one block; `seen` is B h r S, `at` where its queries stand."""
        looking = block.looking  # B H r
        if looking.shape[1] and bool((looking == looking[:, :1]).all()):
            looking = looking[:, : seen.shape[1]]
        visible = seen & looking[..., None]  # B h r S, or B H r S
        share = visible / np.maximum(seen.sum(-1, keepdims=True), 1)
        telling = visible & (share < 1)
        first = self.S - 1 - int(at[0])
        self.mass += _diagonals(np.where(telling, block.weights, 0), first, self.S)
        self.even += _diagonals(np.where(telling, share, 0), first, self.S)
        self.room += _diagonals(np.where(telling, 1 - share, 0), first, self.S)
        self.queries += _diagonals(telling, first, self.S)

    def of(self, head: int, back: int) -> Score | None:
        """The score of one head for the key so many places back; None where no query has one."""
        at = self.S - 1 - back
        if not 0 <= at < self.mass.shape[1] or not self.queries[head, at]:
            return None
        room, queries = self.room[head, at], int(self.queries[head, at])
        value = float(np.clip((self.mass[head, at] - self.even[head, at]) / room, 0, 1))
        name = f"back-{back}" if back > 0 else f"ahead-{-back}"
        return Score(name, value, queries, float(1 - room / queries))

    def best(self, head: int) -> Score | None:
        """The best of all distances but 0 and 1 back, which have names of their own.

        A third of the queries must have such a key: a distance that a few of them have fits by chance.
        """
        if not self.S:
            return None
        queries = self.queries[head].copy()
        fewest = max(FEWEST_OF_FAMILY, queries.max(initial=0) / 3)
        queries[[self.S - 1, max(self.S - 2, 0)]] = 0
        above = np.where(queries >= fewest, self.mass[head] - self.even[head], 0)
        value = np.where(queries >= fewest, above / np.maximum(self.room[head], 1e-9), -1)
        at = int(value.argmax())
        return self.of(head, self.S - 1 - at) if value[at] > 0 else None


def _diagonals(values: np.ndarray, first: int, S: int) -> np.ndarray:
    """h (2 S − 1): sums of B h r S along its diagonals, where row 0 begins at place `first` of them.

    Row i is laid i places further to the left, so that diagonals become columns.
    """
    rows = values.sum(0, dtype=np.float64)  # h r S
    h, r, _ = rows.shape
    laid = np.zeros((h, r, S + r - 1))
    high, row, column = laid.strides
    skewed = np.lib.stride_tricks.as_strided(laid[:, :, r - 1 :], (h, r, S), (high, row - column, column))
    skewed[:] = rows
    sums = np.zeros((h, 2 * S - 1))
    start = first - (r - 1)
    sums[:, start : start + S + r - 1] = laid.sum(1)
    return sums


class Coverage:
    """The most that each key received from any one query of cross-attention, so far: B H S.

    Where it is known what the queries write, only those count that write a word, and only keys that are words: a head
    may well look from the token just read, so that its last key is left to the query that writes the end.
    """

    def __init__(self, record: Record) -> None:
        B, H, T, S = record.shape
        self.most = np.zeros((B, H, S))
        self.seen = np.zeros((B, S), bool)
        self.queries = np.zeros((B, H), int)
        self.given = np.zeros((B, H))
        """What the queries gave to such keys, all together."""
        self.rows, self.keys = np.ones((B, T), bool), np.ones((B, S), bool)
        if record.written is not None and any(map(any, record.written)):
            self.rows[:] = [[is_word(token) for token in row] for row in record.written]
            if record.keys is not None:
                self.keys[:] = [[is_word(token) for token in row] for row in record.keys]

    def add(self, block: Block, seen: np.ndarray) -> None:
        """The rows of one block; `seen` is B h r S."""
        rows = self.rows[:, None, block.rows]  # B 1 r
        weights = block.weights * (rows[..., None] & self.keys[:, None, None])
        np.maximum(self.most, weights.max(-2), out=self.most)
        self.seen |= seen.any((1, 2)) & self.keys
        self.queries += (block.looking & rows).sum(-1)
        self.given += weights.sum((-1, -2), dtype=np.float64)

    def scores(self) -> list[Score | None]:
        """For each head, the mean of all samples; None where none has enough queries and keys."""
        pairs = np.minimum(self.queries, self.seen.sum(-1)[:, None])  # B H: so many could have a key of their own
        share = np.minimum(1, self.given / np.maximum(self.queries, 1))  # B H: of their weight, what words received
        values = np.clip((self.most.sum(-1) - 1) / np.maximum(pairs - 1, 1), 0, 1) * share**2
        found: list[Score | None] = []
        for head in range(pairs.shape[1]):
            enough = pairs[:, head] >= FEWEST
            queries = int(self.queries[enough, head].sum())
            value = float(values[enough, head].mean()) if queries else 0.0
            found.append(Score(ALIGNMENT, value, queries, 0.0) if queries else None)
        return found


TELLING = 0.3
"""A head whose best score is below this is said to do none of these."""
AS_GOOD = 0.8
"""Of patterns whose scores are within this of the best, the one with the fewest keys names the head."""
MOST_QUERIES = 2048


@dataclass(frozen=True, slots=True)
class Head:
    """One head, with a score for each pattern that this text can tell about.

    Of all distances and of all shifted inductions, `scores` has the best of each; `score` tells of any.
    """

    name: str
    """Of its record."""
    kind: Kind
    head: int
    scores: dict[str, Score]
    _shifted: dict[str, Score] = field(default_factory=dict, repr=False)
    _offsets: Offsets | None = field(default=None, repr=False, compare=False)

    def score(self, pattern: str) -> Score | None:
        """Of any pattern; None where this text tells nothing about it."""
        check_name(pattern)
        offset = offset_of(pattern)
        if offset is not None:
            return None if self._offsets is None else self._offsets.of(self.head, offset)
        return self.scores.get(pattern) or self._shifted.get(pattern)

    @property
    def best(self) -> Score | None:
        """What it does: the highest score, or one nearly as high with fewer keys; None below `TELLING`."""
        sure = [score for score in self.scores.values() if score.queries >= FEWEST]
        top = max((score.value for score in sure), default=0.0)
        if top < TELLING:
            return None
        near = [score for score in sure if score.value >= AS_GOOD * top]
        return min(_without_coincidence(near), key=lambda score: (score.even, -score.value))


def _without_coincidence(near: list[Score]) -> list[Score]:
    """In a text that repeats itself, the same token stands at a fixed distance: then one of two names is wrong.

    The queries that have such a distance and no such token decide: by distance if they keep to it, else by the token.
    """
    by_distance = [score for score in near if offset_of(score.pattern) is not None]
    by_token = [score for score in near if score.pattern.startswith("induction") or score.pattern == "same"]
    if not by_distance or not by_token:
        return near
    one, other = by_distance[0], max(by_token, key=lambda score: score.value)
    room = one.room - other.room
    above = one.value * one.room - other.value * other.room
    keeps_distance = one.queries - other.queries >= FEWEST and room > 0 and above / room >= 0.5
    wrong = by_token if keeps_distance else by_distance
    return [score for score in near if score not in wrong]


@dataclass(frozen=True, slots=True, repr=False)
class Heads:
    """The heads of a Trace: those that do something first, the highest score first. Printed, a table.

    >>> import numpy as np
    >>> trace = Trace.from_weights(np.eye(5)[[0, 0, 1, 2, 3]])
    >>> trace.heads()[0].best.pattern
    'previous'
    """

    heads: tuple[Head, ...]
    queries: int
    """How many queries of the longest text were looked at."""
    of: int
    """How many it has, padding not among them."""
    named: bool
    """Whether the tokens of all records were known, which some patterns need."""

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[Head]:
        return iter(self.heads)

    def __getitem__(self, rank: int) -> Head:
        return self.heads[rank]

    def ranked(self, pattern: str) -> list[Head]:
        """The heads by their score for one pattern, those left out about which this text tells nothing."""
        known = [(head, score) for head in self.heads if (score := head.score(pattern)) is not None]
        return [head for head, _ in sorted(known, key=lambda pair: -pair[1].value)]

    def text(self, pattern: str | None = None, most: int | None = 20, lang: Language | None = None) -> str:
        """The table: the `most` first of them, or of those ranked by one pattern."""
        from regard.views.heads_table import heads_table

        return heads_table(self, pattern, most, lang)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def find_heads(trace: Trace, queries: int | None = MOST_QUERIES) -> Heads:
    """Score every head of the Trace; of a long text some `queries` rows, evenly spread (None: all).

    It needs exact weights: maps as large as the text, or kept q and k. NotKeptError where there are neither.
    """
    if not len(trace):
        raise ArgumentError("trace-empty")
    if queries is not None and not (is_whole(queries) and queries >= 1):
        raise ArgumentError("measure-queries", value=queries)
    seen = list(sights(trace))
    found = [head for sight in seen for head in _heads(sight, queries)]
    best = [(head, head.best) for head in found]
    best.sort(key=lambda pair: -pair[1].value if pair[1] is not None else 1.0)
    longest = max(int(sight.queries.sum(1).max(initial=0)) for sight in seen)
    named = all(record.keys is not None for record in trace)
    return Heads(tuple(head for head, _ in best), min(longest, queries or longest), longest, named)


def _heads(sight: Sight, queries: int | None) -> list[Head]:
    record, sums, across = sight.record, PatternSums(sight.record), is_across(sight.record)
    if not record.has_weights:
        record.weights(rows=slice(0, 1))  # says what to ask for; such a record may claim any length
    views, coverage, offsets = Views(record, sight), Coverage(record), Offsets(record)
    for block in sight.blocks(queries):
        seen = sight.of(block.rows)
        sums.add(block, seen, views.of(block.rows, seen))
        if across:
            coverage.add(block, seen)
        elif record.shape[-1]:
            offsets.add(block, seen, places(record, block.rows))
    scores = sums.scores()
    if across:
        for head, score in enumerate(coverage.scores()):
            if score is not None:
                scores[head][ALIGNMENT] = score
        return [Head(record.name, record.kind, head, each) for head, each in enumerate(scores)]
    return [_with_families(record, head, each, offsets) for head, each in enumerate(scores)]


def _with_families(record: Record, number: int, scores: dict[str, Score], offsets: Offsets) -> Head:
    """The head: its scores, of each family the best one among them."""
    shifted = {name: scores.pop(name) for name in SHIFTED if name in scores}
    sure = [score for score in shifted.values() if score.queries >= FEWEST_OF_FAMILY and score.value > 0]
    best = [max(sure, key=lambda score: score.value, default=None), offsets.best(number)]
    scores |= {score.pattern: score for score in best if score is not None}
    return Head(record.name, record.kind, number, scores, shifted, offsets)
