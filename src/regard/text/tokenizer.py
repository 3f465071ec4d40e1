"""Tokenizer: text to ids and back, from one file, tokenizer.json, in Hugging Face's layout.

It wraps `tokenizers`. A file that is not bundled is tried first in its own process (`tokenizer_checks`): a file whose
rules expand a text, stall on one or have gaps in their ids is refused. Text never becomes a control token: "<eos>" in a
sentence is five characters, and only the code that builds a batch adds <eos>. `tokenizer_training` learns tokenizers.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, TypedDict, TypeVar

import numpy as np
import tokenizers
from tokenizers import decoders, models

from regard.errors import ArgumentError, FileError
from regard.files.output import check_target, write_bytes
from regard.files.safe_open import check_file_format, read_file
from regard.text.segmentation import MARK, WRITTEN_ONLY, byte_level_bytes, text_or_hex, token_bytes

# Names of the same control token in the files of public models.
PAD = ("<pad>", "[PAD]", "<|pad|>")
BOS = ("<bos>", "<s>", "[BOS]", "<|begin_of_text|>")
EOS = ("<eos>", "</s>", "[EOS]", "<|endoftext|>", "<|end_of_text|>")
UNKNOWN = ("<unk>", "[UNK]")

ASSETS = Path(__file__).parents[1] / "assets"
"""Bundled files are trusted and not tried first."""
LARGEST_FILE = 2**26
NEVER = -10_000.0
"""The score, a logarithm, of a piece that is worse than any other."""
MOST_GAPS = 2**16
"""Missing ids of a public model beyond its own number of tokens."""
LONGEST_QUADRATIC_TEXT = 2**14
"""Characters of a text, for patterns that may take quadratic time: 1 or 2 s at most."""
# A long document is split after this number of characters, and texts are encoded in groups of this size: the tokens of
# a longer one would take much memory.
_PART, _GROUP = 2**16, 2**10


Result = TypeVar("Result")


class Marks(TypedDict):
    """The ids of the control tokens that batches of sentence pairs need."""

    pad: int
    bos: int
    eos: int


class Tokenizer:
    """Text to ids and back.

    `pad`, `bos`, `eos`, `unknown` are the ids of the control tokens, None where there is none; `vocab_size` counts all.

    >>> from regard.text import learn_tokenizer
    >>> tokenizer = learn_tokenizer(["床前明月光"], "characters")
    >>> tokenizer.encode("明月山"), tokenizer.decode([2 + 3, 7, 2]), tokenizer.pieces([7, 2])
    ([7, 8, 3], '前明', ['明', '<eos>'])
    """

    def __init__(
        self, inner: tokenizers.Tokenizer, longest: int | None = None, named: Mapping[str, int] | None = None
    ) -> None:
        """A tokenizer of the package `tokenizers`, whose padding and truncation are turned off.

        longest   the most characters of a text, None for no limit; it bounds the time of slow patterns
        named     ids of control tokens by name, "eos" and so on, where another file of the model names them
        """
        inner.no_padding()
        inner.no_truncation()
        inner.encode_special_tokens = True  # the text of a special token is text
        self._inner = inner
        self._longest = longest
        # The embeddings of public models often have more rows than the vocabulary; a random model writes these ids.
        self._may_be_padded = named is not None
        self._is_unigram = isinstance(inner.model, models.Unigram)
        self._is_byte_level = isinstance(inner.decoder, decoders.ByteLevel)
        self.vocab_size: int = 1 + max(inner.get_vocab(with_added_tokens=True).values(), default=-1)
        self._special = {i: token.content for i, token in inner.get_added_tokens_decoder().items() if token.special}
        self.pad, self.bos, self.eos, self.unknown = (
            (named or {}).get(name, self._first_special(names))
            for name, names in (("pad", PAD), ("bos", BOS), ("eos", EOS), ("unknown", UNKNOWN))
        )
        self._characters = self._single_characters()
        self.mask: int | None = None
        """The control token that a text may name: [MASK] of a model that predicts masked words. None for no such."""

    @cached_property
    def _without_controls(self) -> tokenizers.Tokenizer:
        """The same tokenizer, whose model never finds a control token in a text: a unigram model has them as pieces."""
        tree = json.loads(self._inner.to_str())
        controls = set(self.control_tokens)
        tree["model"]["vocab"] = [[token, NEVER if token in controls else n] for token, n in tree["model"]["vocab"]]
        found = tokenizers.Tokenizer.from_str(json.dumps(tree))
        found.encode_special_tokens = True
        return found

    def _first_special(self, names: tuple[str, ...]) -> int | None:
        """The id of the first of these names that is a special token; Qwen's <unk> is ordinary text, from web pages."""
        ids = {name: i for i, name in self._special.items()}
        return next((ids[name] for name in names if name in ids), None)

    def _single_characters(self) -> dict[str, int] | None:
        """The ids by character, if every token is one character: a table is then faster. Else None."""
        if self._inner.normalizer is not None or self._inner.pre_tokenizer is not None:
            return None
        model = json.loads(self._inner.to_str())["model"]
        if model["type"] != "BPE" or model["merges"]:
            return None
        return {token: i for token, i in model["vocab"].items() if len(token) == 1}

    def special(self, name: Literal["pad", "bos", "eos", "unknown"]) -> int:
        """The id of a control token. Raises ArgumentError where there is none."""
        found: int | None = getattr(self, name)
        if found is None:
            raise ArgumentError("tokenizer-special", name=name)
        return found

    def marks(self) -> Marks:
        """The ids of pad, bos and eos by name, for batches of sentence pairs. Raises as `special`."""
        return {"pad": self.special("pad"), "bos": self.special("bos"), "eos": self.special("eos")}

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without control tokens.

        Raises ArgumentError where a character has no id and the tokenizer has no <unk>.
        """
        return self.encode_all([text])[0]

    def encode_template(self, text: str, separator: str) -> list[int]:
        """The ids of a rendered conversation, in which the names of control tokens are control tokens.

        Text in which a name is split by `separator` has it removed and stays text.
        """
        _check_surrogates(text)
        inner = self._inner
        inner.encode_special_tokens = False
        try:
            if separator not in text:
                return _call(lambda: inner.encode(text, add_special_tokens=False)).ids
            names = "|".join(re.escape(name) for name in sorted(self.control_tokens, key=len, reverse=True))
            parts = re.split(f"({names})", text) if names else [text]
            ids: list[int] = []
            for part in filter(None, parts):
                inner.encode_special_tokens = separator in part
                ids += self._encode_part(part.replace(separator, ""))
            return ids
        finally:
            inner.encode_special_tokens = True

    def _encode_part(self, text: str) -> list[int]:
        return list(_call(lambda: self._inner.encode(text, add_special_tokens=False)).ids)

    def control_id(self, token: str) -> int:
        """The id of a control token by its text."""
        return next(i for i, text in self._special.items() if text == token)

    @property
    def control_tokens(self) -> tuple[str, ...]:
        """The texts of the control tokens."""
        return tuple(self._special.values())

    def _with_masks(self, text: str, mask: int) -> list[int]:
        """The ids of a text that names the mask; the space before it belongs to it where the file says so."""
        token = self._inner.get_added_tokens_decoder()[mask]
        parts = text.split(token.content)
        if token.lstrip:
            parts[:-1] = [part.rstrip() for part in parts[:-1]]
        if token.rstrip:
            parts[1:] = [part.lstrip() for part in parts[1:]]
        found = self._encoded(parts)
        return found[0] + [i for ids in found[1:] for i in (mask, *ids)]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; faster than one by one."""
        if self.mask is None or not any(self._special[self.mask] in text for text in texts):
            return self._encoded(texts)
        return [self._with_masks(text, self.mask) for text in texts]

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        for text in texts:
            _check_surrogates(text)
            if self._longest is not None and len(text) > self._longest:
                raise ArgumentError("tokenizer-text-long", found=len(text), most=self._longest)
        if self._characters is None:
            names_control = self._is_unigram and any(name in text for name in self.control_tokens for text in texts)
            encode = (self._without_controls if names_control else self._inner).encode_batch
            return [found.ids for found in _call(lambda: encode(list(texts), add_special_tokens=False))]
        return [self._encode_characters(text, self._characters) for text in texts]

    def _encode_characters(self, text: str, table: dict[str, int]) -> list[int]:
        if self.unknown is None and (strange := sorted(set(text) - table.keys())):
            raise ArgumentError("tokenizer-unknown", found=" ".join(map(repr, strange[:5])), count=len(strange))
        return [table.get(character, self.unknown) for character in text]  # type: ignore[misc]

    def surrounding_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The control ids that the file itself puts before and after one text: [CLS] and [SEP] for BERT.

        >>> from regard.text import learn_tokenizer
        >>> learn_tokenizer(["ab"], "characters").surrounding_ids()
        ((), ())
        """
        letter = next((one for one in ("a", "1", "一") if self._inner.encode(one, add_special_tokens=False).ids), "")
        bare = self._inner.encode(letter, add_special_tokens=False).ids
        whole = self._inner.encode(letter, add_special_tokens=True).ids
        starts = range(len(whole) - len(bare) + 1)
        at = next((start for start in starts if whole[start : start + len(bare)] == bare), 0)
        return tuple(whole[:at]), tuple(whole[at + len(bare) :])

    def pack(self, texts: Iterable[str], end: int | None = None) -> np.ndarray:
        """All texts as one array of the smallest fitting dtype, each followed by `end`, for packed blocks.

        >>> from regard.text import learn_tokenizer
        >>> learn_tokenizer(["ab"], "characters").pack(["a", "ba"], end=2)
        array([4, 2, 5, 4, 2], dtype=uint16)
        """
        dtype = np.uint16 if self.vocab_size <= 2**16 else np.uint32
        # Byte-level tokens and characters are the same whether a document is encoded whole or in parts.
        divisible = self._is_byte_level or self._characters is not None
        parts = ((part, last) for text in texts for part, last in (_split(text) if divisible else [(text, True)]))
        found = [np.empty(0, dtype)]
        while group := list(islice(parts, _GROUP)):
            for (_, last), ids in zip(group, self.encode_all([part for part, _ in group]), strict=True):
                found.append(np.array([*ids, end] if last and end is not None else ids, dtype))
        return np.concatenate(found)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids; control tokens are left out."""
        known = [i for i in self._checked_ids(ids) if i < self.vocab_size]
        return _call(lambda: self._inner.decode(known, skip_special_tokens=True))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The text of each id, or its bytes ⟨E6 9C⟩ where it is part of a character."""
        return [self._piece(i) for i in self._checked_ids(ids)]

    def raw_tokens(self, ids: Iterable[int]) -> list[str]:
        """The spelling of each id in the vocabulary, such as Ġcat."""
        return [self._spelling(i) for i in self._checked_ids(ids)]

    def token_bytes(self, ids: Iterable[int]) -> list[bytes]:
        """The bytes of each id of one text."""
        return token_bytes(self.raw_tokens(ids), self._is_byte_level)

    def _spelling(self, i: int) -> str:
        return (self._inner.id_to_token(i) or "").removeprefix(WRITTEN_ONLY)

    def _piece(self, i: int) -> str:
        if i in self._special:
            return self._special[i]
        if i >= self.vocab_size:
            return f"⟨{i}⟩"
        token = self._spelling(i)
        if not self._is_byte_level:
            return token.replace(MARK, " ")
        raw = byte_level_bytes(token)
        return token if raw is None else text_or_hex(raw)

    def _checked_ids(self, ids: Iterable[int]) -> list[int]:
        found = [int(i) for i in ids]
        for i in found:
            if not 0 <= i < self.vocab_size and not (self._may_be_padded and i >= 0):
                raise ArgumentError("tokenizer-id", found=i, last=self.vocab_size - 1)
        return found

    def to_json(self) -> str:
        """The content of its tokenizer.json; equal tokenizers have equal contents."""
        return self._inner.to_str(pretty=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write tokenizer.json atomically. Raises FileError where it cannot be written."""
        content = self.to_json().encode()
        check_target(Path(path))
        write_bytes(Path(path), content)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        within: Path | None = None,
        named: Mapping[str, int] | None = None,
        gaps: bool = False,
    ) -> "Tokenizer":
        """The tokenizer of a file, which need not be trusted. Raises FileError where the file is malformed or unsafe.

        within   the folder of the model or run; a link that leads out of it is refused
        named    ids of control tokens that another file of the model tells
        gaps     ids may be missing, as in files of some public models
        """
        source = Path(path)
        check_file_format(source, "tokenizer", within=within)
        content = read_file(source, most=LARGEST_FILE, within=within)
        if source.resolve().is_relative_to(ASSETS):
            return cls(_loaded(source, content), named=named)
        return cls.from_content(source, content, named=named, gaps=gaps)

    @classmethod
    def from_content(
        cls, source: Path, content: bytes, *, named: Mapping[str, int] | None = None, gaps: bool = False
    ) -> "Tokenizer":
        """The tokenizer of the content of a tokenizer.json, which need not be trusted; `source` is for messages."""
        # Imported here: bundled models do not need it, and start faster without.
        from regard.text.regex_cost import Cost
        from regard.text.tokenizer_checks import check_content

        cost = check_content(source, content)
        inner = _loaded(source, content)
        _check_ids(source, inner, gaps)
        return cls(inner, LONGEST_QUADRATIC_TEXT if cost is Cost.QUADRATIC else None, named)


