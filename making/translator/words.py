"""python -m making.translator.words TEXT: the words of what the translator learnt from, into its folder.

TEXT is english.txt of `making.translator.data`. regard says of a word that is not among them that the model has never
read it.
"""

import argparse
from pathlib import Path

from regard.language.input_text import WORDS, words_of
from regard.language.loading import ASSETS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.translator.words", description=__doc__)
    parser.add_argument("text", type=Path)
    options = parser.parse_args()
    found = sorted(words_of(options.text.read_text(encoding="utf-8")))
    target = ASSETS / "translator" / WORDS
    target.write_text("".join(f"{word}\n" for word in found), encoding="utf-8")
    print(f"{len(found):,} words, {target.stat().st_size:,} bytes in {target}")


if __name__ == "__main__":
    main()
