"""Data augmentation with words of the same kind: numbers in words, days, months, countries and cities.

A sentence with one word of a kind on both sides is repeated with others of that kind. Tatoeba has "at six" and "in
Boston" often, "at four" and "in Shanghai" rarely.
"""

import re
from collections.abc import Iterator, Sequence

from making.translator import dictionary
from making.translator.dictionary import Word
from making.translator.exchange import exchanged
from making.translator.order import draw
from making.translator.tatoeba import Pair

TIMES = 3
"""The number of variants of a sentence."""
# In ascending order.
FIRST = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday"
MONTHS = "January February March April May June July August September October November December"
DIGITS = "零一二三四五六七八九"
NUMERAL = "[零一二三四五六七八九十百千万两半几第]"
"""A character that makes a neighbouring number a different one."""


def others(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Every pair with one word of a kind, once on each side, with other words of that kind."""
    for kind in kinds([pair.chinese for pair in pairs]):
        known = {word.english: word for word in kind}
        named = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(known, key=len, reverse=True))})(?![\w-])")
        for pair in pairs:
            found = named.findall(pair.english)
            if len(found) == 1 and _once(known[found[0]], pair.chinese):
                for new in draw(kind, TIMES, key=pair.english):
                    if new.english != found[0]:
                        yield exchanged(pair, known[found[0]], new)


def kinds(sentences: Sequence[str]) -> Iterator[list[Word]]:
    """Numbers up to twelve, larger ones, days, months, countries and cities, with the Chinese words that sentences use.

    >>> [len(kind) for kind in kinds([])][:4], next(kinds([]))[0].chinese
    ([11, 87, 7, 12], '两')
    """
    yield [Word("two", "两"), *(Word(in_english(number), in_chinese(number)) for number in range(3, 13))]
    yield [Word(in_english(number), in_chinese(number)) for number in range(13, 100)]
    yield [*(Word(day, f"星期{DIGITS[at]}") for at, day in enumerate(DAYS.split(), start=1)), Word("Sunday", "星期天")]
    yield [Word(month, f"{in_chinese(at)}月") for at, month in enumerate(MONTHS.split(), start=1)]
    yield dictionary.countries(sentences)
    yield dictionary.cities(sentences)


def in_english(number: int) -> str:
    """A number below 100 in words.

    >>> in_english(12), in_english(30), in_english(35)
    ('twelve', 'thirty', 'thirty-five')
    """
    if number < 20:
        return FIRST.split()[number]
    tens = TENS.split()[number // 10 - 2]
    return f"{tens}-{FIRST.split()[number % 10]}" if number % 10 else tens


def in_chinese(number: int) -> str:
    """A number below 100 in characters.

    >>> in_chinese(4), in_chinese(12), in_chinese(30), in_chinese(35)
    ('四', '十二', '三十', '三十五')
    """
    tens, ones = divmod(number, 10)
    return (DIGITS[tens] if tens > 1 else "") + ("十" if tens else "") + (DIGITS[ones] if ones or not tens else "")


def _once(word: Word, chinese: str) -> bool:
    """Whether the word occurs once and is not part of a longer number."""
    return chinese.count(word.chinese) == len(re.findall(rf"(?<!{NUMERAL}){word.chinese}(?!{NUMERAL})", chinese)) == 1
