"""A text made fit for a model to read, before it is made into tokens; and what of it the model does not know.

Plain signs, no character without a token, and for a model that reads English the spelling of books. What is read is
what is shown; a text is never refused for what is odd in it, only where nothing can be read at all.
"""

import re
import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import ArgumentError
from regard.language.numerals import lost_numbers
from regard.language.vocabulary import WORD, is_known
from regard.text.scripts import main_script
from regard.text.spelling import spelled
from regard.text.tidy import tidy
from regard.text.tokenizer import Tokenizer
from regard.words import Listed, say

if TYPE_CHECKING:
    from regard.language.model import LanguageModel

EMPTY = "translate-empty"
_OTHER_SCRIPTS = re.compile("[^\\W\\d_A-Za-zªºÀ-ɏḀ-ỿ]+")
# Begun only where such a thing can begin, so that a million letters without a space take no longer than they should.
_NO_WORDS = re.compile(r"(?<!\S)(?=\S*\w(?:://|@)\w|www\.)\S++|(?<!\d)\d++ ?[+*=<>^×÷] ?\d++")
"""Addresses, and what is calculated."""
_LETTERS = 2.5
"""Letters in a token: less where most words are French, German or none at all; of dev.tsv in 2 sentences of 1,002."""
_SHOWN = 5
_FEW = 64
"""Tokens of a vocabulary that can be named in one sentence."""


class Reading(NamedTuple):
    """A text as the model reads it, whether that is another than was given, and what it does not know of it.

    strange   what is no English
    unseen    words that the model never read while it was trained; empty where its folder does not list its words
    """

    text: str
    changed: bool
    strange: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


def read(model: "LanguageModel", text: str) -> Reading:
    """How a text is read; ArgumentError if nothing of it can be."""
    found, plain = readable(model, text), tidy(text)
    strange, unseen = _unknown(model, plain) if _english(model) else ([], [])
    return Reading(found, found != plain, tuple(strange), tuple(unseen))


def warn_of_strange(model: "LanguageModel", text: str | Sequence[str], output: str | Sequence[str]) -> None:
    """One warning of each kind for what the model does not know of a text, or of several, and for lost numbers."""
    texts, outputs = ([each] if isinstance(each, str) else each for each in (text, output))
    found: dict[str, dict[str, None]] = {}
    for given, written in zip(texts, outputs, strict=True):
        if _english(model) and tidy(given):
            for kind, pieces in unknown(model, given, written).items():
                found.setdefault(kind, {}).update(dict.fromkeys(pieces))
    for kind, every in found.items():
        warnings.warn(told(model, list(every), kind), stacklevel=3)  # at the line that called the LanguageModel


def unknown(model: "LanguageModel", text: str, output: str | None) -> dict[str, list[str]]:
    """What to tell about a text, by the key of its sentence: strange pieces, unseen words, no word, lost numbers.

    `output` is the model's translation; None where there is none.
    """
    reading = read(model, text)
    found = {"text-strange": list(reading.strange), "text-unseen": list(reading.unseen)}
    if _english(model) and not any(character.isalnum() for character in text):
        found["text-wordless"] = [tidy(text)]
    found["text-numbers"] = [] if output is None or not _english(model) else lost_numbers(tidy(text), output)
    return {kind: pieces for kind, pieces in found.items() if pieces}


def told(model: "LanguageModel", pieces: Sequence[str], kind: str = "text-strange") -> str:
    """The sentence about what a model does not know, or has lost."""
    return say(kind, name=model.name, found=Listed.few(map(_beginning, pieces), _SHOWN))


def check_text(text: Any) -> None:
    """A str, or an ArgumentError."""
    if not isinstance(text, str):
        raise ArgumentError("text-kind", found=type(text).__name__)


def readable(model: "LanguageModel", text: str) -> str:
    """The text as the model reads it; ArgumentError if nothing is left."""
    check_text(text)
    plain = tidy(text)
    if not plain:
        raise ArgumentError(EMPTY)
    if _english(model):
        _check_script(model, plain)
    found = _written(model, plain)
    if not found:
        raise _unreadable(model, _beginning(plain))
    return found


