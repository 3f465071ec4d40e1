"""python -m benchmarks.translator --data DIR/dev.tsv [--model translator] [--report]: the quality of the translator.

The NumPy model translates every English sentence of a TSV file; sacreBLEU compares the outputs with all references,
converted to simplified characters and otherwise unchanged. Then the sentences of sentences/first_hundred.txt, each with
a human judgement: sentences/judged.tsv holds the judgements, and outputs not judged yet are listed in its format.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import regard
from benchmarks.dated import finish, heading
from regard.evaluation.scores import Score
from regard.evaluation.translation import Languages, PairSet, pair_set
from regard.language import LanguageModel
from regard.text.corpus import read_pairs
from regard.text.normalise import simplified

SENTENCES = Path(__file__).parent / "sentences"
HUNDRED, JUDGED = SENTENCES / "first_hundred.txt", SENTENCES / "judged.tsv"
WANTED = {"sacrebleu": 42.0, "chrf": 36.0}
FIRST = 500
PLAIN = {"sacrebleu": 38.3, "chrf": 33.0}
"""Scores of a plain nn.Transformer with 8 million parameters on the FIRST sentences, trained for three minutes."""
ACCEPTABLE = 95


class Judgement(NamedTuple):
    """Whether an output is acceptable, and why."""

    acceptable: bool
    why: str


Judgements = dict[tuple[str, str], Judgement]
"""By sentence and output."""


def main() -> None:
    options = parse()
    model = regard.load(options.model)
    sentences, judged = read_sentences(HUNDRED), read_judged(JUDGED)
    outputs = model.translate(sentences)
    lines = [
        *heading(f"The {model.name}"),
        "```",
        f"python -m benchmarks.translator --data {options.data.name} --model {options.model}",
        "```",
        "",
        *scored(model, options.data),
        "",
        *hundred(sentences, outputs, judged),
        "",
    ]
    finish("translator", "\n".join(lines), report=options.report)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.translator", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="TSV: English, tab, Chinese; a line for each reference"
    )
    parser.add_argument("--model", default="translator", help="a bundled model or a folder; default: translator")
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    return parser.parse_args()


# --- scores -----------------------------------------------------------------------------------------------


def read_set(data: Path) -> PairSet:
    """Each English sentence once, with all its references in simplified characters."""
    corpus = read_pairs(data)
    english, chinese = corpus.columns
    return pair_set(
        replace(corpus, columns=(english, simplified(chinese))), Languages(source="en", target="zh", tokenised=False)
    )


def scored(model: LanguageModel, data: Path) -> list[str]:
    """The table of scores: all sentences with their targets, the first ones with a plain Transformer's."""
    whole = read_set(data)
    outputs = model.translate(whole.sources)
    scores = whole.scores(outputs)
    rows = [row(f"all {len(outputs):,} sentences", score, WANTED, "asked") for score in scores]
    if len(outputs) > FIRST:
        assert whole.plain is not None
        first = replace(whole, sources=whole.sources[:FIRST], lines=whole.lines[:FIRST], plain=whole.plain[:FIRST])
        found = first.scores(outputs[:FIRST])
        rows += [row(f"the first {FIRST}", score, PLAIN, "a plain nn.Transformer") for score in found]
    settings = model.settings
    return [
        f"Beams {settings.beams}, length penalty {settings.length_penalty}; references in simplified characters.",
        "",
        "| set | score | value | against |",
        "|---|---|---|---|",
        *rows,
        "",
        *(f"- {score.name}: `{score.signature}`" for score in scores),
    ]


def row(name: str, score: Score, others: dict[str, float], whose: str) -> str:
    return f"| {name} | {score.name} | {score.value:.2f} | {others[score.name]} ({whose}) |"


# --- a hundred sentences ----------------------------------------------------------------------------------


def read_sentences(path: Path) -> list[str]:
    """The lines of a file that are neither empty nor a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def read_judged(path: Path) -> Judgements:
    """The judgements of a file; ValueError with the line that is malformed, or that contradicts an earlier one."""
    found: Judgements = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 4 or cells[2] not in ("yes", "no") or not all(cells[:3]):
            raise ValueError(
                f"{path}, line {number}: not a sentence, output, yes or no, and why, with tabs between them"
            )
        sentence, output, answer, why = cells
        judgement = Judgement(answer == "yes", why)
        if found.setdefault((sentence, output), judgement).acceptable != judgement.acceptable:
            raise ValueError(f"{path}, line {number}: {sentence} {output} was judged before, and otherwise")
    return found


def hundred(sentences: Sequence[str], outputs: Sequence[str], judged: Judgements) -> list[str]:
    """The number of acceptable outputs, all of them with their judgement, and those left to judge."""
    pairs = list(zip(sentences, outputs, strict=True))
    known = [judged[pair] for pair in pairs if pair in judged]
    unknown = [pair for pair in pairs if pair not in judged]
    yes = sum(judgement.acceptable for judgement in known)
    lines = [
        f"Of the {len(pairs)} sentences of {HUNDRED.name}, {yes} are acceptable, {len(known) - yes} are not, and "
        f"{len(unknown)} are not judged yet; {ACCEPTABLE} of 100 are asked.",
        "",
        "| sentence | output | acceptable | why |",
        "|---|---|---|---|",
        *(f"| {' | '.join((*pair, *cells_of(judged.get(pair))))} |" for pair in pairs),
    ]
    if unknown:
        lines += [
            "",
            f"To be judged, for {JUDGED.name}:",
            "",
            "```",
            *("\t".join((*pair, "", "")) for pair in unknown),
            "```",
        ]
    return lines


def cells_of(judgement: Judgement | None) -> tuple[str, str]:
    if judgement is None:
        return "–", ""
    return ("yes" if judgement.acceptable else "no"), judgement.why


if __name__ == "__main__":
    main()
