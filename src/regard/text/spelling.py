"""English as people type it, in the spelling of books: capitals, the apostrophes of short forms, 1,234 as 1234.

A text that is written so already is given back as it is. What a vocabulary has is asked of `cost`; of the words
themselves only short forms and common names are known, and no word is exchanged for another.
"""

import re
from collections.abc import Callable
from math import inf

from regard.text.sentences import split_sentences

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
