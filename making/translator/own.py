"""python -m making.translator.own FILE.tsv: writes the pairs of `sentences/` to one file for `regard train en-zh`.

The sentence pairs were written for this translator: everyday sentences of one and more clauses. sentences/README.md
describes them. Pairs whose English is a test sentence are never read for training.
"""

import argparse
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from making.translator.tatoeba import Pair

FOLDER = Path(__file__).parent / "sentences"


def read(folder: Path = FOLDER) -> list[Pair]:
    """The pairs of all files, sorted by file name. ValueError names a line that is not two texts with a tab between."""
    pairs = []
    for path in sorted(folder.glob("*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            cells = line.split("\t")
            if len(cells) != 2 or not all(map(str.strip, cells)):
                raise ValueError(f"{path}, line {number}: not English, a tab and Chinese: {line}")
            pairs.append(Pair(*cells))
    return pairs


def without(pairs: Iterable[Pair], tests: Iterable[str]) -> list[Pair]:
    """The pairs whose English is not one of the test sentences, and each English sentence once.

    >>> without([Pair("I see.", "我明白。"), Pair("So do I!", "我也是！"), Pair("So do I.", "我也是。")], ["I see!"])
    [Pair(english='So do I!', chinese='我也是！')]
    """
    known = {key(sentence) for sentence in tests}
    found: dict[str, Pair] = {}
    for pair in pairs:
        if key(pair.english) not in known:
            found.setdefault(key(pair.english), pair)
    return list(found.values())


def key(english: str) -> str:
    """The words of a sentence without case and punctuation, by which sentences are compared.

    >>> key("Don't go, Tom!")
    'don t go tom'
    """
    return " ".join(re.findall(r"\w+", english.lower()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.translator.own", description=__doc__)
    parser.add_argument("file", type=Path, help="the .tsv file to write")
    path: Path = parser.parse_args().file
    lines = [f"{pair.english}\t{pair.chinese}\n" for pair in mixed(without(read(), []))]
    path.write_text("".join(lines), encoding="utf-8")
    print(f"{len(lines):,} pairs in {path}")


def mixed(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs in an order that depends only on their text, so that the last ones are of every kind."""
    return sorted(pairs, key=lambda pair: sha256(pair.english.encode()).digest())


if __name__ == "__main__":
    main()
