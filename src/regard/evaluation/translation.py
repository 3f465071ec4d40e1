"""Lines translated by beam search, each answer in its line's place: a tokenizer around `generation.search_many`.

What the text means, and how it was prepared, it does not know.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import FileError
from regard.generation.many import BATCH_TOKENS, Translates, search_many

if TYPE_CHECKING:
    from regard.text.tokenizer import Tokenizer


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
    bos, eos = tokenizer.special("bos"), tokenizer.special("eos")
    how: dict[str, Any] = {"beams": beams, "length_penalty": length_penalty, "batch_tokens": batch_tokens}
    return [tokenizer.decode(ids) for ids in search_many(model, sources, bos=bos, eos=eos, **how)]
