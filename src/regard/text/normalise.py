"""Typed or pasted text made plain, and English in the spelling of books, before a model reads it."""

import re
import unicodedata
from collections.abc import Callable
from math import inf

from regard.text.segmentation import split_sentences

_WRITTEN = {
    "'": "‘’‚‛′´‹›",
    '"': "“”„‟″«»",
    "-": "‐‑‒–—―−",
    "\n": "\u2028\u2029\x85",
    "...": "…",
    "ff": "ﬀ",
    "fi": "ﬁ",
    "fl": "ﬂ",
    "ffi": "ﬃ",
    "ffl": "ﬄ",
}
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""What colours a terminal: copied from one, its letters and digits would be read as text."""
_BLANKS = re.compile(r" *\n *| {2,}")
_HAN = re.compile("[〇㐀-䶿一-鿿豈-\ufaff\U00020000-\U0003ffff]")
_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ɏḀ-ỿＡ-Ｚａ-ｚ]")


class _Table(dict[int, str]):
    """What each character becomes; found when it is first met, since Unicode has a million."""

    def __missing__(self, code: int) -> str:
        char, category = chr(code), unicodedata.category(chr(code))
        if category in ("Cf", "Cs"):
            found = ""  # zero-width, bidirectional, half a character
        elif category in ("Cc", "Zs") and char != "\n":
            found = " "
        else:
            found = chr(code - 0xFEE0) if 0xFF01 <= code <= 0xFF5E else char
        self[code] = found
        return found


_TABLE = _Table({ord(char): plain for plain, chars in _WRITTEN.items() for char in chars})


def tidy(text: str) -> str:
    r"""The text in NFC and plain signs: one space where there were several, line ends kept, nothing invisible.

    >>> tidy("  “It’s\t５\u200b o’clock…”\r\nＯＫ ")
    '"It\'s 5 o\'clock..."\nOK'
    """
    # Once before NFC, so that a mark meets its letter, and once after it, because NFC makes some of these signs itself.
    plain = unicodedata.normalize("NFC", _ESCAPES.sub("", text).translate(_TABLE)).translate(_TABLE)
    return _BLANKS.sub(lambda found: "\n" if "\n" in found[0] else " ", plain).strip()


def is_chinese(text: str) -> bool:
    """Whether there are more Han characters than Latin letters.

    >>> is_chinese("我爱 Tom。"), is_chinese("我们都爱 Tom。"), is_chinese("3 + 4")
    (False, True, False)
    """
    return len(_HAN.findall(text)) > len(_LATIN.findall(text))


Cost = Callable[[str], float]
"""How many tokens a word takes; infinitely many where it cannot be read."""

# No part of an address or an abbreviation: www.china.com, i.e., I/O.
_WORD = re.compile(r"(?<![\w@/.&'])[^\W\d_]++(?:'[^\W\d_]++)*+(?![\w@/&]|\.\w)")
_OPENING = re.compile(r"""["(\[]*+""")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_CALLS = ("hi", "hey", "oh")
"""Sentences of one word; dictionaries write other words small that stand alone."""
_I = re.compile(r"i(?:'(?:m|ll|ve|d))?\Z", re.IGNORECASE)

_SHORT_FORMS = """
ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't needn't shouldn't wasn't weren't
won't wouldn't I'm I've he's she's that's what's there's who's you're you've you'll they're they've they'll
"""
SHORT_FORMS = {short.replace("'", "").lower(): short for short in _SHORT_FORMS.split()}
"""By their spelling without the apostrophe; not those that are another word without: its, well, were, ill, lets."""

_NAMES = """
Monday Tuesday Wednesday Thursday Friday Saturday Sunday Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays
January February April June July August September October November December Christmas Easter
English Englishman French German Japanese Chinese Spanish Italian Russian Greek Korean Portuguese Arabic Latin British
American Americans Canadian Canadians Australian European African Asian Indian Mexican Vietnamese Thai Dutch Swedish
China Japan America Canada Australia England Britain Scotland Ireland France Germany Italy Spain Portugal Greece Russia
Poland Sweden Norway Denmark Austria Switzerland India Korea Vietnam Thailand Singapore Taiwan Brazil Mexico Egypt
Europe Asia Africa Zealand Beijing Shanghai Tokyo Osaka Kyoto Boston London Paris Rome Berlin Chicago Hawaii California
Tom Mary John Anna Alice Jane Tony Jim Ken Peter Paul David George Charles Elizabeth
Xiaoming Xiaohong Xiaoli Xiaolan Xiaowei Xiaolong Xiaogang Xiaoqiang Xiaoping Xiaofang Xiaomei Xiaoyu Xiaoyan Xiaoliang
Xiaojun Xiaohua Facebook OK TV CD DVD USA UK
"""
NAMES = {name.lower(): name for name in _NAMES.split()}
"""By their spelling in small letters, which no other word has that is met as often."""


def spelled(text: str, cost: Cost) -> str:
    """The text, which is tidy, as a careful writer would have it.

    >>> spelled("hi tom! i dont know 1,000 words. i'll ask on monday", cost=len)
    "Hi Tom! I don't know 1000 words. I'll ask on Monday"
    """
    together = _GROUPED.sub(lambda found: found[0].replace(",", ""), text)
    return "\n".join(_line(line, cost) for line in together.split("\n"))


def _line(line: str, cost: Cost) -> str:
    loud = line.isupper()
    # Split first: capitals tell where a sentence begins. In a tidy line there is one space between two of them.
    return " ".join(_sentence(sentence, loud, cost) for sentence in split_sentences(line))


def _sentence(sentence: str, loud: bool, cost: Cost) -> str:
    if loud:
        sentence = _WORD.sub(lambda found: _quiet(found[0], cost), sentence)
    return _begun(_WORD.sub(lambda found: _word(found[0], cost), sentence), cost)


def _quiet(word: str, cost: Cost) -> str:
    """A word out of a line in capitals, in small letters, unless it is better known as it is: TV."""
    small = word.lower()
    return small if len(word) == 1 or cost(small) < cost(word) else word


def _word(word: str, cost: Cost) -> str:
    """A word with its apostrophe, and with its capital if it has one wherever it stands."""
    small = word.lower()
    stem, apostrophe, end = word.partition("'")
    if _I.match(word):
        new = small.capitalize()
    elif small in SHORT_FORMS:
        new = SHORT_FORMS[small]
        new = new[0].upper() + new[1:] if word[0].isupper() else new
    elif stem.lower() in NAMES:
        new = NAMES[stem.lower()] + apostrophe + end
    else:
        return word
    return new if cost(new) < inf else word


def _begun(sentence: str, cost: Cost) -> str:
    """A sentence with a capital at its beginning, unless the vocabulary knows the word better without."""
    start = _OPENING.match(sentence)
    first = _WORD.match(sentence, start.end() if start else 0)
    if first is None or not first[0].islower() or (first[0] == sentence and sentence not in _CALLS):
        return sentence
    great = first[0].capitalize()
    return sentence[: first.start()] + great + sentence[first.end() :] if cost(great) <= cost(first[0]) else sentence