def _check_script(model: "LanguageModel", plain: str) -> None:
    """ArgumentError where most letters are of another script than the Latin one: it is told which."""
    script = main_script(plain)
    if script == "han" and model.settings.target_language != "zh":
        return
    if script == "han":
        raise ArgumentError("translate-chinese", found=_beginning(plain))
    if script is not None and script != "latin":
        named = ArgumentError(f"script-{script}")  # as a value, it is told in the language of the sentence
        raise ArgumentError("translate-script", found=_beginning(plain), script=named, name=model.name)


def _unreadable(model: "LanguageModel", found: str) -> ArgumentError:
    """With the characters that the model knows, where these are few: a puzzle's letters, or its digits."""
    if _english(model) or model.tokenizer.vocab_size > _FEW:
        return ArgumentError("translate-unreadable", found=found)
    pieces = model.tokenizer.pieces(range(model.tokenizer.vocab_size))
    return ArgumentError("translate-unreadable-few", found=found, known=" ".join(p for p in pieces if len(p) == 1))


def _written(model: "LanguageModel", plain: str) -> str:
    """In characters that the model knows, and in the spelling that it learnt."""
    known = tidy(without_unknown(model.tokenizer, plain))
    return spelled(known, cache(lambda word: cost(model.tokenizer, word))) if _english(model) else known


def _english(model: "LanguageModel") -> bool:
    return model.settings.source_language == "en"


def _beginning(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}…"


def cost(tokenizer: Tokenizer, word: str) -> float:
    """How many tokens a word takes; infinitely many where one of them is <unk>."""
    ids = tokenizer.encode(word)
    return inf if tokenizer.unknown in ids else len(ids)


def _unknown(model: "LanguageModel", plain: str) -> tuple[list[str], list[str]]:
    """What is no English (other scripts, addresses, sums, words if most are unknown), and single words never read.

    Where the words are not listed that the model has read, those count as unknown that come in small pieces.
    """
    certain = [piece for pattern in (_OTHER_SCRIPTS, _NO_WORDS) for piece in pattern.findall(plain)]
    rest = _written(model, _OTHER_SCRIPTS.sub(" ", _NO_WORDS.sub(" ", plain)))
    words = WORD.findall(rest)
    given = {word.lower(): word for word in WORD.findall(plain)}  # as typed, before any capital was put right
    new = [given.get(word.lower(), word) for word in (_unseen if model.words else _in_small_pieces)(model, words)]
    if 2 * len(new) > len(words) and (len(words) > 1 or not model.words):
        return list(dict.fromkeys(certain + new)), []
    return list(dict.fromkeys(certain)), list(dict.fromkeys(new)) if model.words else []


def _unseen(model: "LanguageModel", words: list[str]) -> list[str]:
    return [word for word in words if not is_known(word, model.words)]


def _in_small_pieces(model: "LanguageModel", words: list[str]) -> list[str]:
    tokens = map(len, model.tokenizer.encode_all(words))
    return [word for word, count in zip(words, tokens, strict=True) if count > 1 and len(word) < _LETTERS * count]


def without_unknown(tokenizer: Tokenizer, text: str) -> str:
    """The text without the characters that the tokenizer could only read as <unk>; é becomes e where it knows that."""
    if tokenizer.unknown is None or tokenizer.unknown not in tokenizer.encode(text):
        return text
    bare = {c: unicodedata.normalize("NFD", c)[0] for c in unknown_characters(tokenizer, text) if c != "\n"}
    strange = unknown_characters(tokenizer, "".join(bare.values()))
    return "".join("" if bare.get(c) in strange else bare.get(c, c) for c in text)


def unknown_characters(tokenizer: Tokenizer, text: str) -> list[str]:
    """Those characters, each once, in their order."""
    if tokenizer.unknown is None:
        tokenizer.encode(text)  # says at once what it has no ids for
        return []
    characters = list(dict.fromkeys(text))
    return [c for c, ids in zip(characters, tokenizer.encode_all(characters), strict=True) if tokenizer.unknown in ids]
