"""Normalised sentence pairs of Tatoeba: simplified characters, Chinese punctuation, no duplicates."""

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from regard.text.corpus import read_pairs
from regard.text.normalise import simplified, tidy

HAN = r"\u4e00-\u9fff"
SPACELESS = HAN + "，。？！；：、“”"
# Half-width punctuation marks in Chinese text, and their Chinese forms; a point or comma between digits is kept.
FULL_WIDTH = (
    (r'["＂]([^"＂]*)["＂]', r"“\1”"),
    (r"「([^」]*)」", r"“\1”"),
    (r"\?", "？"),
    ("!", "！"),
    (";", "；"),
    (rf"(?<=[{HAN}”》]),", "，"),
    (rf"(?<=[{HAN}”》])\.(?![\d.])", "。"),
)
# Old or regional spellings of a word: the data are too small for two spellings.
SAME_WORD = (("甚么", "什么"), ("甚麽", "什么"), ("妳", "你"))


class Pair(NamedTuple):
    """A sentence and its translation."""

    english: str
    chinese: str


def read(path: Path) -> list[Pair]:
    """The pairs of a TSV file without duplicates, in the file's order."""
    english, chinese = read_pairs([path]).columns
    pairs = (Pair(tidy(e), written(c)) for e, c in zip(english, simplified(chinese), strict=True))
    return list(dict.fromkeys(pair for pair in pairs if pair.english and pair.chinese))


def written(chinese: str) -> str:
    """Chinese text with full-width Chinese punctuation and no spaces around Han characters.

    >>> written("你好吗? 我很好, 谢谢.")
    '你好吗？我很好，谢谢。'
    """
    text = "".join(c for c in unicodedata.normalize("NFC", chinese) if unicodedata.category(c) != "Cf")
    for pattern, mark in FULL_WIDTH:
        text = re.sub(pattern, mark, text)
    for other, usual in SAME_WORD:
        text = text.replace(other, usual)
    return re.sub(rf"(?<=[{SPACELESS}])\s+|\s+(?=[{SPACELESS}])", "", text).strip()
