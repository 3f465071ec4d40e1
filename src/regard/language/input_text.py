"""Input text as the model reads it, and notes about it: unknown words, other scripts, numbers lost in translation."""

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import ArgumentError, FileError
from regard.files.output import reason_of
from regard.files.safe_open import read_file
from regard.messages import Listed, say
from regard.text.normalise import correct_spelling, tidy
from regard.text.segmentation import main_script
from regard.text.tokenizer import AnyTokenizer

if TYPE_CHECKING:
    from regard.language.model import LanguageModel


WORDS_FILE = "words.txt"
LARGEST_FILE = 2**24
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
"""A word with its apostrophes, without digits."""


def check_task(model: "LanguageModel", task: str) -> None:
    """Raise ArgumentError, naming what the model does instead, unless it translates ("translation"), or writes."""
    if model.settings.task == "encoding":
        raise ArgumentError("translate-encoder" if task == "translation" else "generate-encoder", name=model.name)
    if model.settings.task != task:
        raise ArgumentError("translate-task" if task == "translation" else "generate-task", name=model.name)


def words_of(text: str) -> frozenset[str]:
    """The words of a text in lower case.

    >>> sorted(words_of("It's 5 o'clock. It is!"))
    ['is', 'it', "it's", "o'clock"]
    """
    return frozenset(word.lower() for word in WORD.findall(text))


def read_words(path: Path) -> frozenset[str]:
    """The words in a file. Raises FileError where it is not UTF-8."""
    content = read_file(path, most=LARGEST_FILE, within=path.parent)
    try:
        return frozenset(content.decode().lower().split())
    except UnicodeDecodeError as error:
        raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error


def is_known(word: str, words: frozenset[str]) -> bool:
    """Whether the word is in `words`; single letters are, and 's at the end is ignored.

    >>> is_known("Tom's", frozenset({"tom"})), is_known("quokka", frozenset({"tom"}))
    (True, False)
    """
    small = word.lower()
    return len(small) == 1 or small in words or small.removesuffix("'s") in words or small.removesuffix("'") in words


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DIGITS = {
    character: value
    for value, characters in enumerate(("零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九"))
    for character in characters
}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_LARGE_UNITS = {"万": 10**4, "亿": 10**8}
_CHINESE_NUMBER = re.compile(rf"[{''.join(_DIGITS)}{''.join(_UNITS)}{''.join(_LARGE_UNITS)}]+")
# Starts at the first digit only and does not backtrack: time is linear on a million digits.
_MIXED = re.compile(r"(?<!\d)(\d++(?:\.\d++)?+)([十百千万亿]+)")
LONGEST = 40
"""Digits of a number that is compared by value; longer ones are compared as text."""


