"""Prefill: begins a model's decoding on its sources, and reads a batch of prompts at once or in chunks."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from regard.arrays import Array
from regard.errors import ArgumentError
from regard.generation.decoding import Decoding, GenerationModel
from regard.generation.prompts import PromptRows, check_ids, check_length, left_padded, parse_prompts, right_padded
from regard.generation.sampling import check_not_sampling
from regard.masks import Mask
from regard.messages import Listed
from regard.number_checks import check_counts


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


class BatchReader(NamedTuple):
    """A Reader that reads a batch of prompts of any lengths with a Decoding."""

    decoding: Decoding

    def read(self, prompts: Any, chunk: int | None = None) -> Array:
        """Read prompts with `prefill`."""
        return prefill(self.decoding, prompts, chunk)

    def step(self, ids: Array) -> Array:
        """Take one step of the decoding."""
        return self.decoding.step(ids)


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
