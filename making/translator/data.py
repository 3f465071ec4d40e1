"""python -m making.translator.data --tatoeba DIR --stories FILE --out DIR: what the translator learns from.

valid.tsv     2 % of train.tsv's English sentences with all their translations, to stop and to choose by
train.tsv     the rest; some of it again without its last mark, as people type, or with another noun, name,
              number, day, month or place; those words of CC-CEDICT that the stories have but Tatoeba hardly has,
              and its greetings and wishes
dev.tsv       the sentences that the scores on the card are counted on, made alike
english.txt   what teachers translate for their student: the English of train.tsv, and the stories' short sentences

The stories are a JSON list of texts in everyday English, such as TinyStories (CDLA-Sharing-1.0).
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from making.translator import dictionary, exchange, kinds, tatoeba
from making.translator.order import share
from making.translator.tatoeba import Pair
from regard.text import split_sentences, tidy

HELD_OUT = 0.02
UNMARKED = 0.2
"""The share of sentences that are also learnt without a mark at their end; half of these in small letters."""
SELDOM, EVERYDAY = 8, 2
"""A word that Tatoeba has less often than the first, and the stories at least as often as the second, needs help."""
LONGEST = 14
"""Words of a sentence that is taken from a story."""
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
        "sayings of CC-CEDICT": list(said(dictionary.sayings(pair.chinese for pair in train))),
    }
    everything = [pair for each in found.values() for pair in each]
    english = [*(pair.english for pair in everything), *sentences(stories)]
    write(options.out / "valid.tsv", map("\t".join, valid))
    write(options.out / "train.tsv", map("\t".join, everything))
    write(options.out / "dev.tsv", map("\t".join, tatoeba.read(options.tatoeba / "dev.tsv")))
    write(options.out / "english.txt", english)
    for name, each in {"held out": valid, **found}.items():
        print(f"{len(each):>7,}  {name}")


def sentences(stories: Iterable[str]) -> Iterator[str]:
    """The stories' sentences that are as short as Tatoeba's are."""
    for story in stories:
        for sentence in split_sentences(story):
            if len(sentence.split()) <= LONGEST and sentence.count('"') % 2 == 0:
                yield sentence


def lacking(pairs: Iterable[Pair], stories: Iterable[str]) -> set[str]:
    """Words that people use every day and the sentences hardly have."""
    known = Counter(word for pair in pairs for word in LETTERS.findall(pair.english.lower()))
    used = Counter(word for story in stories for word in LETTERS.findall(story.lower()))
    return {word for word, times in used.items() if times >= EVERYDAY and known[word] < SELDOM and len(word) > 1}


def unmarked(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """A share of the pairs as people type them: no mark at the end, and half of these in small letters."""
    for english, chinese in pairs:
        chance = share(f"{english} unmarked") / UNMARKED
        if chance >= 1 or english[-1] not in ".!" or chinese[-1] not in "。！":
            continue
        small = chance < 0.5 and not KEEPS_CAPITAL.match(english)
        yield Pair((english[0].lower() + english[1:] if small else english)[:-1], chinese[:-1])


def said(sayings: Iterable[dictionary.Word]) -> Iterator[Pair]:
    """Each saying with the marks that people end it with, and without one.

    >>> [pair.chinese for pair in said([dictionary.Word("Good night", "晚安")])]
    ['晚安。', '晚安！', '晚安']
    """
    for saying in sayings:
        for mark, sign in ((".", "。"), ("!", "！"), ("", "")):
            yield Pair(saying.english + mark, saying.chinese + sign)


def write(path: Path, lines: Iterable[str]) -> None:
    """The lines, each once, in an order that has nothing to do with what they say."""
    path.write_text("".join(f"{line}\n" for line in sorted(set(lines), key=share)), encoding="utf-8")


if __name__ == "__main__":
    main()
