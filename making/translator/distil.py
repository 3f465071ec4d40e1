"""python -m making.translator.distil RUN RUN … --english FILE --out FILE: translates sentences with an ensemble.

The runs are translators trained with different seeds on the same data. Translations by an ensemble are more regular
than human ones, and for many sentences the only ones; a student is trained on both (Kim and Rush 2016). Sentences with
low confidence, and those with changed numbers, are skipped.
--part 2/8 processes the second eighth of the lines, so that several processes can share the work.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from making.translator.ensemble import Ensemble
from making.translator.order import share
from making.translator.tatoeba import Pair
from regard.evaluation.translation import encode_sources, read_trained
from regard.generation import beam_search
from regard.generation.beams import max_translation_length
from regard.models import Transformer

BEAMS = 5
BATCH = 256
SURE = -0.3
"""The smallest mean log-probability per token of an accepted translation."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m making.translator.distil", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--english", type=Path, required=True, help="one sentence per line")
    parser.add_argument("--out", type=Path, required=True, help="TSV: English, tab, Chinese")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    lines = options.english.read_text(encoding="utf-8").splitlines()[part - 1 :: parts]
    with options.out.open("w", buffering=1, encoding="utf-8") as file:  # whole lines, so that it can be stopped
        for pair in distilled(options.runs, lines, options.device):
            print(*pair, sep="\t", file=file)


def distilled(runs: Sequence[Path], lines: Sequence[str], device: str) -> Iterator[Pair]:
    """The lines that the ensemble translates with confidence: lines of similar length together, in a random order."""
    trained = [read_trained(run) for run in runs]
    tokenizer = trained[0].tokenizer
    models = [each.model.to(device).eval() for each in trained if isinstance(each.model, Transformer)]
    bos, eos = tokenizer.special("bos"), tokenizer.special("eos")
    sources = encode_sources(tokenizer, lines, models[0].config.max_len, cut=True).ids
    order = sorted(range(len(lines)), key=lambda line: len(sources[line]))
    for batch in (order[at : at + BATCH] for at in sorted(range(0, len(order), BATCH), key=lambda at: share(str(at)))):
        with torch.inference_mode():
            found = beam_search(
                Ensemble(models),
                [[bos]] * len(batch),
                sources=[sources[line] for line in batch],
                beams=BEAMS,
                max_new=[max_translation_length(sources[line], models[0].config.max_len) for line in batch],
                eos=eos,
            )
        for line, beams in zip(batch, found, strict=True):
            if beams and beams[0].score >= SURE:
                pair = Pair(lines[line], tokenizer.decode(beams[0].ids))
                if keeps_numbers(pair):
                    yield pair


def keeps_numbers(pair: Pair) -> bool:
    """Whether the Chinese has no number in digits that the English does not have.

    >>> keeps_numbers(Pair("in 1990", "在190年")), keeps_numbers(Pair("at 9", "九点"))
    (False, True)
    """
    return {*re.findall(r"\d+", pair.chinese)} <= {*re.findall(r"\d+", pair.english)}


if __name__ == "__main__":
    main()
