"""python -m making.translator.data --tatoeba DIR --stories FILE --out DIR: writes the translator's training data.

valid.tsv     2 % of train.tsv's English sentences with all their translations, for validation
train.tsv     the rest; some of it again without the final punctuation mark, as people type, or with another noun, name,
              number, day, month or place; words of CC-CEDICT that occur in the stories but hardly in Tatoeba, and its
              greetings and wishes
own.tsv       the pairs in `sentences/`, some of them again without the final mark, or with another number, day or place
valid-own.tsv 2 % of the pairs in `sentences/`
dev.tsv       the sentences for the scores on the card, normalised
english.txt   sentences that the teachers translate for the student: those of train.tsv and own.tsv, and short ones of
              the stories

The stories are a JSON list of texts in everyday English, such as TinyStories (CDLA-Sharing-1.0).
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.translator import HUNDRED, read_sentences
from making.translator import dictionary, exchange, kinds, own, tatoeba
from making.translator.order import share
from making.translator.tatoeba import Pair
from regard.text import split_sentences, tidy

HELD_OUT = 0.02
UNMARKED = 0.2
"""The share of sentences that are repeated without the final punctuation mark; half of these start in lower case."""
SELDOM, EVERYDAY = 8, 2
"""A word is added if it occurs fewer than SELDOM times in Tatoeba and at least EVERYDAY times in the stories."""
LONGEST = 14
"""The largest number of words of a sentence from a story."""
LETTERS = re.compile("[a-z]+")
KEEPS_CAPITAL = re.compile(r"I\b|[A-Z]\w*[A-Z]|Tom\b|Mary\b|Mr|Mrs|Ms|Dr")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.translator.data", description=__doc__)
    parser.add_argument("--tatoeba", type=Path, required=True, help="folder with train.tsv and dev.tsv")
    parser.add_argument("--stories", type=Path, required=True, help="a JSON list of English texts")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    pairs = tatoeba.read(options.tatoeba / "train.tsv")
    valid = [pair for pair in pairs if share(pair.english) < HELD_OUT]
    train = [pair for pair in pairs if share(pair.english) >= HELD_OUT]
    words = dictionary.words(pair.chinese for pair in train)
    stories = [tidy(story) for story in json.loads(options.stories.read_text(encoding="utf-8"))]
    wanted = lacking(train, stories)
    found = {
        "Tatoeba": train,
        "without a mark": list(unmarked(train)),
        "other nouns": list(exchange.nouns(train, words, wanted)),
        "other names": list(exchange.names(train, dictionary.names())),
        "other numbers": list(exchange.numbers(train)),
        "others of a kind": list(kinds.others(train)),
        "words of CC-CEDICT": [Pair(word.english, word.chinese) for word in words if wanted & {*word.english.split()}],
        "sayings of CC-CEDICT": list(punctuated(dictionary.sayings(pair.chinese for pair in train))),
    }
    dev = tatoeba.read(options.tatoeba / "dev.tsv")
    tests = [*read_sentences(HUNDRED), *(pair.english for pair in (*valid, *dev))]
    mine = own.without(own.read(), tests)
    mine_valid = [pair for pair in mine if share(pair.english) < HELD_OUT]
    mine = [pair for pair in mine if share(pair.english) >= HELD_OUT]
    added = {
        "own pairs": mine,
        "own, without a mark": list(unmarked(mine)),
        "own, other names": list(exchange.names(mine, dictionary.names())),
        "own, other numbers": list(exchange.numbers(mine)),
        "own, others of a kind": list(kinds.others(mine)),
    }
    everything, everything_own = ([pair for each in group.values() for pair in each] for group in (found, added))
    english = [*(pair.english for pair in (*everything, *everything_own)), *sentences(stories)]
    write(options.out / "valid.tsv", map("\t".join, valid))
    write(options.out / "train.tsv", map("\t".join, everything))
    write(options.out / "valid-own.tsv", map("\t".join, mine_valid))
    write(options.out / "own.tsv", map("\t".join, everything_own))
    write(options.out / "dev.tsv", map("\t".join, dev))
    write(options.out / "english.txt", english)
    for name, each in {"held out": valid, **found, "own, held out": mine_valid, **added}.items():
        print(f"{len(each):>7,}  {name}")


def sentences(stories: Iterable[str]) -> Iterator[str]:
    """The sentences of the stories that are as short as Tatoeba's."""
    for story in stories:
        for sentence in split_sentences(story):
            if len(sentence.split()) <= LONGEST and sentence.count('"') % 2 == 0:
                yield sentence


def lacking(pairs: Iterable[Pair], stories: Iterable[str]) -> set[str]:
    """Everyday words that hardly occur in the pairs."""
    known = Counter(word for pair in pairs for word in LETTERS.findall(pair.english.lower()))
    used = Counter(word for story in stories for word in LETTERS.findall(story.lower()))
    return {word for word, times in used.items() if times >= EVERYDAY and known[word] < SELDOM and len(word) > 1}


def unmarked(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """A share of the pairs without the final punctuation mark; half of these start in lower case."""
    for english, chinese in pairs:
        chance = share(f"{english} unmarked") / UNMARKED
        if chance >= 1 or english[-1] not in ".!" or chinese[-1] not in "。！":
            continue
        small = chance < 0.5 and not KEEPS_CAPITAL.match(english)
        yield Pair((english[0].lower() + english[1:] if small else english)[:-1], chinese[:-1])


def punctuated(sayings: Iterable[dictionary.Word]) -> Iterator[Pair]:
    """Each greeting or wish with a full stop, with an exclamation mark, and without.

    >>> [pair.chinese for pair in punctuated([dictionary.Word("Good night", "晚安")])]
    ['晚安。', '晚安！', '晚安']
    """
    for saying in sayings:
        for mark, sign in ((".", "。"), ("!", "！"), ("", "")):
            yield Pair(saying.english + mark, saying.chinese + sign)


def write(path: Path, lines: Iterable[str]) -> None:
    """Write the lines without duplicates, in a pseudo-random order."""
    path.write_text("".join(f"{line}\n" for line in sorted(set(lines), key=share)), encoding="utf-8")


if __name__ == "__main__":
    main()
