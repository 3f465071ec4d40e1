"""English text split into sentences, by what stands before a full stop and after it.

Made for what people type: one who writes without capitals is understood, and where it is in doubt nothing is split.
It has no dictionary, and knows nothing of how long a model's sentences may be.
"""

import re
import unicodedata
from collections.abc import Iterator

# Possessive, and never begun in the middle of a run: a hundred thousand full stops take no longer than they should.
_STOP = re.compile(r"""(?<![.!?])([.!?]++)(["')\]]*+)\s++""")
_BEGINNING = re.compile(r"""["'(\[]{0,9}+""")
_LAST_WORD = re.compile(r"[\w.'&-]*\Z")
_LONGEST_WORD = 20  # no abbreviation is as long

# After these a sentence goes on: they belong to what follows.
_BEFORE_A_NAME = re.compile(
    r"(?:mrs?|ms|messrs|mme|mlle|dr|prof|st|mt|ft|gen|col|capt|lt|sgt|rev|hon|gov|fig|e\.g|i\.e|vs|cf)\Z", re.IGNORECASE
)
# After these it goes on unless the next word could only begin one; and so after initials and all that is dotted within.
_IN_DOUBT = re.compile(
    r"(?:etc|[js]r|inc|ltd|co|corp|dept|approx|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|"
    r"[^\W\d_]|(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2})\Z",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"(?:I|You|He|She|It|We|They|This|That|These|Those|There|Here|The|A|An|My|Your|His|Her|Its|Our|Their|What|When|Where|"
    r"Who|Why|How|Which|Is|Are|Was|Were|Do|Does|Did|Have|Has|Can|Could|Will|Would|Should|And|But|So|Or|Then|If|In|On|At|"
    r"Please|Let|No|Yes|Not|After|Before|Because)\b(?!\.)"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in order; nothing is lost but the space between them. The end of a line ends one too.

    >>> split_sentences("Mr. Li left at 7.30 a.m. today. Did he? He did!\\nwell... ok. bye.")
    ['Mr. Li left at 7.30 a.m. today.', 'Did he?', 'He did!', 'well... ok.', 'bye.']
    """
    return [sentence for line in text.splitlines() for sentence in _of_line(line.strip())]


def _of_line(line: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(line):
        if _ends(line, start, stop):
            yield line[start : stop.end(2)]
            start = stop.end()
    if start < len(line):
        yield line[start:]


def _ends(line: str, start: int, stop: re.Match[str]) -> bool:
    """Whether the sentence that began at `start` ends with this stop."""
    first, following = _first(line, start), _first(line, stop.end())
    char = line[following : following + 1]
    if not (char.isalnum() or unicodedata.category(char or " ") == "Sc"):
        return False
    # Lower case goes on, as in “Why?” she asked; unless the writer begins sentences so.
    if char.islower() and not line[first : first + 1].islower():
        return False
    if "!" in stop[1] or "?" in stop[1] or (stop[1] == "." and stop[2]):
        return True
    item = stop.start() - first < 4 and line[first : stop.start()].isdigit()  # 1. This is one
    return len(stop[1]) == 1 and not item and _may_end(line, stop.start(), following)


def _may_end(line: str, dot: int, following: int) -> bool:
    """Whether the word before this full stop is more than an abbreviation of one that goes on."""
    match = _LAST_WORD.search(line, max(0, dot - _LONGEST_WORD), dot)
    word = match[0] if match else ""
    if _BEFORE_A_NAME.match(word) or (word.lower() == "no" and line[following].isdigit()):
        return False
    if _IN_DOUBT.match(word):
        return _BEGINS.match(line, following) is not None
    return True


def _first(line: str, at: int) -> int:
    """Where the first sign after quotes and brackets stands."""
    found = _BEGINNING.match(line, at)
    assert found is not None  # it may be empty
    return found.end()
