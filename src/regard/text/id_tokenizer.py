"""IdTokenizer: ids written as numbers, for a model whose folder has no tokenizer."""

from collections.abc import Iterable, Sequence
from typing import Literal

from regard.errors import ArgumentError
from regard.text.tokenizer import Tokenizer


class IdTokenizer:
    """Text such as "15 3 27" to ids and back; the same methods as a Tokenizer.

    >>> IdTokenizer(30).encode("15 3 27"), IdTokenizer(30).decode([15, 3])
    ([15, 3, 27], '15 3')
    """

    unknown = None
    control_tokens: tuple[str, ...] = ()

    def __init__(
        self, vocab_size: int, *, pad: int | None = None, bos: int | None = None, eos: int | None = None
    ) -> None:
        self.vocab_size, self.pad, self.bos, self.eos = vocab_size, pad, bos, eos

    def special(self, name: Literal["pad", "bos", "eos", "unknown"]) -> int:
        """The id of a control token. Raises ArgumentError where there is none."""
        found: int | None = getattr(self, name)
        if found is None:
            raise ArgumentError("tokenizer-special", name=name)
        return found

    def encode(self, text: str) -> list[int]:
        """The ids of a text of numbers. Raises ArgumentError for anything else."""
        words = text.replace(",", " ").split()
        for word in words:
            if not word.isascii() or not word.isdigit() or int(word[:20]) >= self.vocab_size:
                raise ArgumentError("tokenizer-absent", found=word[:20], last=self.vocab_size - 1)
        return [int(word) for word in words]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The numbers, with spaces between."""
        return " ".join(self.pieces(ids))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Each id as a number."""
        return [str(int(one)) for one in ids]

    def raw_tokens(self, ids: Iterable[int]) -> list[str]:
        """Each id as a number, with the space before it."""
        return [f" {one}" for one in self.pieces(ids)]

    def surrounding_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """None: every id is written."""
        return (), ()


AnyTokenizer = Tokenizer | IdTokenizer
