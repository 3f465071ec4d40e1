"""python -m making.translator.words TEXT: writes the words of the translator's training text to its folder.

TEXT is english.txt of `making.translator.data`. regard reports words that are not in this list as unknown to the model.
"""

import argparse
from pathlib import Path

from regard.language.input_text import WORDS_FILE, words_of
from regard.language.loading import ASSETS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.translator.words", description=__doc__)
    parser.add_argument("text", type=Path)
    options = parser.parse_args()
    found = sorted(words_of(options.text.read_text(encoding="utf-8")))
    target = ASSETS / "translator" / WORDS_FILE
    target.write_text("".join(f"{word}\n" for word in found), encoding="utf-8")
    print(f"{len(found):,} words, {target.stat().st_size:,} bytes in {target}")


if __name__ == "__main__":
    main()
