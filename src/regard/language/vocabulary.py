"""The words that a model read while it was trained, where its folder lists them in words.txt, one a line."""

import re
from pathlib import Path

from regard.errors import FileError
from regard.files import reason_of
from regard.input_files import read_file

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
