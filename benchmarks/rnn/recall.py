"""Recall over distance: the copy puzzle, learned by five models of equal size; accuracy by the number of letters."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from benchmarks.rnn.contenders import recipes_like
from benchmarks.rnn.tuning import Place, best_rate, run, seeded, trials, with_rate
from regard.evaluation.scores import translation_logits
from regard.evaluation.translation import read_trained
from regard.recipes.puzzles import batch_of, examples, puzzle_tokenizer
from regard.recipes.recipe import Puzzle, Recipe, read_recipe
from regard.training.batches import IGNORED

LONGEST = 24
TESTED = 100
"""Examples per length."""


def recipes(steps: int) -> dict[str, Recipe]:
    """The bundled recipe `copy` with longer texts, once for each model; only [model] differs."""
    base = read_recipe("copy")
    puzzle = Puzzle(kind="copy", shortest=2, longest=LONGEST, valid_examples=512)
    data = replace(base.data, max_len=LONGEST + 1, batch_size=32)
    training = replace(base.training, steps=steps, save_every=steps, valid_every=None)
    base = replace(base, puzzle=puzzle, data=data, training=training, film=None)
    return recipes_like(base, puzzle_tokenizer("copy").vocab_size)


def recall(steps: int, trial_steps: int, seeds: Sequence[int], place: Place) -> dict[str, Any]:
    """For each model: its parameters, its rate, and the share of right letters by length, mean and each seed."""
    models: dict[str, Any] = {}
    for name, recipe in recipes(steps).items():
        at = place.below(name)
        losses = trials(recipe, trial_steps, at)
        tuned = with_rate(recipe, best_rate(losses))
        runs = [_one_seed(tuned, seed, at) for seed in seeds]
        models[name] = {
            "parameters": runs[0].pop("parameters"),
            "lr": best_rate(losses),
            "trials": losses,
            "accuracy": mean_by_length([each["accuracy"] for each in runs]),
            "runs": runs,
        }
        print(f"recall: {name}, learning rate {best_rate(losses)}", *models[name]["accuracy"].values(), flush=True)
    return {"steps": steps, "trial_steps": trial_steps, "seeds": list(seeds), "models": models}


def _one_seed(recipe: Recipe, seed: int, place: Place) -> dict[str, Any]:
    """Parameters, loss and accuracy of the run with this seed."""
    recipe, place = seeded(recipe, seed, place)
    figures = run(recipe, place)
    shares = accuracy(read_trained(place.out).model)
    return {
        "parameters": figures["parameters"],
        "seed": seed,
        "loss": round(figures["valid_loss"], 4),
        "accuracy": shares,
    }


def mean_by_length(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of several runs, at each length.

    >>> mean_by_length([{"2": 1.0, "4": 0.5}, {"2": 0.5, "4": 0.5}])
    {'2': 0.75, '4': 0.5}
    """
    return {at: round(statistics.mean(each[at] for each in shares), 4) for at in shares[0]}


@torch.no_grad()
def accuracy(model: Any) -> dict[str, float]:
    """The share of right letters, each predicted after the right ones before it; the end mark is not counted."""
    tokenizer = puzzle_tokenizer("copy")
    found = {}
    for length in range(2, LONGEST + 1, 2):
        puzzle = Puzzle(kind="copy", shortest=length, longest=length)
        batch = batch_of("copy", examples(puzzle, TESTED, "valid", length), tokenizer)
        right = translation_logits(model, **batch.inputs).argmax(-1) == batch.targets
        letters = (batch.targets != IGNORED) & (batch.targets != tokenizer.special("eos"))
        found[str(length)] = round(float(right[letters].float().mean()), 4)
    return found
