"""Prompts: parsing, checks and padding of ids, their prefill, and the protocol of the models that read them.

Lists, lists of lists and arrays become lists of ints before a model runs. How a model implements caches, layers and
arrays is its own concern.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeAlias

import numpy as np

from regard.arrays import Array, check_counts, is_integer, is_tensor, to_numpy
from regard.errors import ArgumentError
from regard.generation.sampling import check_not_sampling
from regard.masks import Mask
from regard.messages import Listed

Ids: TypeAlias = SupportsIndex | Iterable[SupportsIndex] | None
"""One id, several, or none."""

# --- the model: a batch of texts with their caches ---------------------------------------------------------


class Decoding(Protocol):
    """A batch of texts that a model is decoding. The first `step` sets the number of samples, B."""

    @property
    def vocab_size(self) -> int:
        """The number of ids, W."""

    @property
    def max_len(self) -> int | None:
        """The largest number of columns; None for no limit."""

    @property
    def length(self) -> int:
        """The number of columns read so far."""

    def step(self, ids: Array, keep: Array | None = None) -> Array:
        """Read ids (B, T), a NumPy array or of the model's array type, and return the logits (B, W) after them.

        keep (B, T) is False for padding on the left of a shorter text; None means no padding.
        """

    def select(self, rows: list[int]) -> None:
        """Continue with these samples in this order; samples may be reordered, repeated or dropped."""

    def crop(self, length: int) -> None:
        """Remove everything after the first `length` columns from the cache."""


class GenerationModel(Protocol):
    """A model: `begin(source=None, *, source_mask=None, …)` returns an empty Decoding."""

    @property
    def begin(self) -> Callable[..., Decoding]:
        """Begin a batch; a source is encoded once, here."""


# --- the ids -----------------------------------------------------------------------------------------------


class PromptRows(NamedTuple):
    """Texts as ids; `is_single` if one flat prompt was given, so that one flat result is returned."""

    ids: list[list[int]]
    is_single: bool

    @property
    def longest(self) -> int:
        """The length of the longest text."""
        return max(len(row) for row in self.ids)

    @property
    def shortest(self) -> int:
        """The length of the shortest text."""
        return min(len(row) for row in self.ids)


def parse_prompts(given: Any, name: str = "prompts") -> PromptRows:
    """The prompts as rows of ints. Raises ArgumentError for anything else.

    >>> parse_prompts([[1, 2], [3]]), parse_prompts(np.array([1, 2]))
    (PromptRows(ids=[[1, 2], [3]], is_single=False), PromptRows(ids=[[1, 2]], is_single=True))
    """
    given = _plain(given, name)
    is_single = bool(given) and all(is_integer(each) for each in given)
    rows = [given] if is_single else [_plain(row, f"{name}[{i}]") for i, row in enumerate(given)]
    if not rows:
        raise ArgumentError("prompt-empty", where=name)
    for i, row in enumerate(rows):
        where = name if is_single else f"{name}[{i}]"
        if len(row) == 0:
            raise ArgumentError("prompt-empty", where=where)
        for at, value in enumerate(row):
            if not is_integer(value):
                raise ArgumentError("prompt-kind", where=f"{where}[{at}]", found=repr(value))
    return PromptRows([[int(value) for value in row] for row in rows], is_single)


def _plain(given: Any, where: str) -> list[Any]:
    """The given value as a list; an array must have an integer dtype."""
    if is_tensor(given) or isinstance(given, np.ndarray):
        array = to_numpy(given)
        if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
            raise ArgumentError("prompt-kind", where=where, found=f"{array.dtype} {array.shape}")
        return list(array.tolist())
    if not isinstance(given, list | tuple | range):
        raise ArgumentError("prompt-kind", where=where, found=repr(given))
    return list(given)


def left_padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray | None]:
    """A batch (B, T) padded on the left, and a boolean array that is False for padding; None without padding.

    >>> ids, keep = left_padded([[5, 6], [7]])
    >>> ids.tolist(), keep.tolist()
    ([[5, 6], [0, 7]], [[True, True], [False, True]])
    """
    ids, keep = right_padded([row[::-1] for row in rows])
    return ids[:, ::-1].copy(), None if keep is None else keep[:, ::-1].copy()


def right_padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray | None]:
    """A batch (B, S) padded on the right, as for an encoder, and a boolean array that is False for padding.

    >>> right_padded([[5, 6], [7]])[0].tolist()
    [[5, 6], [7, 0]]
    """
    lengths = np.array([len(row) for row in rows])
    keep = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(keep.shape, dtype=np.int64)
    ids[keep] = np.concatenate(rows)
    return ids, None if keep.all() else keep


def check_ids(rows: PromptRows, vocab_size: int, name: str = "prompts") -> None:
    """ArgumentError with the place of an id that is not in the vocabulary."""
    for i, row in enumerate(rows.ids):
        if min(row) >= 0 and max(row) < vocab_size:
            continue
        at = next(at for at, id in enumerate(row) if not 0 <= id < vocab_size)
        where = name if rows.is_single else f"{name}[{i}]"
        raise ArgumentError("prompt-id", where=f"{where}[{at}]", value=row[at], last=vocab_size - 1, W=vocab_size)


def eos_ids(eos: Ids, decoding: Decoding, rows: PromptRows, max_new: int) -> tuple[int, ...]:
    """The ids that end a text. Raises ArgumentError if they, the prompts or `max_new` do not fit the decoding."""
    check_ids(rows, decoding.vocab_size)
    check_length(decoding, rows.longest, max_new)
    return special_ids(eos, "eos", decoding.vocab_size)


def special_ids(given: Ids, name: str, vocab_size: int) -> tuple[int, ...]:
    """One id, several or none as a tuple. Raises ArgumentError for an id outside the vocabulary."""
    plain: Any = to_numpy(given).tolist() if is_tensor(given) or isinstance(given, np.ndarray) else given
    several = () if plain is None else tuple(plain) if isinstance(plain, Iterable) else (plain,)
    for id in several:
        if not (is_integer(id) and 0 <= id < vocab_size):
            raise ArgumentError("special-id", name=name, value=id, last=vocab_size - 1, W=vocab_size)
    return tuple(int(id) for id in several)


def check_length(decoding: Decoding, length: int, max_new: int = 1, already: int = 0) -> None:
    """ArgumentError if `length` ids after those `already` read, and the generated ones, exceed the model's positions.

    The last new id is returned but never read, so n ids with max_new more need n + max_new − 1 positions.
    """
    limit, length = decoding.max_len, already + length
    if limit is None or length + max_new - 1 <= limit:
        return
    if length > limit:
        raise ArgumentError("prompt-too-long", length=length, limit=limit, excess=length - limit)
    needed, most = length + max_new - 1, limit - length + 1
    raise ArgumentError("too-many-new", length=length, max_new=max_new, needed=needed, limit=limit, most=most)


def prefill(decoding: Decoding, prompts: Any, chunk: int | None = None) -> Array:
    """Read prompts of any lengths as one batch, `chunk` columns at a time, and return the logits after them, (B, W).

    Shorter prompts are padded on the left; padding is masked. A decoding that is not empty takes only prompts of equal
    length. Chunks limit the memory for a long prompt and do not change the result. Raises ArgumentError before anything
    is read.
    """
    rows = parse_prompts(prompts)
    check_chunk(chunk)
    check_ids(rows, decoding.vocab_size)
    shortest, longest, length = rows.shortest, rows.longest, decoding.length
    if length and shortest < longest:
        raise ArgumentError("prefill-ragged", shortest=shortest, longest=longest, length=length)
    check_length(decoding, longest, already=length)
    return read(decoding.step, rows, chunk)


class Reader(Protocol):
    """Reads prompts, then one id per step: a `BatchReader`, or a `Session`, which records what it has read."""

    @property
    def decoding(self) -> Decoding:
        """The decoding with its cache."""

    def read(self, prompts: Any, /, chunk: int | None = None) -> Array:
        """Read prompts and return the logits after them, (B, W)."""

    def step(self, ids: Array) -> Array:
        """Read one more id per sample, (B, 1), and return the logits after it."""

    def step_each(self, ids: Array) -> Array:
        """Read ids (1, T) and return the logits after each of them, (1, T, W)."""

    def drop(self, count: int) -> None:
        """Forget the last `count` ids."""


def step_each(decoding: Decoding, ids: Array) -> Array:
    """The logits after each of the ids (1, T). ArgumentError for a model that computes only the last ones."""
    several: Any = decoding
    if not hasattr(several, "step_each"):
        raise ArgumentError("lookup-model", found=type(decoding).__name__)
    logits: Array = several.step_each(ids)
    return logits


class BatchReader(NamedTuple):
    """A Reader that reads a batch of prompts of any lengths with a Decoding."""

    decoding: Decoding

    def read(self, prompts: Any, chunk: int | None = None) -> Array:
        """Read prompts with `prefill`."""
        return prefill(self.decoding, prompts, chunk)

    def step(self, ids: Array) -> Array:
        """Take one step of the decoding."""
        return self.decoding.step(ids)

    def step_each(self, ids: Array) -> Array:
        """Take several steps at once."""
        return step_each(self.decoding, ids)

    def drop(self, count: int) -> None:
        """Crop the cache."""
        self.decoding.crop(self.decoding.length - count)


def check_chunk(chunk: int | None) -> None:
    """ArgumentError unless the number of columns read at a time is at least 1, or None for all."""
    if chunk is not None:
        check_counts(chunk=(chunk, 1))


def read(step: Callable[[Array, Array | None], Array], rows: PromptRows, chunk: int | None) -> Array:
    """Read checked prompts with `step`; the logits after them."""
    ids, keep = left_padded(rows.ids)  # B T
    width = chunk or rows.longest
    for start in range(0, rows.longest, width):
        columns = slice(start, start + width)
        logits = step(ids[:, columns], None if keep is None else keep[:, columns])
    return logits


def begin_decoding(
    model: Any, sources: Any, samples: int, options: dict[str, Any], own_options: tuple[str, ...] = ()
) -> Decoding:
    """Begin the decoding of a model on its sources, of any lengths, if there are any. A given Decoding is restarted.

    options       for `begin`
    own_options   the caller's own options, listed in the error about an unknown one
    """
    is_model = callable(getattr(model, "begin", None))
    if isinstance(model, type) or not (is_model or hasattr(model, "crop")):
        raise ArgumentError("model-begins", found=type(model).__name__)
    if not is_model:
        return _restarted(model, sources, options)
    _check_options(model, options, own_options)
    if sources is None:
        return _begin(model, options)
    if getattr(sources, "ndim", 0) >= 2:  # already a batch, of ids or of vectors: the model checks it
        batch, keep = sources, None
    else:
        batch, keep = right_padded(parse_prompts(sources, "sources").ids)
    if len(batch) != samples:
        raise ArgumentError("sources-count", found=len(batch), wanted=samples)
    if keep is not None:
        mask, given = Mask.from_keep(keep), options.get("source_mask")
        options = {**options, "source_mask": mask if given is None else mask & given}
    return _begin(model, options, batch)


def _restarted(decoding: Decoding, sources: Any, options: dict[str, Any]) -> Decoding:
    """An existing Decoding, cropped to its start: its compiled code and its memory are reused."""
    check_no_begin_options(sources, options)
    decoding.crop(0)
    return decoding


def check_no_begin_options(sources: Any, options: dict[str, Any]) -> None:
    """ArgumentError if sources or options of `begin` are given for a decoding that has already begun."""
    given = options if sources is None else ["sources", *options]
    if given:
        raise ArgumentError("session-begun", names=Listed(given))


def _begin(model: GenerationModel, options: dict[str, Any], *source: Any) -> Decoding:
    """The result of `begin`. Errors about its `source` are converted to errors about our `sources`."""
    try:
        return model.begin(*source, **options)
    except ArgumentError as error:
        if error.key == "source-missing":
            raise ArgumentError("sources-missing") from None
        if error.key == "source-unneeded":
            raise ArgumentError("sources-unneeded", **error.values) from None
        raise


def _check_options(model: GenerationModel, options: dict[str, Any], own_options: tuple[str, ...]) -> None:
    """ArgumentError for an option that `begin` does not accept. Its first argument is the source."""
    parameters = inspect.signature(model.begin).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    known = list(parameters)[1:]
    unknown = {name: value for name, value in options.items() if name not in known}
    check_not_sampling(unknown)
    if unknown:
        raise ArgumentError("begin-option", name=next(iter(unknown)), known=Listed((*own_options, *known)))
