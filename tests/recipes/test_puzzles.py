"""The bundled puzzles, fully trained: held-out examples are solved, and heads attend to the expected keys.

`copy` in every test run; all five, with another seed, in the long one.
"""

from pathlib import Path

import pytest
import torch

from regard.evaluation.scores import translation_logits
from regard.evaluation.translation import read_trained
from regard.recipes import read_recipe
from regard.recipes.evaluating import EvaluationOptions, evaluate
from regard.recipes.puzzles import Agreement, agreement, batch_of, examples, expected
from regard.recipes.running import decoder_logits, train
from regard.trace import Recorder

ENOUGH = 0.95
"""The share of queries whose top key must be an expected one."""


def best_heads(run: Path) -> dict[str, Agreement]:
    """The heads of the trained model that agree best with the expected keys, over 64 held-out examples."""
    puzzle = read_recipe(run / "recipe.toml").puzzle
    assert puzzle is not None
    trained, held_out = read_trained(run), examples(puzzle, 64, "valid", 1)
    batch, recorder = batch_of(puzzle.kind, held_out, trained.tokenizer), Recorder()
    forward = translation_logits if trained.model.config.kind == "encoder-decoder" else decoder_logits
    with torch.no_grad():
        forward(trained.model.eval(), **batch.inputs, attend=recorder)
    wanted = zip(*(expected(puzzle.kind, held_out[i]) for i in batch.examples), strict=True)
    return {of_one_head[0].name: agreement(recorder.trace, of_one_head) for of_one_head in wanted}


def check(kind: str, seed: int, out: Path) -> None:
    trained = train(read_recipe(kind, {"training.seed": str(seed)}), data=None, out=out, device="cpu")
    assert trained.reason == "steps"
    [result] = evaluate(out, EvaluationOptions(device="cpu"))
    solved = {score.name: score.value for score in result.scores}["solved"]
    heads = best_heads(out)
    print(kind, seed, solved, heads)
    assert solved >= 99
    assert set(heads) == ({"previous", "induction"} if kind == "induction" else {kind})
    assert all(head.share >= ENOUGH for head in heads.values()), heads
    assert len({head[:2] for head in heads.values()}) == len(heads)  # two tasks need two heads


@pytest.mark.long
def test_copy_is_solved_with_the_expected_attention(tmp_path: Path) -> None:
    check("copy", 0, tmp_path / "copy")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy", "reverse", "sort", "addition", "induction"])
def test_every_puzzle_is_solved_with_the_expected_attention(kind: str, tmp_path: Path) -> None:
    check(kind, 1, tmp_path / kind)
