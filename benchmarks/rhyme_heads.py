"""python -m benchmarks.rhyme_heads --data DIR: what each head of the poet does to the rhyme of poems it never read.

DIR is the output of `making.poet.data`. The poet reads each held-out quatrain without its last character, once whole,
and once with each head silenced while it reads the last one. Measured is the probability of all characters that rhyme
with the end of line 2 and differ from it. Writes the means to src/regard/course/drawings/measured/rhyme-heads.json,
for lesson 11; a few minutes on one core.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from making.poet.data import SEPARATOR
from making.poet.ngram import read
from regard.dispatch import attend_in_model
from regard.evaluation.scores import lines_of, rhyme_groups
from regard.kernels.division import one_blas_thread
from regard.language.loading import load
from regard.reference import softmax

TARGET = Path(__file__).parents[1] / "src/regard/course/drawings/measured/rhyme-heads.json"
QUATRAINS = ("五绝", "七绝")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rhyme_heads", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    poems = [line for line in read(parser.parse_args().data, "heldout") if line.startswith(QUATRAINS)]
    with one_blas_thread():
        rhyming = rhyming_probability(poems)
    TARGET.write_text(json.dumps(summary(rhyming)) + "\n", encoding="utf-8")


def rhyming_probability(poems: list[str]) -> np.ndarray:
    """Poems × (layers · heads + 1): the probability of a rhyme without each head, and last of the whole model."""
    poet = load("poet")
    tokenizer, heads = poet.tokenizer, poet.config.n_heads
    edits = poet.config.layers_of("decoder") * heads
    characters = tokenizer.pieces(list(range(tokenizer.vocab_size)))
    groups = [rhyme_groups(one) if len(one) == 1 else frozenset() for one in characters]

    def silencing(q: Any, k: Any, v: Any, *, name: str, kind: Any, **options: Any) -> Any:
        out = attend_in_model(q, k, v, name=name, kind=kind, **options)
        if len(q) > 1:  # the last character, in one copy for each head
            out[heads * int(name.split(".")[2]) + np.arange(heads), np.arange(heads)] = 0
        return out

    found = []
    for poem in poems:
        rhyme = lines_of(poem.partition(SEPARATOR)[2])[1][-1]
        wanted = np.array(
            [
                one != rhyme and not each.isdisjoint(rhyme_groups(rhyme))
                for one, each in zip(characters, groups, strict=True)
            ]
        )
        ids = [tokenizer.special("eos"), *tokenizer.encode(poem[:-2])]
        decoding = poet.model.begin(attend=silencing)
        decoding.step([ids[:-1]])
        decoding.select([0] * (edits + 1))
        logits = decoding.step([[ids[-1]]] * (edits + 1))
        found.append(softmax(logits.astype(np.float64)) @ wanted)
    return np.array(found)


def summary(rhyming: np.ndarray) -> dict[str, Any]:
    """Means over the poems: of the whole model, and how far they fall without each head, with standard errors."""
    falls = rhyming[:, -1:] - rhyming[:, :-1]
    errors = falls.std(axis=0, ddof=1) / len(falls) ** 0.5
    return {
        "poems": len(rhyming),
        "whole": round(float(rhyming[:, -1].mean()), 4),
        "falls": falls.mean(axis=0).round(4).tolist(),
        "errors": errors.round(4).tolist(),
    }


if __name__ == "__main__":
    main()
