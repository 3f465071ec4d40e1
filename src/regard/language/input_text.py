"""A text prepared for a model: normalised, checked for script, with notes on what the model does not know.

Also what a translation lost: numbers of the text that it lacks.
"""

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import ArgumentError, FileError
from regard.files.input import read_file
from regard.files.output import reason_of
from regard.messages import Listed, say
from regard.text.normalise import spelled, tidy
from regard.text.segmentation import main_script
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from regard.language.model import LanguageModel


WORDS = "words.txt"
LARGEST_FILE = 2**24
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
"""A word with its apostrophes; digits are no part of one."""


def words_of(text: str) -> frozenset[str]:
    """The words of a text in small letters.

    >>> sorted(words_of("It's 5 o'clock. It is!"))
    ['is', 'it', "it's", "o'clock"]
    """
    return frozenset(word.lower() for word in WORD.findall(text))


def read_words(path: Path) -> frozenset[str]:
    """The words in a file; FileError where it is no list of words."""
    content = read_file(path, most=LARGEST_FILE, within=path.parent)
    try:
        return frozenset(content.decode().lower().split())
    except UnicodeDecodeError as error:
        raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error


def is_known(word: str, words: frozenset[str]) -> bool:
    """Whether the model has read the word; a letter alone, and 's after a word, say nothing.

    >>> is_known("Tom's", frozenset({"tom"})), is_known("quokka", frozenset({"tom"}))
    (True, False)
    """
    small = word.lower()
    return len(small) == 1 or small in words or small.removesuffix("'s") in words or small.removesuffix("'") in words


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DIGITS = {
    sign: value
    for value, signs in enumerate(("零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九"))
    for sign in signs
}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_GREAT = {"万": 10**4, "亿": 10**8}
_CHINESE = re.compile(rf"[{''.join(_DIGITS)}{''.join(_UNITS)}{''.join(_GREAT)}]+")
# Begun only at the first digit, and never tried again with fewer: a million digits must not take a million tries.
_MIXED = re.compile(r"(?<!\d)(\d++(?:\.\d++)?+)([十百千万亿]+)")
LONGEST = 40
"""Digits that are compared as a value; longer numbers as they are written."""


def lost_numbers(text: str, output: str) -> list[str]:
    """The numbers of a text, as they stand there, that are not in its translation.

    >>> lost_numbers("Call 12345 at 10:45", "125在10点45分打电话")
    ['12345']
    >>> lost_numbers("3 cats and 100,000 dogs", "三只猫和10万只狗")
    []
    """
    there = _values(output)
    lost = []
    for number in _NUMBER.findall(unicodedata.normalize("NFKC", text)):
        value = _value(number)
        if there[value]:
            there[value] -= 1
        elif not _in_parts(number, there):
            lost.append(number)
    return lost


def _in_parts(number: str, there: "Counter[object]") -> bool:
    """Whether each part of 3.30 or 1,5 stands there by itself: a time, a list; then these are taken."""
    parts = [_value(part) for part in re.split(r"[.,]", number)]
    if len(parts) < 2 or any(there[part] < count for part, count in Counter(parts).items()):
        return False
    there.subtract(parts)
    return True


def _value(number: str) -> object:
    """The value of a number in digits: 1,000 is 1000, and 3.50 is 3.5."""
    plain = number.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number) else number
    try:
        return Decimal(plain).normalize() if len(plain) <= LONGEST else plain
    except InvalidOperation:
        return plain


def _values(output: str) -> "Counter[object]":
    """Every number in a translation, in whichever way it is written. A number may be read in several ways."""
    plain = unicodedata.normalize("NFKC", output)
    found: Counter[object] = Counter(_value(number) for number in _NUMBER.findall(plain))
    for number, units in _MIXED.findall(plain):
        value = Decimal(number) if len(number) <= LONGEST else Decimal(0)
        for unit in units:
            value *= (_UNITS | _GREAT)[unit]
        found[value.normalize()] += 1
    for written in _CHINESE.findall(plain):
        found.update(_chinese(written[:LONGEST]))
    return found


def _chinese(written: str) -> list[object]:
    """The values that Chinese characters may write: 二〇二四 digit by digit, 一百零五 by units, 十 also within 十一.

    >>> sorted(_chinese("二十三")), sorted(_chinese("二〇二四"))
    ([Decimal('23')], [Decimal('2024')])
    """
    if all(sign in _DIGITS for sign in written):
        values = [int("".join(str(_DIGITS[sign]) for sign in written))]
        # 三四 is also "three or four".
        values += [_DIGITS[sign] for sign in written] if 1 < len(written) < 4 else []
    else:
        total = part = 0
        digit: int | None = None
        for sign in written:
            if sign in _DIGITS:
                digit = _DIGITS[sign]
            elif sign in _UNITS:
                part += (1 if digit is None else digit) * _UNITS[sign]
                digit = None
            else:
                section, great = part + (digit or 0), _GREAT[sign]
                # 一亿零五万: 万 counts what stands after 亿 alone.
                total = total + section * great if total >= 10**8 > great else (total + section) * great
                part, digit = 0, None
        values = [total + part + (digit or 0)]
    return [Decimal(value).normalize() for value in values]


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
