"""python -m making.translator.align FILE FILE …: writes the pairs of train.tsv with word links to train.links.tsv.

The links come from the statistical aligner eflomal (Östling and Tiedemann 2016), trained on the pairs of all files
together: the source words in lower case, the target by characters. Each target character is linked to at most one
source word (the forward direction): on benchmarks/sentences/aligned.tsv these links have an alignment error rate of
0.05, the intersection of both directions 0.20. Its samplers start from the time: two runs differ in a few links.
--known MODEL leaves out pairs with characters that a model's tokenizer does not know, from which it would learn <unk>.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from making.translator.tatoeba import Pair
from regard.language.loading import TOKENIZER, find_model
from regard.text.tokenizer import Tokenizer
from regard.text.word_links import split_words


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.translator.align", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="TSV: English, tab, Chinese")
    parser.add_argument(
        "--known", metavar="MODEL", help="leave out pairs with characters that this model does not know"
    )
    options = parser.parse_args()
    pairs = {path: read(path) for path in options.files}
    if options.known is not None:
        tokenizer = Tokenizer.read(find_model(options.known) / TOKENIZER)
        pairs = {path: known(each, tokenizer) for path, each in pairs.items()}
    every = list(dict.fromkeys(pair for each in pairs.values() for pair in each))
    links = dict(zip(every, align(every), strict=True))
    for path, each in pairs.items():
        target = path.with_suffix(".links.tsv")
        lines = ("\t".join((*pair, links[pair])) for pair in each)
        target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{len(each):>7,} pairs with links in {target}")


def read(path: Path) -> list[Pair]:
    """The pairs of a file."""
    return [Pair(*line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def known(pairs: Sequence[Pair], tokenizer: Tokenizer) -> list[Pair]:
    """The pairs all of whose characters have a token."""
    sides = [tokenizer.encode_all(list(side)) for side in zip(*pairs, strict=True)]
    return [
        pair for pair, *ids in zip(pairs, *sides, strict=True) if not any(tokenizer.unknown in each for each in ids)
    ]


def align(pairs: Sequence[Pair]) -> list[str]:
    """The links of each pair, such as `0-0 2-1`: source word, target word."""
    from eflomal import Aligner  # compiled when it is installed; only this function needs it

    english = [" ".join(split_words(pair.english)).lower() for pair in pairs]
    chinese = [" ".join(split_words(pair.chinese)) for pair in pairs]
    with tempfile.TemporaryDirectory() as folder:
        links = Path(folder, "links")
        Aligner().align(
            [f"{line}\n" for line in english], [f"{line}\n" for line in chinese], links_filename_fwd=str(links)
        )
        return links.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    main()
