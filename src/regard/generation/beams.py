"""Beam search for one or several prompts, and for many sources in batches of similar length, as in translation."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from regard.arrays import Array, check_counts, is_number, to_numpy
from regard.errors import ArgumentError
from regard.generation.prompts import (
    Decoding,
    GenerationModel,
    Ids,
    begin_decoding,
    check_chunk,
    eos_ids,
    parse_prompts,
    read,
)
from regard.generation.sampling import is_on_other_device, scores_of
from regard.reference import log_sum_exp
from regard.reference.attention import computing_dtype

CLOSE = 1e-6
"""Logits this close count as equal: their log-probabilities may round to the same value, and then the lower id wins."""
GROUPS = 16
"""Times n: with this number of groups, few ids lie above the bound given by the groups' maxima."""
AT_ONCE = 2**16
"""Numbers exponentiated at once: a block that fits into a core's cache is twice as fast."""


class Candidates(NamedTuple):
    """Possible next ids with their log-probabilities, sorted by row and then by id; all (M,)."""

    rows: np.ndarray
    ids: np.ndarray
    log_probs: np.ndarray

    def of_rows(self, start: int, stop: int) -> "Candidates":
        """The candidates of rows start … stop - 1, with rows counted from 0."""
        first, last = np.searchsorted(self.rows, (start, stop))
        return Candidates(self.rows[first:last] - start, self.ids[first:last], self.log_probs[first:last])


def top_candidates(logits: Array, n: int) -> Candidates:
    """The n most likely ids of each row of logits (N, W), plus ties; ids with probability 0 are left out.

    Raises ArgumentError for a row without a finite maximum.

    >>> found = top_candidates(np.log([[0.5, 0.125, 0.25, 0.125]]), 2)
    >>> found.ids.tolist(), np.exp(found.log_probs).tolist()
    ([0, 2], [0.5, 0.25])
    """
    n = min(n, logits.shape[-1])
    rows, ids, scores, totals = _on_device(logits, n) if is_on_other_device(logits) else _on_host(logits, n)
    possible = scores > -np.inf
    rows, ids, scores = rows[possible], ids[possible], scores[possible]
    return Candidates(rows, ids, scores - totals[rows])


