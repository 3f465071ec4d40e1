"""Many sources searched with beams: in batches of like length, each answer in its source's place.

It knows ids and a model's `begin`, torch's or NumPy's. Text, and how it became ids, is not known here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from regard.generation.beams import beam_search
from regard.generation.decoding import Begins
from regard.spacing import check_counts

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
