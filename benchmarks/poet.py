"""python -m benchmarks.poet --data DIR [--model poet] [--count 200]: the poet compared with a 5-gram.

DIR is the output of `making.poet.data`. Both predict the held-out poems, given the header, including the end; and both
write quatrains with the same seeds and the poet's temperature, top_k and top_p. Real held-out quatrains are the
ceiling: some rhymed in Tang times and no longer do.
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.dated import finish, heading, table
from making.poet.data import SEPARATOR
from making.poet.ngram import KneserNey, read
from regard.evaluation.scores import FORMS, lines_of, rhymes, right_lines
from regard.generation import Sampling
from regard.language.loading import load
from regard.language.model import LanguageModel
from regard.reference import log_sum_exp

QUATRAINS = ("五绝", "七绝")
SHARES = ("lines of right length", "lines 2 and 4 rhyme", "lines found in train.txt")
HEADINGS = ["writer", "bits per character", *(f"{share}, {form}" for share in SHARES for form in QUATRAINS)]


class Row(NamedTuple):
    """The results of one writer: bits per character, and shares in the order of the headings."""

    name: str
    bits: float | None
    shares: list[float]

    def cells(self) -> list[str]:
        bits = "–" if self.bits is None else f"{self.bits:.3f}"
        return [self.name, bits, *(f"{share:.1%}" for share in self.shares)]


def main() -> None:
    options = parse()
    finish("poet", markdown(options, *measured(options)), report=options.report)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.poet", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="poet", help="a bundled model or a folder; default: poet")
    parser.add_argument("--count", type=int, default=200, help="poems of each form, seeds from 0; default: 200")
    parser.add_argument("--report", action="store_true", help="also write a dated report to benchmarks/results/")
    return parser.parse_args()


def measured(options: argparse.Namespace) -> tuple[list[Row], str]:
    """The rows of the table, and a description of the poems used for bits per character."""
    train, heldout = read(options.data, "train"), read(options.data, "heldout")
    model, ngram = load(options.model), KneserNey(train)
    # A character unknown to one of them would be counted in two ways: such a poem is left out for both, and so is one
    # longer than the model's context.
    shared = [poem for poem in heldout if can_read(model, poem) and set(poem) <= ngram.ids.keys()]
    n_characters = sum(len(poem.partition(SEPARATOR)[2]) + 1 for poem in shared)
    known = {line for poem in train for line in lines_of(poem.partition(SEPARATOR)[2])}
    own = model.settings

    def by_model(form: str) -> list[str]:
        return [model.generate(form=form, seed=seed) for seed in range(options.count)]

    def by_ngram(form: str) -> list[str]:
        sampling = Sampling(temperature=own.temperature, top_k=own.top_k, top_p=own.top_p)
        return [ngram.write(form + SEPARATOR, replace(sampling, seed=seed)) for seed in range(options.count)]

    def by_people(form: str) -> list[str]:
        return [poem.partition(SEPARATOR)[2] for poem in heldout if poem.startswith(form + SEPARATOR)]

    rows = [
        Row(f"regard, {model.name}", sum(bits(model, poem) for poem in shared) / n_characters, shares(by_model, known)),
        Row("5-gram", sum(float(ngram.bits(poem).sum()) for poem in shared) / n_characters, shares(by_ngram, known)),
        Row("held-out poems", None, shares(by_people, known)),
    ]
    return rows, f"{len(shared):,} of {len(heldout):,} held-out poems, {n_characters:,} characters and ends"


def can_read(model: LanguageModel, poem: str) -> bool:
    """Whether the poem has no unknown token and fits into the context."""
    ids = model.tokenizer.encode(poem)
    return model.tokenizer.unknown not in ids and len(ids) + 1 <= model.longest


def bits(model: LanguageModel, poem: str) -> float:
    """-log₂ of the probability of a poem and its end, after the header, as in training."""
    header, _, text = poem.partition(SEPARATOR)
    end = model.tokenizer.special("eos")
    before, after = ([end, *model.tokenizer.encode(header + SEPARATOR)], [*model.tokenizer.encode(text), end])
    logits = model.model(np.array([before + after[:-1]]))[0, len(before) - 1 :].astype(np.float64)  # T W
    chances = logits[np.arange(len(after)), after] - log_sum_exp(logits)
    return float(-chances.sum() / np.log(2))


def shares(write: Callable[[str], list[str]], known: set[str]) -> list[float]:
    """The shares of the headings, each for every form of quatrain."""
    poems = {form: write(form) for form in QUATRAINS}
    return [
        *(mean([right_lines(poem, FORMS[form]) for poem in poems[form]]) for form in QUATRAINS),
        *(mean([rhymes(poem) for poem in poems[form]]) for form in QUATRAINS),
        *(mean([line in known for poem in poems[form] for line in lines_of(poem)]) for form in QUATRAINS),
    ]


def mean(values: Sequence[float]) -> float:
    """NaN for no values: held-out poems may contain no quatrain."""
    return statistics.fmean(values) if values else float("nan")


def markdown(options: argparse.Namespace, rows: list[Row], counted_on: str) -> str:
    """The report: machine, command, data, and the table."""
    lines = [
        *heading("The poet and a 5-gram"),
        "```",
        "python -m making.poet.data --poems tang_poems.tsv --out DATA",
        f"python -m benchmarks.poet --data DATA --model {options.model} --count {options.count}",
        "```",
        "",
        f"Bits per character on {counted_on}; the others have a character that one of the two never saw. Shares of "
        f"{options.count} poems of each form, seeds 0 to {options.count - 1}: a share of 80% is known to about "
        f"±{1.96 * (0.16 / options.count) ** 0.5:.0%}.",
        "",
        *table(HEADINGS, (row.cells() for row in rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