def lost_numbers(text: str, output: str) -> list[str]:
    """The numbers of a text, as written there, that are missing in its translation.

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
        elif not _take_parts(number, there):
            lost.append(number)
    return lost


def _take_parts(number: str, there: "Counter[object]") -> bool:
    """Whether each part of 3.30 or 1,5 is a number in the translation (a time, a list); removes these from `there`."""
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
    """Every number in a translation, in digits or Chinese characters. A number may have several readings."""
    plain = unicodedata.normalize("NFKC", output)
    found: Counter[object] = Counter(_value(number) for number in _NUMBER.findall(plain))
    for number, units in _MIXED.findall(plain):
        value = Decimal(number) if len(number) <= LONGEST else Decimal(0)
        for unit in units:
            value *= (_UNITS | _LARGE_UNITS)[unit]
        found[value.normalize()] += 1
    for written in _CHINESE_NUMBER.findall(plain):
        found.update(_chinese_values(written[:LONGEST]))
    return found


def _chinese_values(written: str) -> list[object]:
    """The possible values of a number in Chinese characters: 二〇二四 digit by digit, 一百零五 by units.

    >>> sorted(_chinese_values("二十三")), sorted(_chinese_values("二〇二四"))
    ([Decimal('23')], [Decimal('2024')])
    """
    if all(character in _DIGITS for character in written):
        values = [int("".join(str(_DIGITS[character]) for character in written))]
        # 三四 is also "three or four".
        values += [_DIGITS[character] for character in written] if 1 < len(written) < 4 else []
    else:
        total = part = 0
        digit: int | None = None
        for character in written:
            if character in _DIGITS:
                digit = _DIGITS[character]
            elif character in _UNITS:
                part += (1 if digit is None else digit) * _UNITS[character]
                digit = None
            else:
                section, large = part + (digit or 0), _LARGE_UNITS[character]
                # 一亿零五万: 万 multiplies only what follows 亿.
                total = total + section * large if total >= 10**8 > large else (total + section) * large
                part, digit = 0, None
        values = [total + part + (digit or 0)]
    return [Decimal(value).normalize() for value in values]


EMPTY = "translate-empty"
_OTHER_SCRIPTS = re.compile("[^\\W\\d_A-Za-zªºÀ-ɏḀ-ỿ]+")
# Starts only where an address or a sum can start: time is linear on a million letters without a space.
_NOT_WORDS = re.compile(r"(?<!\S)(?=\S*\w(?:://|@)\w|www\.)\S++|(?<!\d)\d++ ?[+*=<>^×÷] ?\d++")
"""Addresses and sums."""
_LETTERS_PER_TOKEN = 2.5
"""Letters per token: fewer where most words are not English; so in 2 of the 1,002 sentences of dev.tsv."""
_MOST_LISTED = 5
_FEW = 64
"""Tokens of a vocabulary that one message can list."""


class InputText(NamedTuple):
    """A text as the model reads it, and the given text with plain characters only."""

    text: str
    plain: str


class Note(NamedTuple):
    """A note about an input text: a message key and the parts of the text.

    kind   "read-as": the text with corrected spelling; "text-not-english": parts that are not English; "text-unseen":
           words that are not in the training text; "text-wordless": a text without words; "text-numbers": lost numbers
    """

    kind: str
    parts: tuple[str, ...]


class InputWarning(UserWarning):
    """A warning about an input text; the notes of a result hold the same."""


def read_input(model: "LanguageModel", text: str) -> InputText:
    """The text as the model reads it. Raises ArgumentError where nothing is left."""
    check_text(text)
    plain = text if model.settings.verbatim else tidy(text)
    if not plain.strip():
        raise ArgumentError(EMPTY)
    if model.settings.verbatim:
        return InputText(plain, plain)
    if _reads_english(model):
        _check_script(model, plain)
    found = _in_known_spelling(model, plain)
    if not found:
        raise _unreadable_error(model, _shortened(plain))
    return InputText(found, plain)


def input_notes(model: "LanguageModel", given: InputText, output: str | None) -> tuple[Note, ...]:
    """The notes about a text and the model's translation; None for one that the model did not write."""
    found = {"read-as": [given.text] if given.text != given.plain else []}
    if _reads_english(model):
        found["text-not-english"], found["text-unseen"] = _find_unknown(model, given)
        found["text-wordless"] = [] if any(map(str.isalnum, given.plain)) else [given.plain]
        found["text-numbers"] = [] if output is None else lost_numbers(given.plain, output)
    return tuple(Note(kind, tuple(parts)) for kind, parts in found.items() if parts)


def note_message(model: "LanguageModel", note: Note) -> str:
    """The message of a note."""
    if note.kind == "read-as":
        return say(note.kind, text=note.parts[0])
    return say(note.kind, name=model.name, found=Listed.few(map(_shortened, note.parts), _MOST_LISTED))


def warn_about_input(model: "LanguageModel", notes: Iterable[Note]) -> None:
    """One InputWarning of each kind, for all texts together; corrected spelling gives none."""
    found: dict[str, dict[str, None]] = {}
    for note in notes:
        if note.kind != "read-as":
            found.setdefault(note.kind, {}).update(dict.fromkeys(note.parts))
    for kind, parts in found.items():
        message = note_message(model, Note(kind, tuple(parts)))
        warnings.warn(message, InputWarning, stacklevel=3)  # at the line that called the LanguageModel


def check_text(text: Any) -> None:
    """Raise ArgumentError unless the text is a str."""
    if not isinstance(text, str):
        raise ArgumentError("text-kind", found=type(text).__name__)


