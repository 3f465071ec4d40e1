"""Tokenizer: text to ids and back, from one file, tokenizer.json, in Hugging Face's layout.

It wraps `tokenizers`. A file from elsewhere is tried in another process before it is used (`untrusted`): it may not
swell a text, stall on one or promise ids that it does not have. Text never becomes a control token: "<eos>" in a
sentence is five characters, and only who builds a batch writes an <eos>. How tokenizers are learnt is not known here;
`learning.py` does that.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import tokenizers
from tokenizers import decoders

from regard.errors import ArgumentError, FileError
from regard.files.formats import refuse_other_file
from regard.files.input import read_file
from regard.files.output import check_place, write_aside
from regard.text.token_text import MARK, sign_bytes, spelled

# What the same control token is called in files from elsewhere.
PAD = ("<pad>", "[PAD]", "<|pad|>")
BOS = ("<bos>", "<s>", "[BOS]", "<|begin_of_text|>")
EOS = ("<eos>", "</s>", "[EOS]", "<|endoftext|>", "<|end_of_text|>")
UNKNOWN = ("<unk>", "[UNK]")

ASSETS = Path(__file__).parents[1] / "assets"
"""What is bundled with regard is known to be good, and is not tried first."""
LARGEST_FILE = 2**26
LONGEST_QUADRATIC = 2**14
"""Characters of a text, for patterns whose time may grow with the square of it: 1 or 2 s at most."""
# A long document is encoded so many characters at a time, and so many texts together: their pieces take much memory.
_PIECE, _GROUP = 2**16, 2**10


Result = TypeVar("Result")


class Tokenizer:
    """Text to ids and back.

    `pad`, `bos`, `eos`, `unknown` are the ids of the control tokens, None where there is none; `vocab_size` counts all.

    >>> from regard.text import learn_tokenizer
    >>> tokenizer = learn_tokenizer(["床前明月光"], "characters")
    >>> tokenizer.encode("明月山"), tokenizer.decode([2 + 3, 7, 2]), tokenizer.pieces([7, 2])
    ([7, 8, 3], '前明', ['明', '<eos>'])
    """

    def __init__(self, inner: tokenizers.Tokenizer, longest: int | None = None) -> None:
        """`longest` is how many characters a text may have, where it takes long otherwise."""
        inner.no_padding()
        inner.no_truncation()
        inner.encode_special_tokens = True  # the text of a special token is text
        self._inner = inner
        self._longest = longest
        self._by_bytes = isinstance(inner.decoder, decoders.ByteLevel)
        self.vocab_size: int = inner.get_vocab_size()
        self._special = {i: token.content for i, token in inner.get_added_tokens_decoder().items() if token.special}
        self.pad, self.bos, self.eos, self.unknown = (self._first(names) for names in (PAD, BOS, EOS, UNKNOWN))
        self._characters = self._one_by_one()

    def _first(self, names: tuple[str, ...]) -> int | None:
        """The id of the first of these names that a special token bears; Qwen's <unk> is a piece of web page."""
        ids = {name: i for i, name in self._special.items()}
        return next((ids[name] for name in names if name in ids), None)

    def _one_by_one(self) -> dict[str, int] | None:
        """The ids of single characters, where nothing but these is ever made of a text: a table is then quicker."""
        if self._inner.normalizer is not None or self._inner.pre_tokenizer is not None:
            return None
        model = json.loads(self._inner.to_str())["model"]
        if model["type"] != "BPE" or model["merges"]:
            return None
        return {token: i for token, i in model["vocab"].items() if len(token) == 1}

    def special(self, name: Literal["pad", "bos", "eos", "unknown"]) -> int:
        """The id of a control token that is needed. ArgumentError where there is none."""
        found: int | None = getattr(self, name)
        if found is None:
            raise ArgumentError("tokenizer-special", name=name)
        return found

    def marks(self) -> dict[str, int]:
        """What pairs of sentences are batched with: the ids of pad, bos and eos, by name. Raises as `special`."""
        return {"pad": self.special("pad"), "bos": self.special("bos"), "eos": self.special("eos")}

    def encode(self, text: str) -> list[int]:
        """The ids of a text, no control token among them.

        ArgumentError where a character has no id and the tokenizer has no <unk> either.
        """
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; quicker than one by one."""
        for text in texts:
            _check_whole(text)
            if self._longest is not None and len(text) > self._longest:
                raise ArgumentError("tokenizer-text-long", found=len(text), most=self._longest)
        if self._characters is None:
            encode = self._inner.encode_batch
            return [found.ids for found in _guarded(lambda: encode(list(texts), add_special_tokens=False))]
        return [self._looked_up(text, self._characters) for text in texts]

    def _looked_up(self, text: str, table: dict[str, int]) -> list[int]:
        if self.unknown is None and (strange := sorted(set(text) - table.keys())):
            raise ArgumentError("tokenizer-unknown", found=" ".join(map(repr, strange[:5])), count=len(strange))
        return [table.get(character, self.unknown) for character in text]  # type: ignore[misc]

    def pack(self, texts: Iterable[str], end: int | None = None) -> np.ndarray:
        """All texts as one long array of the smallest fitting type, each followed by `end`, for packed blocks.

        >>> from regard.text import learn_tokenizer
        >>> learn_tokenizer(["ab"], "characters").pack(["a", "ba"], end=2)
        array([4, 2, 5, 4, 2], dtype=uint16)
        """
        dtype = np.uint16 if self.vocab_size <= 2**16 else np.uint32
        # Byte-level tokens and characters are the same whether a document is read whole or in pieces.
        divisible = self._by_bytes or self._characters is not None
        cut = ((piece, last) for text in texts for piece, last in (_cut(text) if divisible else [(text, True)]))
        found = [np.empty(0, dtype)]
        while group := list(islice(cut, _GROUP)):
            for (_, last), ids in zip(group, self.encode_all([piece for piece, _ in group]), strict=True):
                found.append(np.array([*ids, end] if last and end is not None else ids, dtype))
        return np.concatenate(found)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids; control tokens are left out."""
        known = self._checked(ids)
        return _guarded(lambda: self._inner.decode(known, skip_special_tokens=True))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """What a reader should see for each id: its text, or the bytes ⟨E6 9C⟩ where it is part of a character."""
        return [self._piece(i) for i in self._checked(ids)]

    def _piece(self, i: int) -> str:
        if i in self._special:
            return self._special[i]
        token = self._inner.id_to_token(i) or ""
        if not self._by_bytes:
            return token.replace(MARK, " ")
        raw = sign_bytes(token)
        return token if raw is None else spelled(raw)

    def _checked(self, ids: Iterable[int]) -> list[int]:
        found = [int(i) for i in ids]
        for i in found:
            if not 0 <= i < self.vocab_size:
                raise ArgumentError("tokenizer-id", found=i, last=self.vocab_size - 1)
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write tokenizer.json, whole or not at all. FileError where the disk refuses."""
        content = self._inner.to_str(pretty=True).encode()
        check_place(Path(path))
        write_aside(Path(path), lambda aside: aside.write_bytes(content), need=len(content))

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, within: Path | None = None) -> "Tokenizer":
        """The tokenizer of a file, ours or anyone's. FileError with what is wrong, before a text is read with it.

        within   the folder of a model or a run that the file belongs to: no link may lead out of it
        """
        source = Path(path)
        refuse_other_file(source, "tokenizer", within=within)
        content = read_file(source, most=LARGEST_FILE, within=within)
        if source.resolve().is_relative_to(ASSETS):
            return cls(_loaded(source, content))
        # Here, since bundled models do without it and are to start quickly.
        from regard.text.regex_cost import Cost
        from regard.text.tokenizer_check import check_content

        cost = check_content(source, content)
        inner = _loaded(source, content)
        _check_ids(source, inner)
        return cls(inner, LONGEST_QUADRATIC if cost is Cost.QUADRATIC else None)


def _loaded(path: Path, content: bytes) -> tokenizers.Tokenizer:
    """What `tokenizers` makes of the file; one from elsewhere is known to be harmless by now."""
    try:
        return tokenizers.Tokenizer.from_buffer(content)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise FileError("tokenizer-garbled", path=str(path), reason=_first_line(error)) from error


def _guarded(call: Callable[[], Result]) -> Result:
    """What `tokenizers` gives; ArgumentError where it refuses a text, as a model without <unk> may, or panics."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise ArgumentError("tokenizer-refuses", reason=_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _check_ids(path: Path, inner: tokenizers.Tokenizer) -> None:
    """Each id below the number of tokens belongs to one of them: a model has one row for each."""
    ids = sorted(inner.get_vocab(with_added_tokens=True).values())
    if not ids or ids != list(range(len(ids))):
        wrong = next((want for want, i in enumerate(ids) if want != i), 0)
        raise FileError("tokenizer-ids", path=str(path), count=len(ids), wrong=wrong)


def _check_whole(text: str) -> None:
    """Half of a surrogate pair is no character: it comes from bytes that were no UTF-8."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError("text-broken", place=error.start + 1, found=f"U+{ord(text[error.start]):04X}") from error


def _cut(text: str) -> Iterator[tuple[str, bool]]:
    """A long document in pieces, and whether each is the last: a piece ends with the end of a line, no space around."""
    start = 0
    while True:
        found = _LINE_END.search(text, start + _PIECE)
        yield text[start : found.end() if found else None], found is None
        if found is None:
            return
        start = found.end()


_LINE_END = re.compile(r"(?<=\S)\n(?=\S)")
