"""Beam search: several texts are continued side by side, and the best that end are kept.

Log-probabilities are float64 whatever the model, and of equals the earlier beam and the lower id win, so that the same
logits give the same texts.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from regard.errors import ArgumentError
from regard.generation.decoding import Begins, Decoding
from regard.generation.likely import Likely, likely
from regard.generation.prompts import Ids, ends_of, rows_of
from regard.generation.reading import begun, check_chunk, read
from regard.kinds import Array
from regard.spacing import check_counts, is_number


class Beam(NamedTuple):
    """A text that was found, without its prompt and its eos, and its score."""

    ids: list[int]
    score: float


class _Open(NamedTuple):
    """A text that is still being written: it goes on from `row` of the decoding."""

    ids: list[int]
    total: float
    row: int


class _Rules(NamedTuple):
    """What one search is asked for."""

    beams: int
    max_new: int
    eos: tuple[int, ...]
    length_penalty: float
    early_stopping: bool
    best: int

    @property
    def ways(self) -> int:
        """Of so many continuations, at least `beams` do not end: each beam has only len(eos) ways to."""
        return self.beams * (1 + len(self.eos))

    def score(self, total: float, length: int) -> float:
        """A sum of log-probabilities, made comparable between lengths."""
        return total / length**self.length_penalty


def beam_search(
    model: Begins | Decoding,
    prompts: Any,
    *,
    sources: Any = None,
    beams: int = 4,
    max_new: int | Sequence[int],
    eos: Ids,
    length_penalty: float = 1.0,
    early_stopping: bool = True,
    best: int = 1,
    chunk: int | None = None,
    **begin_options: Any,
) -> list[Any]:
    """The `best` texts that a search with this many beams finds for each prompt, best first.

    score = sum of log-probabilities / length ** length_penalty. The length is the number of new ids, the eos among
    them (its probability is in the sum too); the prompt does not count. Log-probabilities are negative: a penalty
    above 0 is kind to long texts, one below 0 to short ones.

    At each step the `beams` likeliest continuations count: those that end with an eos are finished, and the likeliest
    `beams` of the others are continued; at `max_new`, for all or a list with one for each prompt, all end.
    early_stopping=True stops when as many are finished as there are beams; False goes on until nothing that is still
    open can become one of the `best`.

    One flat prompt gives a list of Beams, several give a list each. Raises ArgumentError before anything runs.
    """
    rows = rows_of(prompts)
    check_chunk(chunk)
    rooms = _rooms(max_new, len(rows.ids))
    _check_asked(beams, best, max(rooms), length_penalty)
    beside = ("sources", "beams", "max_new", "eos", "length_penalty", "early_stopping", "best", "chunk")
    decoding = begun(model, sources, len(rows.ids), begin_options, beside)
    if beams > decoding.vocab_size:
        raise ArgumentError("beams-vocabulary", beams=beams, W=decoding.vocab_size)
    ends = ends_of(eos, decoding, rows, max(rooms))
    searches = [_Search(_Rules(beams, room, ends, length_penalty, bool(early_stopping), best)) for room in rooms]
    found = _search(decoding, read(decoding.step, rows, chunk), searches)
    return found[0] if rows.alone else found


def _search(decoding: Decoding, logits: Array, searches: list["_Search"]) -> list[list[Beam]]:
    """Advance all searches together until none has anything open; the best that each has found."""
    length = 0
    while True:
        length += 1
        ways = likely(logits, searches[0].rules.ways)  # of N rows, the open beams of all searches one after the other
        rows: list[int] = []
        at = 0
        for search in searches:
            n = len(search.open)
            search.advance(ways.part(at, at + n), length)
            rows += [at + beam.row for beam in search.open]
            at += n
        if not rows:
            return [search.finished[: search.rules.best] for search in searches]
        if rows != list(range(at)):
            decoding.select(rows)
        logits = decoding.step(np.array([[beam.ids[-1]] for search in searches for beam in search.open]))


class _Search:
    """The search of one sample: what is open and what is finished, each best first."""

    def __init__(self, rules: _Rules) -> None:
        self.rules = rules
        self.open = [_Open([], 0.0, 0)]
        self.finished: list[Beam] = []

    def advance(self, ways: Likely, length: int) -> None:
        """Every open beam, a row of `ways`, grows to `length` ids."""
        if not self.open:
            return
        beams, eos = self.rules.beams, self.rules.eos
        last = length == self.rules.max_new
        totals = np.array([beam.total for beam in self.open])[ways.rows] + ways.chances
        likeliest = np.argsort(-totals, kind="stable")[: self.rules.ways]  # of equals the first beam, the lowest id
        going: list[_Open] = []
        for rank, at in enumerate(likeliest.tolist()):
            row, id, total = int(ways.rows[at]), int(ways.ids[at]), float(totals[at])
            ids = self.open[row].ids
            if id in eos or last:
                if rank < beams:
                    self.finished.append(Beam(ids if id in eos else [*ids, id], self.rules.score(total, length)))
            elif len(going) < beams:
                going.append(_Open([*ids, id], total, row))
        self.finished = sorted(self.finished, key=lambda beam: -beam.score)[:beams]
        self.open = [] if self._settled(going, length) else going

    def _settled(self, going: list[_Open], length: int) -> bool:
        """Whether nothing that could still come is wanted."""
        rules = self.rules
        if not going or rules.early_stopping:
            return len(self.finished) >= rules.beams or not going
        if len(self.finished) < rules.best:
            return False
        # A total only falls. Divided by length ** penalty it is highest at the longest length, or at the next one.
        kindest = rules.max_new if rules.length_penalty > 0 else length + 1
        return rules.score(going[0].total, kindest) <= self.finished[rules.best - 1].score


def _rooms(max_new: int | Sequence[int], prompts: int) -> list[int]:
    """How many ids each prompt may be given."""
    rooms = list(max_new) if isinstance(max_new, Sequence) else [max_new] * prompts
    if len(rooms) != prompts:
        raise ArgumentError("max-new-count", found=len(rooms), wanted=prompts)
    for room in rooms:
        check_counts(max_new=(room, 1))
    return rooms


def _check_asked(beams: int, best: int, max_new: int, length_penalty: float) -> None:
    """What can be wrong whatever the model: the numbers asked for."""
    check_counts(beams=(beams, 1), best=(best, 1))
    if best > beams:
        raise ArgumentError("beams-best", best=best, beams=beams)
    # Powers of a length must be computable: e^700 is about the largest float64.
    if not is_number(length_penalty) or abs(length_penalty) * math.log(max_new + 1) > 700:
        raise ArgumentError("length-penalty-value", value=length_penalty)
