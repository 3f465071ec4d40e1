"""Beam search: over one source, or over many in batches of similar length."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from regard.arrays import Array, to_numpy
from regard.errors import ArgumentError
from regard.generation.decoding import Begins, Decoding
from regard.generation.prompt_reading import begun, check_chunk, read
from regard.generation.prompts import Ids, ends_of, rows_of
from regard.generation.sampling import is_elsewhere, scores_of
from regard.position_rules import check_counts, is_number
from regard.reference import log_sum_exp
from regard.reference.exponentials import computing_dtype

CLOSE = 1e-6
"""Logits this close are kept together: as log-probabilities they may round to equals, whose lower id wins."""
GROUPS = 16
"""Times n: so many groups of ids have few members above the bound that their maxima give, and few maxima."""
AT_ONCE = 2**16
"""Numbers that are raised to powers at once: what fits beside a core is twice as quick."""


class Likely(NamedTuple):
    """Ids that may follow, row after row and in a row by id, with their log-probabilities; all (M,)."""

    rows: np.ndarray
    ids: np.ndarray
    chances: np.ndarray

    def part(self, start: int, stop: int) -> "Likely":
        """Those of some rows, which count from 0 again."""
        first, last = np.searchsorted(self.rows, (start, stop))
        return Likely(self.rows[first:last] - start, self.ids[first:last], self.chances[first:last])


def likely(logits: Array, n: int) -> Likely:
    """At least the n likeliest ids of each row of logits (N, W), with all that are as likely; none that cannot be.

    Raises ArgumentError for a row with nothing to choose.

    >>> found = likely(np.log([[0.5, 0.125, 0.25, 0.125]]), 2)
    >>> found.ids.tolist(), np.exp(found.chances).tolist()
    ([0, 2], [0.5, 0.25])
    """
    n = min(n, logits.shape[-1])
    rows, ids, scores, totals = _there(logits, n) if is_elsewhere(logits) else _here(logits, n)
    possible = scores > -np.inf
    rows, ids, scores = rows[possible], ids[possible], scores[possible]
    return Likely(rows, ids, scores - totals[rows])


def _here(logits: Array, n: int) -> tuple[np.ndarray, ...]:
    """Rows, ids and scores (M,) of what is likely, and each row's log-sum of exponentials (N,)."""
    scores = to_numpy(logits)
    scores = scores.astype(computing_dtype(scores), copy=False)
    N, W = scores.shape
    if not np.isfinite(scores.max(-1)).all():
        scores_of(scores)  # which says the row
    # The n-th highest of some groups' maxima has at least n ids above it or equal to it, and seldom many more.
    groups = min(W, GROUPS * n)
    highest = scores[:, : W // groups * groups].reshape(N, -1, groups).max(1)
    bound = np.partition(highest, -n)[:, -n, None]
    rows, ids = divmod(np.flatnonzero(scores >= bound - CLOSE), W)
    few = max(1, AT_ONCE // W)
    totals = [log_sum_exp(scores[at : at + few].astype(np.float64)) for at in range(0, N, few)]
    return rows, ids, scores[rows, ids].astype(np.float64), np.concatenate(totals)


def _there(logits: Array, n: int) -> tuple[np.ndarray, ...]:
    """The same where the logits are, of a torch tensor."""
    scores = logits.double()
    best = scores.topk(n).values  # NaN comes first
    if not np.isfinite(to_numpy(best[:, 0])).all():
        scores_of(logits)
    rows, ids = (scores >= best[:, -1:] - CLOSE).nonzero(as_tuple=True)
    return tuple(to_numpy(x) for x in (rows, ids, scores[rows, ids], scores.logsumexp(-1)))


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


MAX_RATIO, MAX_EXTRA = 2, 10
"""A translation has at most so many ids for each of its source, and so many more (`room_for`)."""
BATCH_TOKENS = 8192
"""Ids of a batch, counted once for each beam: some hundred sentences of five beams."""

Found = list[tuple[int, list[int]]]
"""What was found for a batch: the place of each source, and its ids."""
Run = Callable[[Callable[[list[int]], Found], Iterable[list[int]]], Iterable[Found]]
"""How batches are worked on, as `map` does it: one after the other, or some at once."""


class Translates(Begins, Protocol):
    """A model with an encoder and a decoder, and the configuration that says how long its texts may be."""

    @property
    def config(self) -> Any:
        """A TransformerConfig."""


def search_many(
    model: Translates,
    sources: Sequence[list[int]],
    *,
    bos: int,
    eos: int,
    beams: int = 5,
    length_penalty: float = 1.0,
    batch_tokens: int = BATCH_TOKENS,
    run: Run = map,
) -> list[list[int]]:
    """The likeliest ids that beam search finds for each source, which ends with its eos; [] for an empty one.

    What is found begins after `bos` and stops before `eos`. Raises as `beam_search` does.

    batch_tokens   ids of a batch, counted once for each beam
    run            who works on the batches; `kernels.blocked.workers.run_all` takes one for each core
    """
    check_counts(batch_tokens=(batch_tokens, 1), beams=(beams, 1))

    def searched(batch: list[int]) -> Found:
        best = beam_search(
            model,
            [[bos]] * len(batch),
            sources=[sources[at] for at in batch],
            beams=beams,
            max_new=[room_for(sources[at], model.config.max_len) for at in batch],
            eos=eos,
            length_penalty=length_penalty,
        )
        return [(at, beams[0].ids if beams else []) for at, beams in zip(batch, best, strict=True)]

    found: list[list[int]] = [[] for _ in sources]
    for batch in run(searched, _batches(sources, max(1, batch_tokens // beams))):
        for at, ids in batch:
            found[at] = ids
    return found


def room_for(source: list[int], max_len: int | None) -> int:
    """How many ids a translation may have: by its own source alone, whatever else is in the batch.

    With its bos it is no longer than the model, which may want to read all of it again.

    >>> room_for([5, 6, 2], None), room_for([5, 6, 2], 12)
    (16, 11)
    """
    room = MAX_RATIO * len(source) + MAX_EXTRA
    return room if max_len is None else min(room, max_len - 1)


def _batches(sources: Sequence[list[int]], tokens: int) -> Iterator[list[int]]:
    """Places of sources, longest first, so many together that with padding they have at most `tokens` ids.

    >>> list(_batches([[1], [], [1, 2, 3], [1, 2], [1, 2]], 4))
    [[2], [3, 4], [0]]
    """
    order = sorted((at for at, ids in enumerate(sources) if ids), key=lambda at: -len(sources[at]))
    while order:
        fitting = max(1, tokens // len(sources[order[0]]))
        yield order[:fitting]
        order = order[fitting:]
