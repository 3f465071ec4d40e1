"""find_heads: what each head does, on the text at hand, from where it looks.

Every pattern has one score per head, from 0 to 1. Over the queries that have a key of the pattern to look at,

    score = Σ (mass − even) / Σ (1 − even),   at least 0

where `mass` is the weight on the pattern's keys, and `even` what it would be if the query looked evenly at all it may
see: 0 is no more than that, 1 is nothing but the pattern, in short texts and long ones alike, padded or not. What a
query may see, and which queries are padding, is told by `Sight`.

`alignment`, in cross-attention, is how far each query has a key of its own: (Σ over keys of the largest weight that any
query gives it − 1) / (min(T, S) − 1). It is 1 for a diagonal, or any other order, since translations change it; 0 for
heads that look at one key throughout, or evenly at all. Where it is known what each query writes (`Record.written`), it
is measured between words: without queries that write a control token, without such keys, and times the square of the
share that words receive. A head that looks from the token just read loses its first query and its last key by that. Of
the bundled translator's 24 heads the two that align best what is written, by hand-made links
(`benchmarks/sentences/aligned.tsv`), score highest; how even a head's pace is does not find them.

A score tells where a head looks on this text. What the model does with it is another question: attention is not
explanation (Jain and Wallace 2019); `regard.edit` takes a head away and `regard.effect` tells what that changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from regard.errors import ArgumentError
from regard.kinds import is_whole
from regard.patterns import ALIGNMENT, SHIFTED, check_name, offset_of
from regard.records import Kind, Record
from regard.trace.measures.blocks import is_across, places
from regard.trace.measures.scoring import FEWEST, FEWEST_OF_FAMILY, Coverage, Offsets, PatternSums, Score, Views
from regard.trace.measures.sight import Sight, sights
from regard.trace.trace import Trace
from regard.words import Language

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
