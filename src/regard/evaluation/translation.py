"""Lines translated by beam search: many at once, in batches of like length, each answer in its line's place.

It knows a tokenizer's ids and a model's `begin`, torch's or NumPy's. What the text means, and how it was prepared, it
does not know.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from regard.errors import FileError
from regard.generation import beam_search
from regard.generation.decoding import Begins
from regard.spacing import check_counts

if TYPE_CHECKING:
    from regard.text.tokenizer import Tokenizer

MAX_RATIO, MAX_EXTRA = 2, 10
"""A translation has at most so many ids for each of its source, and so many more."""
BATCH_TOKENS = 8192
"""Ids of a batch, counted once for each beam: some hundred sentences of five beams."""


class Translates(Begins, Protocol):
    """A model with an encoder and a decoder, and the configuration that says how long its texts may be."""

    @property
    def config(self) -> Any:
        """A TransformerConfig."""


class Sources(NamedTuple):
    """Lines as an encoder reads them, each with its eos; a line without words is []. `cut` were longer than that."""

    ids: list[list[int]]
    cut: int


def translate_lines(
    model: Translates,
    tokenizer: "Tokenizer",
    lines: Sequence[str],
    *,
    beams: int = 5,
    length_penalty: float = 1.0,
    batch_tokens: int = BATCH_TOKENS,
    device: Any = None,
) -> list[str]:
    """The likeliest translation that beam search finds for each line; an empty line for an empty one.

    Raises FileError with the line's number where one is longer than the model. A torch model is moved to `device`, or
    stays where it is.
    """
    sources = encode_sources(tokenizer, lines, model.config.max_len)
    model = model if device is None else model.to(device)  # type: ignore[attr-defined]
    how: dict[str, Any] = {"beams": beams, "length_penalty": length_penalty, "batch_tokens": batch_tokens}
    return translate(model, tokenizer, sources.ids, **how)


def encode_sources(
    tokenizer: "Tokenizer",
    lines: Sequence[str],
    max_len: int | None,
    *,
    numbers: Sequence[int] | None = None,
    cut: bool = False,
) -> Sources:
    """Lines as ids and an eos. One longer than `max_len` is refused with its number, or cut and counted.

    numbers   of the lines in their file, where these are not 1, 2, …
    """
    eos = tokenizer.special("eos")
    too_long = 0
    found = []
    for at, ids in enumerate(tokenizer.encode_all(list(lines))):
        if max_len is not None and len(ids) >= max_len:
            if not cut:
                number = at + 1 if numbers is None else numbers[at]
                raise FileError("translate-too-long", line=number, found=len(ids) + 1, limit=max_len)
            ids, too_long = ids[: max_len - 1], too_long + 1
        found.append([*ids, eos] if ids else [])
    return Sources(found, too_long)


def translate(
    model: Translates,
    tokenizer: "Tokenizer",
    sources: Sequence[list[int]],
    *,
    beams: int = 5,
    length_penalty: float = 1.0,
    batch_tokens: int = BATCH_TOKENS,
) -> list[str]:
    """The same for lines that are ids already, as `encode_sources` gives them."""
    check_counts(batch_tokens=(batch_tokens, 1))
    bos, eos = tokenizer.special("bos"), tokenizer.special("eos")
    texts = [""] * len(sources)
    for batch in _batches(sources, max(1, batch_tokens // beams)):
        longest = len(sources[batch[0]])
        room = MAX_RATIO * longest + MAX_EXTRA
        limit = model.config.max_len
        found = beam_search(
            model,
            [[bos]] * len(batch),
            sources=[sources[line] for line in batch],
            beams=beams,
            max_new=room if limit is None else min(room, limit),
            eos=eos,
            length_penalty=length_penalty,
        )
        for line, best in zip(batch, found, strict=True):
            texts[line] = tokenizer.decode(best[0].ids) if best else ""
    return texts


def _batches(sources: Sequence[list[int]], tokens: int) -> Iterator[list[int]]:
    """Numbers of lines, longest first, so many together that with padding they have at most `tokens` ids.

    >>> list(_batches([[1], [], [1, 2, 3], [1, 2], [1, 2]], 4))
    [[2], [3, 4], [0]]
    """
    order = sorted((line for line, ids in enumerate(sources) if ids), key=lambda line: -len(sources[line]))
    while order:
        fitting = max(1, tokens // len(sources[order[0]]))
        yield order[:fitting]
        order = order[fitting:]
