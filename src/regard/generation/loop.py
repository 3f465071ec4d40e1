"""Generation one token at a time: `generate`, `stream`, and `Session`, which keeps the cache of a known prefix."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import Array, is_tensor, to_numpy
from regard.errors import ArgumentError
from regard.generation.decoding import Begins, Decoding
from regard.generation.prompt_reading import Batch, Reader, begun, check_begun, check_chunk, read
from regard.generation.prompts import Ids, Rows, check_ids, check_room, ends_of, rows_of
from regard.generation.sampling import GREEDY, Pick, Picker, check_logits, check_not_sampling, doubt_about, is_elsewhere
from regard.position_rules import check_counts


class Session:
    """What a Decoding of one sample has read: `session = Session(model.begin())`, then `generate(session, ids, …)`."""

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding
        self._read: list[Array] = []  # as they came, so that reading on waits for no device

    @property
    def ids(self) -> list[int]:
        """The ids read so far."""
        return [int(id) for part in self._read for id in to_numpy(part).ravel()]

    def read(self, ids: Any, chunk: int | None = None) -> Array:
        """Read `ids` after forgetting what differs from them; the logits after the last one, (1, W).

        What was read before and is the same again is not read twice, except the last id: its logits are the answer.
        """
        rows = rows_of(ids, "ids")
        text = one_text(rows)
        check_chunk(chunk)
        check_ids(rows, self.decoding.vocab_size, "ids")
        check_room(self.decoding, len(text))
        shared = self._keep(text)
        return read(self.step, Rows([text[shared:]], rows.alone), chunk)

    def step(self, ids: Array, keep: Array | None = None) -> Array:
        """Read ids (1, T) after the others."""
        logits = self.decoding.step(ids, keep)
        self._read.append(ids if is_tensor(ids) else np.array(ids))  # a copy: callers may use their array again
        return logits

    def _keep(self, ids: list[int]) -> int:
        """Forget what differs from `ids`, and its last; how many are left."""
        known = self.ids
        pairs = zip(known, ids[:-1], strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.decoding.crop(shared)
        self._read = [np.array(known[:shared], dtype=np.int64)]
        return shared


def one_text(rows: Rows) -> list[int]:
    """The only text there is, or an ArgumentError."""
    if len(rows.ids) != 1:
        raise ArgumentError("session-one", found=len(rows.ids))
    return rows.ids[0]


def generate(
    model: Begins | Decoding | Session,
    prompts: Any,
    *,
    sources: Any = None,
    max_new: int,
    pick: Pick = GREEDY,
    eos: Ids = None,
    chunk: int | None = None,
    **begin_options: Any,
) -> list[Any]:
    """The ids that the model adds to each prompt: at most `max_new`, up to an `eos`, which is left out.

    model     what writes; a Session, to go on where an earlier call with the same beginning stopped (one prompt); or a
              Decoding that was begun before, from its start: what it has compiled, and the source, is used again
    prompts   one list of ids, which gives one list; or several of any lengths, which give a list each. Do not pad
              them: filling would be read as text
    sources   for a model with an encoder: as many as prompts, of any lengths
    pick      GREEDY, or Sampling(…)
    eos       the id, or the ids, that end a text
    chunk     read the prompts this many columns at a time

    What else is given goes to `model.begin`. Raises ArgumentError before anything runs, and where logits are NaN.

    >>> from regard.config import TransformerConfig
    >>> from regard.config.weights import weight_shapes
    >>> from regard.reference import Transformer
    >>> config = TransformerConfig.gpt2(vocab_size=5, d_model=4, n_heads=1, d_ff=4, n_layers=1, max_len=8)
    >>> weights = {name: np.zeros(shape) for name, shape in weight_shapes(config).items()}
    >>> generate(Transformer(config, weights), [3, 1], max_new=4)  # all ids equally likely: the lowest
    [0, 0, 0, 0]
    """
    run = _begin(
        model, prompts, sources=sources, max_new=max_new, pick=pick, eos=eos, chunk=chunk, options=begin_options
    )
    columns = list(run.columns(watched=bool(run.eos)))  # all of them, before anyone asks for values
    texts = [_until(text, run.eos) for text in zip(*(to_numpy(ids).tolist() for ids in columns), strict=True)]
    return texts[0] if run.rows.alone else texts


def stream(
    model: Begins | Decoding | Session,
    prompts: Any,
    *,
    sources: Any = None,
    max_new: int,
    pick: Pick = GREEDY,
    eos: Ids = None,
    chunk: int | None = None,
    **begin_options: Any,
) -> Iterator[Any]:
    """What `generate` gives, while it comes: for one flat prompt its ids, else one list per step with an id per row.

    A row that has ended has None; the stream ends when all have. Arguments are looked at now, not when the first id is
    asked for. Whoever stops early has lost nothing: a session knows exactly what was read.
    """
    run = _begin(
        model, prompts, sources=sources, max_new=max_new, pick=pick, eos=eos, chunk=chunk, options=begin_options
    )
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

    reader: Reader
    rows: Rows
    picker: Picker
    max_new: int
    eos: tuple[int, ...]
    chunk: int | None

    def columns(self, watched: bool) -> Iterator[Array]:
        """The picked ids, (B,), step after step. Unless `watched`, they stay on the model's device and nobody waits."""
        logits = self.reader.read(self.rows.ids, self.chunk)
        ended = np.zeros(len(self.rows.ids), dtype=bool)
        doubt: Any = 0
        for left in reversed(range(self.max_new)):
            if watched or not is_elsewhere(logits):
                check_logits(logits)
            else:  # remembered where the logits are, and asked for once, at the end
                doubt = doubt + doubt_about(logits)
                if left == 0:
                    check_logits(doubt[:, None])
            ids = self.picker(logits)
            if self.eos:
                values = np.where(ended, 0, to_numpy(ids))  # a text that has ended goes on as anything: nobody sees it
                ids = values if ended.any() else ids  # what need not change stays on its device
                ended |= np.isin(values, self.eos)
            yield ids
            if left == 0 or ended.all():
                return
            logits = self.reader.step(ids[:, None])


def _begin(
    model: Begins | Decoding | Session,
    prompts: Any,
    *,
    sources: Any,
    max_new: int,
    pick: Pick,
    eos: Ids,
    chunk: int | None,
    options: dict[str, Any],
) -> _Run:
    """Everything that can be wrong is found here: first what needs no model, then what its vocabulary decides."""
    rows = rows_of(prompts)
    check_counts(max_new=(max_new, 1))
    check_chunk(chunk)
    if isinstance(pick, type) or not callable(getattr(pick, "start", None)):
        raise ArgumentError("pick-kind", found=repr(pick))
    reader: Reader
    if isinstance(model, Session):
        _check_session(rows, sources, options)
        reader = model
    else:
        reader = Batch(begun(model, sources, len(rows.ids), options, ("sources", "max_new", "pick", "eos", "chunk")))
    ends = ends_of(eos, reader.decoding, rows, max_new)
    return _Run(reader, rows, pick.start(rows.ids, reader.decoding.vocab_size), max_new, ends, chunk)


def _check_session(rows: Rows, sources: Any, options: dict[str, Any]) -> None:
    """A Session takes one prompt, and nothing that is decided when a model begins."""
    one_text(rows)
    check_not_sampling(options)
    check_begun(sources, options)
