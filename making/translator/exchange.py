"""Data augmentation: sentences with another noun, name or number, so that rare words occur in several sentences.

"I found the key." 我找到了钥匙。 has "key" and 钥匙 once each, which are translations by the dictionary; another noun
with the same measure words replaces them on both sides. The result must be grammatical, not meaningful. Samples are
drawn by hashes of the sentences: the same input gives the same pairs.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from making.translator.dictionary import Word
from making.translator.order import draw, share
from making.translator.tatoeba import Pair

TIMES = 12
"""The largest number of sentences into which a word is inserted."""
PER_SENTENCE = 2
NAMED = 0.4
"""The share of sentences about Tom or Mary that are repeated with another name."""
NUMBERED = 6
"""The number of variants of a sentence with a number."""
KNOWN_NAMES = (Word("Tom", "汤姆"), Word("Mary", "玛丽"))
# Given names of Chinese textbooks, such as 小明.
GIVEN = "明ming 红hong 丽li 华hua 强qiang 刚gang 芳fang 军jun 平ping 兰lan 伟wei 玉yu 梅mei 龙long 燕yan 亮liang"


def nouns(pairs: Sequence[Pair], words: Iterable[Word], wanted: set[str]) -> Iterator[Pair]:
    """Pairs with one of the `wanted` nouns instead of another noun."""
    known = {word.english: word for word in words if word.measures and word.english.isalpha()}
    alike: dict[frozenset[str], list[Word]] = defaultdict(list)
    for noun in known.values():
        if noun.english in wanted:
            alike[noun.measures].append(noun)
    used: Counter[Word] = Counter()
    for pair in pairs:
        for old in _exchangeable(pair, known):
            others = [noun for noun in alike[old.measures] if used[noun] < TIMES and noun != old]
            for new in draw(others, PER_SENTENCE, key=pair.english):
                used[new] += 1
                yield exchanged(pair, old, new)


def names(pairs: Iterable[Pair], people: Sequence[Word]) -> Iterator[Pair]:
    """A share of the pairs about Tom or Mary with another name, of which one in three is Chinese."""
    chinese = [Word(f"Xiao{name[1:]}", f"小{name[0]}") for name in GIVEN.split()]
    for pair in pairs:
        for old in KNOWN_NAMES:
            if pair.english.count(old.english) == pair.chinese.count(old.chinese) == 1:
                chance = share(f"{pair.english} name") / NAMED
                if chance < 1:
                    (new,) = draw(chinese if chance < 1 / 3 else people, 1, key=pair.english)
                    yield exchanged(pair, old, new)


def numbers(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Pairs with a single number, in the same digits on both sides, with other digits.

    >>> [pair.chinese for pair in numbers([Pair("Room 839.", "839号房间。")])][:3]
    ['184号房间。', '612号房间。', '259号房间。']
    """
    for pair in pairs:
        digits = re.findall(r"\d+(?![a-z])", pair.english)  # not 1st, and not the number 1
        if len(digits) == 1 and digits != ["1"] and re.findall(r"\d+", pair.chinese) == digits:
            for turn in range(NUMBERED):
                most = 10 ** len(digits[0])
                new = str(int(most / 10 + share(f"{pair.english} {turn}") * (most - most // 10)))
                yield Pair(pair.english.replace(digits[0], new), pair.chinese.replace(digits[0], new))


def _exchangeable(pair: Pair, nouns: dict[str, Word]) -> Iterator[Word]:
    """Nouns that occur once on each side of the pair as translations of each other; no plurals."""
    for token in dict.fromkeys(re.findall(r"(?<![\w'-])[a-z]+(?![\w'-])", pair.english)):
        noun = nouns.get(token)
        if noun is None or len(noun.chinese) < 2 or pair.chinese.count(noun.chinese) != 1:
            continue
        if len(re.findall(rf"\b{token}", pair.english)) == 1:
            yield noun


def exchanged(pair: Pair, old: Word, new: Word) -> Pair:
    """The pair with `old` replaced by `new`, with the right article.

    >>> exchanged(Pair("He saw a wall.", "他看见了墙。"), Word("wall", "墙"), Word("orange", "橘子"))
    Pair(english='He saw an orange.', chinese='他看见了橘子。')
    """
    article = "an" if new.english[0] in "aeiou" else "a"
    english = re.sub(rf"\b[Aa]n? {old.english}\b", lambda m: f"{_cased(article, m[0])} {new.english}", pair.english)
    english = re.sub(rf"\b{old.english}\b", new.english, english)
    return Pair(english, pair.chinese.replace(old.chinese, new.chinese))


def _cased(article: str, old: str) -> str:
    return article.capitalize() if old[0].isupper() else article
