"""Generation: `generate`, `stream`, `Session`, and prompt lookup, which reads several ids in one step.

A session reuses the cache of a common prefix. A step of decoding reads every weight for one id, and takes little longer
for several. With prompt lookup, what followed the last ids when they were there before is read in advance; it is kept
as far as the model picks the same ids, and forgotten from the first difference on. So the ids are those of greedy
generation (Leviathan et al. 2023; prompt lookup: Saxena 2023).
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import Array, check_counts, is_tensor, to_numpy
from regard.errors import ArgumentError
from regard.generation.prompts import (
    BatchReader,
    Decoding,
    GenerationModel,
    Ids,
    PromptRows,
    Reader,
    begin_decoding,
    check_chunk,
    check_ids,
    check_length,
    check_no_begin_options,
    eos_ids,
    parse_prompts,
    read,
    step_each,
)
from regard.generation.sampling import (
    GREEDY,
    Pick,
    Picker,
    check_logits,
    check_not_sampling,
    is_on_other_device,
    nan_if_invalid,
)

LONGEST_MATCH, SHORTEST_MATCH = 3, 2
"""The numbers of last ids that are searched for. What followed a single id before rarely follows it again."""


def check_lookup(lookup: int, rows: PromptRows, *, is_greedy: bool) -> None:
    """ArgumentError unless the most likely ids of one prompt are generated."""
    check_counts(lookup=(lookup, 1))
    if not is_greedy:
        raise ArgumentError("lookup-greedy")
    if len(rows.ids) != 1:
        raise ArgumentError("lookup-one", found=len(rows.ids))


def greedy_by_lookup(
    reader: Reader, rows: PromptRows, max_new: int, eos: tuple[int, ...], chunk: int | None, most: int
) -> Iterator[int]:
    """The ids of greedy generation, up to and with an `eos`; each step reads at most `most` of them."""
    logits = reader.read(rows.ids, chunk)
    check_logits(logits)
    known = np.empty(len(rows.ids[0]) + max_new, np.int64)
    known[: len(rows.ids[0])] = rows.ids[0]
    length, last = len(rows.ids[0]), len(known)
    new = [int(to_numpy(logits).argmax(-1)[0])]
    while True:
        for id in new:
            known[length] = id
            length += 1
            yield id
            if length == last or id in eos:
                return
        drafted = continuation(known[:length], min(most, last - length) - 1)
        each = reader.step_each(np.array([[new[-1], *drafted]]))
        check_logits(each[0])
        picked = to_numpy(each[0]).argmax(-1).tolist()
        same = next((at for at, id in enumerate(drafted) if picked[at] != id), len(drafted))
        if same < len(drafted):
            reader.drop(len(drafted) - same)
        new = picked[: same + 1]


def continuation(ids: np.ndarray, count: int) -> list[int]:
    """What followed the last ids where they were last before, at most `count` ids; [] where they are new.

    >>> continuation(np.array([5, 1, 2, 3, 4, 9, 1, 2]), 2), continuation(np.array([1, 2, 3]), 2)
    ([3, 4], [])
    """
    for n in range(min(LONGEST_MATCH, len(ids) - 1), SHORTEST_MATCH - 1, -1) if count > 0 else ():
        windows = np.lib.stride_tricks.sliding_window_view(ids[:-1], n)
        found = np.flatnonzero((windows == ids[-n:]).all(1))
        if len(found):
            start = int(found[-1]) + n
            return [int(id) for id in ids[start : start + count]]
    return []


class Session:
    """A Decoding of one sample and its ids: `session = Session(model.begin())`, then `generate(session, ids, …)`."""

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding
        self._read: list[Array] = []  # not converted, so that no step waits for the device

    @property
    def ids(self) -> list[int]:
        """The ids read so far."""
        return [int(id) for part in self._read for id in to_numpy(part).ravel()]

    def read(self, ids: Any, chunk: int | None = None) -> Array:
        """Read `ids` and return the logits after the last one, (1, W). The cache of a common prefix is reused.

        The last id is always read again: its logits are the result.
        """
        rows = parse_prompts(ids, "ids")
        text = single_text(rows)
        check_chunk(chunk)
        check_ids(rows, self.decoding.vocab_size, "ids")
        check_length(self.decoding, len(text))
        shared = self._keep(text)
        return read(self.step, PromptRows([text[shared:]], rows.is_single), chunk)

    def step(self, ids: Array, keep: Array | None = None) -> Array:
        """Read ids (1, T) after the previous ones."""
        logits = self.decoding.step(ids, keep)
        self._read.append(ids if is_tensor(ids) else np.array(ids))  # a copy: the caller may change its array
        return logits

    def step_each(self, ids: Array) -> Array:
        """Read ids (1, T) after the previous ones, and return the logits after each."""
        logits = step_each(self.decoding, ids)
        self._read.append(ids if is_tensor(ids) else np.array(ids))
        return logits

    def drop(self, count: int) -> None:
        """Forget the last `count` ids."""
        known = self.ids[: len(self.ids) - count]
        self.decoding.crop(len(known))
        self._read = [np.array(known, dtype=np.int64)]

    def _keep(self, ids: list[int]) -> int:
        """Crop the cache to its common prefix with `ids`, without the last id. Returns the length of the prefix."""
        known = self.ids
        pairs = zip(known, ids[:-1], strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.decoding.crop(shared)
        self._read = [np.array(known[:shared], dtype=np.int64)]
        return shared


def single_text(rows: PromptRows) -> list[int]:
    """The only text; ArgumentError if there are several."""
    if len(rows.ids) != 1:
        raise ArgumentError("session-one", found=len(rows.ids))
    return rows.ids[0]


def generate(
    model: GenerationModel | Decoding | Session,
    prompts: Any,
    *,
    sources: Any = None,
    max_new: int,
    pick: Pick = GREEDY,
    eos: Ids = None,
    chunk: int | None = None,
    lookup: int | None = None,
    **begin_options: Any,
) -> list[Any]:
    """The ids that the model appends to each prompt: at most `max_new`, up to an `eos`, which is left out.

    model     a model; a Session, which reuses the cache of an earlier call with the same prefix (one prompt); or a
              Decoding, which is restarted and reuses its compiled code and its source
    prompts   one list of ids, which returns one list; or several of any lengths, which return a list each. Do not pad
              them: padding would be read as text
    sources   for a model with an encoder: one per prompt, of any lengths
    pick      GREEDY, or Sampling(…)
    eos       the id, or the ids, that end a text
    chunk     the number of prompt columns read at a time
    lookup    with GREEDY and one prompt: the most ids that one step reads at once. What followed the last ids when they
              were there before is read in advance, and kept as far as the model picks the same: prompt lookup decoding.
              The result is the same, sooner where a text repeats itself

    Other options go to `model.begin`. Raises ArgumentError before the model runs, and if logits are NaN.

    >>> from regard.config import TransformerConfig
    >>> from regard.config.weights import weight_shapes
    >>> from regard.reference import Transformer
    >>> config = TransformerConfig.gpt2(vocab_size=5, d_model=4, n_heads=1, d_ff=4, n_layers=1, max_len=8)
    >>> weights = {name: np.zeros(shape) for name, shape in weight_shapes(config).items()}
    >>> generate(Transformer(config, weights), [3, 1], max_new=4)  # all ids equally likely: the lowest
    [0, 0, 0, 0]
    """
    run = _begin(
        model,
        prompts,
        sources=sources,
        max_new=max_new,
        pick=pick,
        eos=eos,
        chunk=chunk,
        lookup=lookup,
        options=begin_options,
    )
    columns = list(run.columns(checked=bool(run.eos)))  # all steps run before values are copied from the device
    texts = [_before_eos(text, run.eos) for text in zip(*(to_numpy(ids).tolist() for ids in columns), strict=True)]
    return texts[0] if run.rows.is_single else texts


def stream(
    model: GenerationModel | Decoding | Session,
    prompts: Any,
    *,
    sources: Any = None,
    max_new: int,
    pick: Pick = GREEDY,
    eos: Ids = None,
    chunk: int | None = None,
    lookup: int | None = None,
    **begin_options: Any,
) -> Iterator[Any]:
    """The ids of `generate`, one step at a time: for one flat prompt its ids, else a list per step with an id per row.

    A finished row yields None; the stream ends when all rows are finished. Arguments are checked at the call, not at
    the first id. The caller may stop early: a session records exactly what was read.
    """
    run = _begin(
        model,
        prompts,
        sources=sources,
        max_new=max_new,
        pick=pick,
        eos=eos,
        chunk=chunk,
        lookup=lookup,
        options=begin_options,
    )
    return _stream(run)


def _stream(run: "_Generation") -> Iterator[Any]:
    ended: set[int] = set()
    for column in run.columns(checked=True):
        ids = to_numpy(column).tolist()
        ended |= {row for row, id in enumerate(ids) if id in run.eos}
        if len(ended) == len(ids):
            return
        yield ids[0] if run.rows.is_single else [None if row in ended else id for row, id in enumerate(ids)]


def _before_eos(text: tuple[int, ...], eos: tuple[int, ...]) -> list[int]:
    """The ids before the first eos."""
    end = next((at for at, id in enumerate(text) if id in eos), len(text))
    return list(text[:end])


class _Generation(NamedTuple):
    """One checked call of `generate` or `stream`."""

    reader: Reader
    rows: PromptRows
    picker: Picker
    max_new: int
    eos: tuple[int, ...]
    chunk: int | None
    lookup: int | None = None

    def columns(self, checked: bool) -> Iterator[Array]:
        """The picked ids, (B,), of each step. Unless `checked`, they stay on the device and no step waits for it."""
        if self.lookup is not None:
            found = greedy_by_lookup(self.reader, self.rows, self.max_new, self.eos, self.chunk, self.lookup)
            yield from (np.array([id]) for id in found)
            return
        logits = self.reader.read(self.rows.ids, self.chunk)
        ended = np.zeros(len(self.rows.ids), dtype=bool)
        invalid: Any = 0
        for left in reversed(range(self.max_new)):
            if checked or not is_on_other_device(logits):
                check_logits(logits)
            else:  # accumulated on the device, and checked once at the end
                invalid = invalid + nan_if_invalid(logits)
                if left == 0:
                    check_logits(invalid[:, None])
            ids = self.picker(logits)
            if self.eos:
                values = np.where(ended, 0, to_numpy(ids))  # a finished row continues with id 0, which is not returned
                ids = values if ended.any() else ids  # unchanged ids stay on their device
                ended |= np.isin(values, self.eos)
            yield ids
            if left == 0 or ended.all():
                return
            logits = self.reader.step(ids[:, None])


def _begin(
    model: GenerationModel | Decoding | Session,
    prompts: Any,
    *,
    sources: Any,
    max_new: int,
    pick: Pick,
    eos: Ids,
    chunk: int | None,
    lookup: int | None,
    options: dict[str, Any],
) -> _Generation:
    """Check all arguments, first those that need no model, and begin the decoding."""
    rows = parse_prompts(prompts)
    check_counts(max_new=(max_new, 1))
    check_chunk(chunk)
    if lookup is not None:
        check_lookup(lookup, rows, is_greedy=pick is GREEDY)
    if isinstance(pick, type) or not callable(getattr(pick, "start", None)):
        raise ArgumentError("pick-kind", found=repr(pick))
    reader: Reader
    if isinstance(model, Session):
        _check_session(rows, sources, options)
        reader = model
    else:
        reader = BatchReader(
            begin_decoding(
                model, sources, len(rows.ids), options, ("sources", "max_new", "pick", "eos", "chunk", "lookup")
            )
        )
    ends = eos_ids(eos, reader.decoding, rows, max_new)
    picker = pick.start(rows.ids, reader.decoding.vocab_size)
    return _Generation(reader, rows, picker, max_new, ends, chunk, lookup)


def _check_session(rows: PromptRows, sources: Any, options: dict[str, Any]) -> None:
    """ArgumentError unless there is one prompt and no option of `begin`."""
    single_text(rows)
    check_not_sampling(options)
    check_no_begin_options(sources, options)