def _loaded(path: Path, content: bytes) -> tokenizers.Tokenizer:
    """The tokenizer of a file that has been checked already."""
    try:
        return tokenizers.Tokenizer.from_buffer(content)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a Rust panic is not an Exception
        raise FileError("tokenizer-garbled", path=str(path), reason=_first_line(error)) from error


def _call(call: Callable[[], Result]) -> Result:
    """The result of a call to `tokenizers`; ArgumentError where it refuses a text (a model without <unk>) or panics."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise ArgumentError("tokenizer-refuses", reason=_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _check_ids(path: Path, inner: tokenizers.Tokenizer, gaps: bool) -> None:
    """Raise FileError unless the ids are 0 … n − 1: a model has one row for each. With `gaps` some may be missing."""
    ids = sorted(inner.get_vocab(with_added_tokens=True).values())
    if not ids or (ids != list(range(len(ids))) and not (gaps and ids[-1] < 2 * len(ids) + MOST_GAPS)):
        wrong = next((want for want, i in enumerate(ids) if want != i), 0)
        raise FileError("tokenizer-ids", path=str(path), count=len(ids), wrong=wrong)


def _check_surrogates(text: str) -> None:
    """Raise ArgumentError on half of a surrogate pair, which comes from bytes that are not UTF-8."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError("text-broken", place=error.start + 1, found=f"U+{ord(text[error.start]):04X}") from error


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a long document, and whether each is the last; cut at line ends without space around them."""
    start = 0
    while True:
        found = _LINE_END.search(text, start + _PART)
        yield text[start : found.end() if found else None], found is None
        if found is None:
            return
        start = found.end()


_LINE_END = re.compile(r"(?<=\S)\n(?=\S)")


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