def _on_host(logits: Array, n: int) -> tuple[np.ndarray, ...]:
    """Rows, ids and scores (M,) of the candidates, and each row's log-sum of exponentials (N,)."""
    scores = to_numpy(logits)
    scores = scores.astype(computing_dtype(scores), copy=False)
    N, W = scores.shape
    if not np.isfinite(scores.max(-1)).all():
        scores_of(scores)  # raises the error with the row
    # At least n ids, and seldom many more, are greater than or equal to the n-th largest of the groups' maxima.
    groups = min(W, GROUPS * n)
    highest = scores[:, : W // groups * groups].reshape(N, -1, groups).max(1)
    bound = np.partition(highest, -n)[:, -n, None]
    rows, ids = divmod(np.flatnonzero(scores >= bound - CLOSE), W)
    step = max(1, AT_ONCE // W)
    totals = [log_sum_exp(scores[at : at + step].astype(np.float64)) for at in range(0, N, step)]
    return rows, ids, scores[rows, ids].astype(np.float64), np.concatenate(totals)


def _on_device(logits: Array, n: int) -> tuple[np.ndarray, ...]:
    """The same for a torch tensor, computed on its device."""
    scores = logits.double()
    best = scores.topk(n).values  # NaN comes first
    if not np.isfinite(to_numpy(best[:, 0])).all():
        scores_of(logits)
    rows, ids = (scores >= best[:, -1:] - CLOSE).nonzero(as_tuple=True)
    return tuple(to_numpy(x) for x in (rows, ids, scores[rows, ids], scores.logsumexp(-1)))


class Beam(NamedTuple):
    """A finished text, without prompt and eos, and its score."""

    ids: list[int]
    score: float


class _OpenBeam(NamedTuple):
    """An unfinished text; it continues `row` of the decoding."""

    ids: list[int]
    total: float
    row: int


class _Options(NamedTuple):
    """The options of one search."""

    beams: int
    max_new: int
    eos: tuple[int, ...]
    length_penalty: float
    early_stopping: bool
    best: int

    @property
    def n_candidates(self) -> int:
        """Candidates to consider: at least `beams` of them do not end, because each beam has len(eos) that do."""
        return self.beams * (1 + len(self.eos))

    def score(self, total: float, length: int) -> float:
        """A sum of log-probabilities, normalised by length."""
        return total / length**self.length_penalty


def beam_search(
    model: GenerationModel | Decoding,
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
    """The `best` texts that beam search finds for each prompt, best first.

    score = sum of log-probabilities / length ** length_penalty. The length is the number of new ids including the eos,
    whose probability is in the sum too; the prompt does not count. Log-probabilities are negative, so a penalty above 0
    favours long texts, one below 0 short ones.

    At each step, those of the `beams` most likely continuations that end with an eos are finished, and the most likely
    `beams` of the others are continued. At `max_new` (one number, or one for each prompt) all end.
    early_stopping=True stops when `beams` texts are finished; False continues until no open beam can become one of the
    `best`.

    One flat prompt returns a list of Beams, several return a list each. Raises ArgumentError before the model runs.
    """
    rows = parse_prompts(prompts)
    check_chunk(chunk)
    limits = _limits(max_new, len(rows.ids))
    _check_options(beams, best, max(limits), length_penalty)
    own_options = ("sources", "beams", "max_new", "eos", "length_penalty", "early_stopping", "best", "chunk")
    decoding = begin_decoding(model, sources, len(rows.ids), begin_options, own_options)
    if beams > decoding.vocab_size:
        raise ArgumentError("beams-vocabulary", beams=beams, W=decoding.vocab_size)
    ends = eos_ids(eos, decoding, rows, max(limits))
    searches = [_Search(_Options(beams, limit, ends, length_penalty, bool(early_stopping), best)) for limit in limits]
    found = _search(decoding, read(decoding.step, rows, chunk), searches)
    return found[0] if rows.is_single else found


def _search(decoding: Decoding, logits: Array, searches: list["_Search"]) -> list[list[Beam]]:
    """Advance all searches together until no beam is open. Returns the best texts of each."""
    length = 0
    while True:
        length += 1
        candidates = top_candidates(logits, searches[0].options.n_candidates)  # rows: the open beams of all searches
        rows: list[int] = []
        at = 0
        for search in searches:
            n = len(search.open)
            search.advance(candidates.of_rows(at, at + n), length)
            rows += [at + beam.row for beam in search.open]
            at += n
        if not rows:
            return [search.finished[: search.options.best] for search in searches]
        if rows != list(range(at)):
            decoding.select(rows)
        logits = decoding.step(np.array([[beam.ids[-1]] for search in searches for beam in search.open]))


class _Search:
    """The search of one sample: its open and finished beams, each best first."""

    def __init__(self, options: _Options) -> None:
        self.options = options
        self.open = [_OpenBeam([], 0.0, 0)]
        self.finished: list[Beam] = []

    def advance(self, candidates: Candidates, length: int) -> None:
        """Extend every open beam, a row of `candidates`, to `length` ids."""
        if not self.open:
            return
        options = self.options
        beams, eos = options.beams, options.eos
        is_last = length == options.max_new
        totals = np.array([beam.total for beam in self.open])[candidates.rows] + candidates.log_probs
        order = np.argsort(-totals, kind="stable")[: options.n_candidates]  # ties: first the first beam, the lowest id
        still_open: list[_OpenBeam] = []
        for rank, at in enumerate(order.tolist()):
            row, id, total = int(candidates.rows[at]), int(candidates.ids[at]), float(totals[at])
            ids = self.open[row].ids
            if id in eos or is_last:
                if rank < beams:
                    self.finished.append(Beam(ids if id in eos else [*ids, id], options.score(total, length)))
            elif len(still_open) < beams:
                still_open.append(_OpenBeam([*ids, id], total, row))
        self.finished = sorted(self.finished, key=lambda beam: -beam.score)[:beams]
        self.open = [] if self._is_done(still_open, length) else still_open

    def _is_done(self, still_open: list[_OpenBeam], length: int) -> bool:
        """Whether no open beam can change the result."""
        options = self.options
        if not still_open or options.early_stopping:
            return len(self.finished) >= options.beams or not still_open
        if len(self.finished) < options.best:
            return False
        # A total only falls. Divided by length ** penalty it is largest at the longest length, or at the next one.
        best_length = options.max_new if options.length_penalty > 0 else length + 1
        return options.score(still_open[0].total, best_length) <= self.finished[options.best - 1].score


def _limits(max_new: int | Sequence[int], prompts: int) -> list[int]:
    """The largest number of new ids for each prompt."""
    limits = list(max_new) if isinstance(max_new, Sequence) else [max_new] * prompts
    if len(limits) != prompts:
        raise ArgumentError("max-new-count", found=len(limits), wanted=prompts)
    for limit in limits:
        check_counts(max_new=(limit, 1))
    return limits


def _check_options(beams: int, best: int, max_new: int, length_penalty: float) -> None:
    """Check the options that do not depend on the model."""
    check_counts(beams=(beams, 1), best=(best, 1))
    if best > beams:
        raise ArgumentError("beams-best", best=best, beams=beams)
    # A power of a length must not overflow: e^700 is about the largest float64.
    if not is_number(length_penalty) or abs(length_penalty) * math.log(max_new + 1) > 700:
        raise ArgumentError("length-penalty-value", value=length_penalty)


MAX_RATIO, MAX_EXTRA = 2, 10
"""A translation has at most MAX_RATIO ids per source id, plus MAX_EXTRA (`max_translation_length`)."""
BATCH_TOKENS = 8192
"""Ids of a batch, counted once for each beam: about a hundred sentences with five beams."""

BatchResult = list[tuple[int, list[int]]]
"""The result of a batch: the index of each source, and the ids found."""
MapBatches = Callable[[Callable[[list[int]], BatchResult], Iterable[list[int]]], Iterable[BatchResult]]
"""Applies a function to batches, as `map` does: one after the other, or several at once."""


class TranslationModel(GenerationModel, Protocol):
    """An encoder-decoder model with its configuration, which limits the length of a text."""

    @property
    def config(self) -> Any:
        """A TransformerConfig."""


def search_many(
    model: TranslationModel,
    sources: Sequence[list[int]],
    *,
    bos: int,
    eos: int,
    beams: int = 5,
    length_penalty: float = 1.0,
    batch_tokens: int = BATCH_TOKENS,
    run: MapBatches = map,
) -> list[list[int]]:
    """The best ids by beam search for each source, which must end with its eos; [] for an empty source.

    The result excludes `bos` and `eos`. Raises the same errors as `beam_search`.

    batch_tokens   ids of a batch, counted once for each beam
    run            applies the search to the batches; `kernels.division.run_all` uses one worker per core
    """
    check_counts(batch_tokens=(batch_tokens, 1), beams=(beams, 1))

    def search_batch(batch: list[int]) -> BatchResult:
        best = beam_search(
            model,
            [[bos]] * len(batch),
            sources=[sources[at] for at in batch],
            beams=beams,
            max_new=[max_translation_length(sources[at], model.config.max_len) for at in batch],
            eos=eos,
            length_penalty=length_penalty,
        )
        return [(at, beams[0].ids if beams else []) for at, beams in zip(batch, best, strict=True)]

    found: list[list[int]] = [[] for _ in sources]
    for batch in run(search_batch, _batches(sources, max(1, batch_tokens // beams))):
        for at, ids in batch:
            found[at] = ids
    return found


def max_translation_length(source: list[int], max_len: int | None) -> int:
    """The largest number of ids of a translation. It depends only on its own source, not on the batch.

    With its bos it fits into the model, so that the model can read all of it again.

    >>> max_translation_length([5, 6, 2], None), max_translation_length([5, 6, 2], 12)
    (16, 11)
    """
    longest = MAX_RATIO * len(source) + MAX_EXTRA
    return longest if max_len is None else min(longest, max_len - 1)


def _batches(sources: Sequence[list[int]], tokens: int) -> Iterator[list[int]]:
    """Batches of source indices, longest first; with padding, a batch has at most `tokens` ids.

    >>> list(_batches([[1], [], [1, 2, 3], [1, 2], [1, 2]], 4))
    [[2], [3, 4], [0]]
    """
    order = sorted((at for at, ids in enumerate(sources) if ids), key=lambda at: -len(sources[at]))
    while order:
        size = max(1, tokens // len(sources[order[0]]))
        yield order[:size]
        order = order[size:]
