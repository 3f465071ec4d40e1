"""python -m making.poet.data --poems tang_poems.tsv --out FOLDER: writes train.txt and heldout.txt, one poem per line.

A line is the verse form 五绝｜ 七绝｜ 五律｜ 七律｜ or 杂｜, then the text in simplified characters, with only
，。？！； as punctuation. Editors' notes and quotation marks are removed; poems with missing characters are
skipped. Whether a poem is held out depends only on its own text, so that it does not change with the other poems.
"""

import argparse
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from regard.evaluation.scores import form_of, lines_of
from regard.text.normalise import simplified

OTHER = "杂"
SEPARATOR = "｜"
LONGEST = 250
HELD_OUT = 0.02

_NOTE = re.compile("（[^（）]*）")
_QUOTES = str.maketrans({**dict.fromkeys("「」『』《》〈〉[]"), "：": "，", "、": "，"})
_MARKS = re.compile("[，。？！；]*([，。？！；])")
_POEM = re.compile("(?:[㐀-鿿\U00020000-\U0003ffff]+[，。？！；])+")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.poet.data", description=__doc__)
    parser.add_argument(
        "--poems", type=Path, required=True, help="one poem per line: title, author, text, separated by tabs"
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with open(options.poems, encoding="utf-8") as file:
        # Some titles contain tabs.
        texts = [line.rstrip("\n").rpartition("\t")[2] for line in file]
    train, heldout, counts = prepare(texts)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train", train), ("heldout", heldout)):
        (options.out / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for what, count in counts.items():
        print(f"{what:24} {count:8,}")


def prepare(texts: Iterable[str]) -> tuple[list[str], list[str], Counter[str]]:
    """The lines of both files, in the order of the poems, and counts of the poems.

    >>> train, heldout, counts = prepare(["明月松間照（一作「來」），清泉石上流。", "獨□□。"])
    >>> train, heldout, dict(counts)
    (['杂｜明月松间照，清泉石上流。'], [], {'poems': 2, 'gap or garbled': 1, 'train lines 杂': 1})
    """
    counts: Counter[str] = Counter()
    poems: dict[str, None] = {}
    for text in simplified(texts):
        counts["poems"] += 1
        poem = cleaned(text)
        if poem is None:
            counts["gap or garbled"] += 1
        elif len(lines_of(poem)) < 2:
            counts["single line"] += 1
        elif poem in poems:
            counts["seen before"] += 1
        else:
            poems[poem] = None
    train = [poem for poem in poems if not held_out(poem)]
    known = {line for poem in train for line in lines_of(poem)}
    heldout = []
    for poem in filter(held_out, poems):
        # Collections contain many poems twice with a word changed: such a poem is not unseen.
        if 2 * sum(line in known for line in lines_of(poem)) >= len(lines_of(poem)):
            counts["held out, but known"] += 1
        else:
            heldout.append(poem)
    return _written(train, "train", counts), _written(heldout, "heldout", counts), counts


def cleaned(text: str) -> str | None:
    """A poem without notes and quotation marks, each line with one final mark; None if characters are missing."""
    before = ""
    while before != text:  # notes can be nested
        before, text = text, _NOTE.sub("", text)
    text = _MARKS.sub(r"\1", text.translate(_QUOTES)).lstrip("，。？！；")
    if text[-1:] not in ("。", "？", "！"):
        text = text.rstrip("，；") + "。"
    return text if _POEM.fullmatch(text) else None


def held_out(poem: str) -> bool:
    """Whether a poem belongs to the held-out share."""
    return int.from_bytes(hashlib.sha256(poem.encode()).digest()[:8]) < HELD_OUT * 2**64


def _written(poems: Iterable[str], name: str, counts: Counter[str]) -> list[str]:
    """Each poem with its header; a long one as several pieces that end with a sentence, or at least with a line."""
    lines = []
    for poem in poems:
        parts = list(pieces(poem))
        header = (form_of(poem) or OTHER) if len(parts) == 1 else OTHER
        counts[f"{name} lines {header}"] += len(parts)
        if len(parts) > 1:
            counts["long, in pieces"] += 1
        lines += [f"{header}{SEPARATOR}{part}" for part in parts]
    return lines


def pieces(poem: str) -> Iterator[str]:
    """A poem in pieces of at most LONGEST characters."""
    while len(poem) > LONGEST:
        start = poem[:LONGEST]
        cut = max(map(start.rfind, "。？！")) + 1 or max(map(start.rfind, "，；")) + 1 or LONGEST
        yield poem[:cut]
        poem = poem[cut:]
    if poem:
        yield poem


if __name__ == "__main__":
    main()
