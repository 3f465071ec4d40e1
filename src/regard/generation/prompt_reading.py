"""Reading what is already there: a model begun on its sources, and a batch of prompts read in one go or in chunks."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from regard.arrays import Array
from regard.errors import ArgumentError
from regard.generation.decoding import Begins, Decoding
from regard.generation.prompts import Rows, check_ids, check_room, left_padded, right_padded, rows_of
from regard.generation.sampling import check_not_sampling
from regard.masks import Mask
from regard.messages import Listed
from regard.position_rules import check_counts


def prefill(decoding: Decoding, prompts: Any, chunk: int | None = None) -> Array:
    """Read prompts of any lengths as one batch, `chunk` columns at a time, and give the logits after them, (B, W).

    Shorter prompts are filled up on the left, so that all end together; what is filled in does not count. A decoding
    that has already read something takes equally long prompts only. Chunks bound the memory that a long prompt takes,
    and change nothing else. Raises ArgumentError before anything is read.
    """
    rows = rows_of(prompts)
    check_chunk(chunk)
    check_ids(rows, decoding.vocab_size)
    shortest, longest, length = rows.shortest, rows.longest, decoding.length
    if length and shortest < longest:
        raise ArgumentError("prefill-ragged", shortest=shortest, longest=longest, length=length)
    check_room(decoding, longest, already=length)
    return read(decoding.step, rows, chunk)


class Reader(Protocol):
    """Reads prompts, then id after id: a `Batch`, or a `Session`, which knows what it has read."""

    @property
    def decoding(self) -> Decoding:
        """What remembers."""

    def read(self, prompts: Any, /, chunk: int | None = None) -> Array:
        """Read prompts and give the logits after them, (B, W)."""

    def step(self, ids: Array) -> Array:
        """Read one more id of each, (B, 1), and give the logits after it."""


class Batch(NamedTuple):
    """A Decoding as a Reader of prompts of any lengths."""

    decoding: Decoding

    def read(self, prompts: Any, chunk: int | None = None) -> Array:
        """As `prefill` does."""
        return prefill(self.decoding, prompts, chunk)

    def step(self, ids: Array) -> Array:
        """As the decoding does."""
        return self.decoding.step(ids)


def check_chunk(chunk: int | None) -> None:
    """How many columns are read at a time: at least one; None for all."""
    if chunk is not None:
        check_counts(chunk=(chunk, 1))


def read(step: Callable[[Array, Array | None], Array], rows: Rows, chunk: int | None) -> Array:
    """Prompts that have been looked at, read by `step`."""
    ids, keep = left_padded(rows.ids)  # B T
    width = chunk or rows.longest
    for start in range(0, rows.longest, width):
        columns = slice(start, start + width)
        logits = step(ids[:, columns], None if keep is None else keep[:, columns])
    return logits


def begun(model: Any, sources: Any, samples: int, options: dict[str, Any], beside: tuple[str, ...] = ()) -> Decoding:
    """The Decoding of a model, on its sources where there are any, as ragged as they come; or the one that was given.

    options   for `begin`; `beside` are those that the caller takes itself, named where one is unknown
    """
    begins = callable(getattr(model, "begin", None))
    if isinstance(model, type) or not (begins or hasattr(model, "crop")):
        raise ArgumentError("model-begins", found=type(model).__name__)
    if not begins:
        return _again(model, sources, options)
    _check_options(model, options, beside)
    if sources is None:
        return _begun(model, options)
    if getattr(sources, "ndim", 0) >= 2:  # a batch already, of ids or of vectors: the model's to judge
        batch, keep = sources, None
    else:
        batch, keep = right_padded(rows_of(sources, "sources").ids)
    if len(batch) != samples:
        raise ArgumentError("sources-count", found=len(batch), wanted=samples)
    if keep is not None:
        mask, given = Mask.from_keep(keep), options.get("source_mask")
        options = {**options, "source_mask": mask if given is None else mask & given}
    return _begun(model, options, batch)


def _again(decoding: Decoding, sources: Any, options: dict[str, Any]) -> Decoding:
    """A Decoding that was begun before, from its start: what it has compiled and made room for is used again."""
    check_begun(sources, options)
    decoding.crop(0)
    return decoding


def check_begun(sources: Any, options: dict[str, Any]) -> None:
    """Nothing may be given that is decided when a model begins."""
    given = options if sources is None else ["sources", *options]
    if given:
        raise ArgumentError("session-begun", names=Listed(given))


def _begun(model: Begins, options: dict[str, Any], *source: Any) -> Decoding:
    """What `begin` gives; where it speaks of a source, here they are called sources."""
    try:
        return model.begin(*source, **options)
    except ArgumentError as error:
        if error.key == "source-missing":
            raise ArgumentError("sources-missing") from None
        if error.key == "source-unneeded":
            raise ArgumentError("sources-unneeded", **error.values) from None
        raise


def _check_options(model: Begins, options: dict[str, Any], beside: tuple[str, ...]) -> None:
    """Each option is one that `begin` takes; its first argument, the source, comes from `sources`."""
    taken = inspect.signature(model.begin).parameters
    if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        return
    known = list(taken)[1:]
    unknown = {name: value for name, value in options.items() if name not in known}
    check_not_sampling(unknown)
    if unknown:
        raise ArgumentError("begin-option", name=next(iter(unknown)), known=Listed((*beside, *known)))