def _check_script(model: "LanguageModel", plain: str) -> None:
    """Raise ArgumentError with the script where most letters are not Latin."""
    script = main_script(plain)
    if script == "han" and model.settings.target_language != "zh":
        return
    if script == "han":
        raise ArgumentError("translate-chinese", found=_shortened(plain))
    if script is not None and script != "latin":
        named = ArgumentError(f"script-{script}")  # as a value, it is written in the language of the message
        raise ArgumentError("translate-script", found=_shortened(plain), script=named, name=model.name)


def _unreadable_error(model: "LanguageModel", found: str) -> ArgumentError:
    """The error, with the characters that the model knows if these are few (the letters or digits of a puzzle)."""
    if _reads_english(model) or model.tokenizer.vocab_size > _FEW:
        return ArgumentError("translate-unreadable", found=found)
    pieces = model.tokenizer.pieces(range(model.tokenizer.vocab_size))
    return ArgumentError("translate-unreadable-few", found=found, known=" ".join(p for p in pieces if len(p) == 1))


def _in_known_spelling(model: "LanguageModel", plain: str) -> str:
    """A tidy text in characters that the model knows and, for English, with corrected spelling."""
    known = without_unknown(model.tokenizer, plain)
    if known != plain:
        known = tidy(known)
    if not _reads_english(model):
        return known
    return correct_spelling(known, cache(lambda word: count_tokens(model.tokenizer, word)))


def _reads_english(model: "LanguageModel") -> bool:
    return model.settings.source_language == "en"


def _shortened(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}…"


def count_tokens(tokenizer: AnyTokenizer, word: str) -> float:
    """The number of tokens of a word; infinity where one of them is <unk>."""
    ids = tokenizer.encode(word)
    return inf if tokenizer.unknown in ids else len(ids)


def _find_unknown(model: "LanguageModel", given: InputText) -> tuple[list[str], list[str]]:
    """The parts that are not English (other scripts, addresses, sums, words if most are unknown), and unseen words.

    Where the model's words are not listed, words that are split into short tokens count as unknown.
    """
    certain = [part for pattern in (_OTHER_SCRIPTS, _NOT_WORDS) for part in pattern.findall(given.plain)]
    rest = given.text
    if certain:
        rest = _in_known_spelling(model, tidy(_OTHER_SCRIPTS.sub(" ", _NOT_WORDS.sub(" ", given.plain))))
    words = WORD.findall(rest)
    typed = {word.lower(): word for word in WORD.findall(given.plain)}  # before spelling was corrected
    new = [typed.get(word.lower(), word) for word in (_unseen if model.words else _in_small_pieces)(model, words)]
    if 2 * len(new) > len(words) and (len(words) > 1 or not model.words):
        return list(dict.fromkeys(certain + new)), []
    return list(dict.fromkeys(certain)), list(dict.fromkeys(new)) if model.words else []


def _unseen(model: "LanguageModel", words: list[str]) -> list[str]:
    return [word for word in words if not is_known(word, model.words)]


def _in_small_pieces(model: "LanguageModel", words: list[str]) -> list[str]:
    tokens = map(len, model.tokenizer.encode_all(words))
    return [
        word for word, count in zip(words, tokens, strict=True) if count > 1 and len(word) < _LETTERS_PER_TOKEN * count
    ]


def without_unknown(tokenizer: AnyTokenizer, text: str) -> str:
    """The text without the characters that the tokenizer encodes as <unk>; é becomes e where that is known."""
    if tokenizer.unknown is None or tokenizer.unknown not in tokenizer.encode(text):
        return text
    bare = {c: unicodedata.normalize("NFD", c)[0] for c in unknown_characters(tokenizer, text) if c != "\n"}
    strange = unknown_characters(tokenizer, "".join(bare.values()))
    return "".join("" if bare.get(c) in strange else bare.get(c, c) for c in text)


def unknown_characters(tokenizer: AnyTokenizer, text: str) -> list[str]:
    """The characters that the tokenizer encodes as <unk>, each once, in order."""
    if tokenizer.unknown is None:
        tokenizer.encode(text)  # raises where a character has no id
        return []
    characters = list(dict.fromkeys(text))
    return [c for c, ids in zip(characters, tokenizer.encode_all(characters), strict=True) if tokenizer.unknown in ids]
