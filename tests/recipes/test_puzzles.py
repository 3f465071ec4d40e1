"""The puzzles of the catalogue trained for real: solved on examples held out, by heads that look where they must.

The two quickest in every run of the tests, all five, from another seed, in the long one.
"""

from pathlib import Path

import pytest
import torch

from regard.evaluation.translation import read_trained
from regard.recipes import read_recipe
from regard.recipes.evaluating import Asked, evaluate
from regard.recipes.puzzles import Agreement, agreement, batch_of, examples, expected
from regard.recipes.running import continued, train, translated
from regard.trace import Looking

ENOUGH = 0.95
"""Of the rows of a telling head, the share whose strongest key is a right one."""


def telling_heads(run: Path) -> dict[str, Agreement]:
    """The heads of the trained model that come nearest to what is expected, over 64 examples it has never seen."""
    puzzle = read_recipe(run / "recipe.toml").puzzle
    assert puzzle is not None
    trained, told = read_trained(run), examples(puzzle, 64, "valid", 1)
    batch, looking = batch_of(puzzle.kind, told, trained.tokenizer), Looking()
    forward = translated if trained.model.config.kind == "encoder-decoder" else continued
    with torch.no_grad():
        forward(trained.model.eval(), **batch.inputs, attend=looking)
    wanted = zip(*(expected(puzzle.kind, told[i]) for i in batch.examples), strict=True)
    return {of_one_head[0].name: agreement(looking.trace, of_one_head) for of_one_head in wanted}


def check(kind: str, seed: int, out: Path) -> None:
    ending = train(read_recipe(kind, {"training.seed": str(seed)}), data=None, out=out, device="cpu")
    assert ending.reason == "steps"
    [judged] = evaluate(out, Asked(device="cpu"))
    solved = {score.name: score.value for score in judged.scores}["solved"]
    heads = telling_heads(out)
    print(kind, seed, solved, heads)
    assert solved >= 99
    assert set(heads) == ({"previous", "induction"} if kind == "induction" else {kind})
    assert all(head.share >= ENOUGH for head in heads.values()), heads
    assert len({head[:2] for head in heads.values()}) == len(heads)  # two tasks, two heads


def test_a_puzzle_is_solved_by_looking(tmp_path: Path) -> None:
    check("copy", 0, tmp_path / "copy")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy", "reverse", "sort", "addition", "induction"])
def test_every_puzzle_is_solved_by_looking(kind: str, tmp_path: Path) -> None:
    check(kind, 1, tmp_path / kind)
