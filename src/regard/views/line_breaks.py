"""Line breaks for text in columns of a terminal, also between Chinese characters."""

import re
from itertools import pairwise

from rich.cells import cell_len

# A space, or one Chinese character or a run of other characters, together with opening punctuation, which must not end
# a line, and closing punctuation, which must not begin one.
CHINESE = r"\u2e80-\u9fff\uff00-\uffef“"
_ATOMS = re.compile(rf" +|[“「（]*(?:[{CHINESE}]|[^ {CHINESE}]+)[，。；：、！？）」”]*")


def fold(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces or between Chinese characters.

    >>> fold("attention 是这样计算的。", 14)
    ['attention 是这', '样计算的。']
    """
    text = text.lstrip(" ")
    return [text[start:end].rstrip() for start, end in pairwise([0, *line_breaks(text, width), len(text)])]


def line_breaks(text: str, width: int) -> list[int]:
    """The positions where a new line begins, for at most `width` columns; no line begins with closing punctuation.

    >>> line_breaks("注意力，和词元。", 8)
    [4]
    """
    places, start = [], 0
    for atom in _ATOMS.finditer(text):
        if atom.start() > start and cell_len(text[start : atom.end()].rstrip()) > width:
            places.append(start := atom.start())
    return places
