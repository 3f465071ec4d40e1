"""Generation one id at a time: read the prompts, pick, read what was picked, pick again.

`generate` gives the texts when they are there, `stream` each id as soon as it is there. How ids are picked, and how a
model remembers what it has read, are values passed in.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from regard.errors import ArgumentError
from regard.generation.decoding import Begins
from regard.generation.picking import GREEDY, Pick, Picker, check_logits
from regard.generation.prompts import Ids, Rows, check_ids, check_room, rows_of, special_ids
from regard.generation.reading import begun, check_chunk, read
from regard.generation.session import Session
from regard.kinds import Array, is_tensor, to_numpy
from regard.spacing import check_counts


def generate(
    model: Begins,
    prompts: Any,
    *,
    sources: Any = None,
    max_new: int,
    pick: Pick = GREEDY,
    eos: Ids = None,
    pad: int = 0,
    chunk: int | None = None,
    session: Session | None = None,
    **begin_options: Any,
) -> list[Any]:
    """The ids that the model adds to each prompt: at most `max_new`, up to an `eos`, which is left out.

    prompts   one list of ids, which gives one list; or several of any lengths, which give a list each
    sources   for a model with an encoder: as many as prompts, of any lengths
    pick      GREEDY, or Sampling(…)
    eos       the id, or the ids, that end a text; a text that has ended goes on as `pad`, which nobody sees
    chunk     read the prompts so many columns at a time
    session   go on where an earlier call with the same beginning stopped; one prompt

    What else is given goes to `model.begin`. Raises ArgumentError before anything runs, and where logits are NaN.

    >>> from regard.config import TransformerConfig
    >>> from regard.config.weights import weight_shapes
    >>> from regard.reference import Transformer
    >>> config = TransformerConfig.gpt2(vocab_size=5, d_model=4, n_heads=1, d_ff=4, n_layers=1, max_len=8)
    >>> weights = {name: np.zeros(shape) for name, shape in weight_shapes(config).items()}
    >>> generate(Transformer(config, weights), [3, 1], max_new=4)  # all ids equally likely: the lowest
    [0, 0, 0, 0]
    """
    run = _begin(model, prompts, sources, max_new, pick, eos, pad, chunk, session, begin_options)
    columns = list(run.columns(watched=bool(run.eos)))  # all of them, before anyone asks for values
    texts = [_until(text, run.eos) for text in zip(*(to_numpy(ids).tolist() for ids in columns), strict=True)]
    return texts[0] if run.rows.alone else texts


def stream(
    model: Begins,
    prompts: Any,
    *,
    sources: Any = None,
    max_new: int,
    pick: Pick = GREEDY,
    eos: Ids = None,
    pad: int = 0,
    chunk: int | None = None,
    session: Session | None = None,
    **begin_options: Any,
) -> Iterator[Any]:
    """What `generate` gives, while it comes: for one flat prompt its ids, else one list per step with an id per row.

    A row that has ended has None; the stream ends when all have. Arguments are looked at now, not when the first id is
    asked for. Whoever stops early has lost nothing: a session knows exactly what was read.
    """
    run = _begin(model, prompts, sources, max_new, pick, eos, pad, chunk, session, begin_options)
    return _told(run)


def _told(run: "_Run") -> Iterator[Any]:
    ended: set[int] = set()
    for column in run.columns(watched=True):
        ids = to_numpy(column).tolist()
        ended |= {row for row, id in enumerate(ids) if id in run.eos}
        if len(ended) == len(ids):
            return
        yield ids[0] if run.rows.alone else [None if row in ended else id for row, id in enumerate(ids)]


def _until(text: tuple[int, ...], eos: tuple[int, ...]) -> list[int]:
    """A text up to its end."""
    end = next((at for at, id in enumerate(text) if id in eos), len(text))
    return list(text[:end])


class _Run(NamedTuple):
    """One request, looked at and ready to go."""

    decoding: Any
    """A Decoding, or the Session around one."""
    rows: Rows
    picker: Picker
    max_new: int
    eos: tuple[int, ...]
    pad: int
    chunk: int | None

    def columns(self, watched: bool) -> Iterator[Array]:
        """The picked ids, (B,), step after step. Unless `watched`, they stay on the model's device and nobody waits."""
        given = self.decoding
        if isinstance(given, Session):
            logits = given.read(self.rows.ids, self.chunk)
        else:
            logits = read(given.step, self.rows, self.chunk)
        ended = np.zeros(len(self.rows.ids), dtype=bool)
        for left in reversed(range(self.max_new)):
            # NaN stays: what went wrong unwatched still shows in the last logits.
            if watched or left == 0 or not is_tensor(logits):
                check_logits(logits)
            ids = self.picker(logits)
            if self.eos:
                values = np.where(ended, self.pad, to_numpy(ids))
                ids = values if ended.any() else ids  # what need not change stays on its device
                ended |= np.isin(values, self.eos)
            yield ids
            if left == 0 or ended.all():
                return
            logits = given.step(ids[:, None])


def _begin(
    model: Begins,
    prompts: Any,
    sources: Any,
    max_new: int,
    pick: Pick,
    eos: Ids,
    pad: int,
    chunk: int | None,
    session: Session | None,
    options: dict[str, Any],
) -> _Run:
    """Everything that can be wrong is found here: first what needs no model, then what its vocabulary decides."""
    rows = rows_of(prompts)
    check_counts(max_new=(max_new, 1))
    check_chunk(chunk)
    if isinstance(pick, type) or not callable(getattr(pick, "start", None)):
        raise ArgumentError("pick-kind", found=repr(pick))
    if session is None:
        decoding = begun(model, sources, len(rows.ids), options)
    else:
        if len(rows.ids) != 1:
            raise ArgumentError("session-one", found=len(rows.ids))
        if sources is not None or options:
            named = ", ".join((["sources"] if sources is not None else []) + list(options))
            raise ArgumentError("session-begun", names=named)
        decoding = session.decoding
    vocab_size = decoding.vocab_size
    check_ids(rows, vocab_size)
    ends = special_ids(eos, "eos", vocab_size)
    (filler,) = special_ids((pad,), "pad", vocab_size)
    check_room(decoding, rows.longest, max_new)
    picker = pick.start(rows.ids, vocab_size)
    return _Run(session or decoding, rows, picker, max_new, ends, filler, chunk)
