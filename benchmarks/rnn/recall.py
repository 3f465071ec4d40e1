"""Recall over distance: the copy puzzle, learned by five models of equal size; accuracy by the number of letters."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.rnn.contenders import model_table, n_parameters, translators
from regard.config import RecurrentConfig, TransformerConfig
from regard.evaluation.scores import translation_logits
from regard.evaluation.translation import read_trained
from regard.recipes.puzzles import batch_of, examples, puzzle_tokenizer
from regard.recipes.recipe import Puzzle, Recipe, config_of, read_recipe
from regard.recipes.running import train
from regard.training.batches import IGNORED

LONGEST = 24
TESTED = 100
"""Examples per length."""


def recipes(steps: int) -> dict[str, Recipe]:
    """The bundled recipe `copy` with longer texts, once for each model; only [model] differs."""
    base = read_recipe("copy")
    puzzle = Puzzle(kind="copy", shortest=2, longest=LONGEST, valid_examples=64)
    data = replace(base.data, max_len=LONGEST + 1, batch_size=32)
    training = replace(base.training, steps=steps, save_every=steps, valid_every=None)
    base = replace(base, puzzle=puzzle, data=data, training=training)
    vocab_size = puzzle_tokenizer("copy").vocab_size
    transformer = config_of(base, vocab_size)
    assert isinstance(transformer, TransformerConfig)
    return {
        name: replace(base, model=model_table(config)) if isinstance(config, RecurrentConfig) else base
        for name, config in translators(transformer).items()
    }


def recall(steps: int, say: Any = print) -> dict[str, Any]:
    """For each model: its parameters, and the share of right letters by the length of the text."""
    found: dict[str, Any] = {}
    for name, recipe in recipes(steps).items():
        with tempfile.TemporaryDirectory() as folder:
            figures = train(recipe, data=None, out=Path(folder) / "run", device="cpu").figures
            model = read_trained(Path(folder) / "run").model
        shares = accuracy(model)
        found[name] = {"parameters": n_parameters(model.config), "loss": figures["valid_loss"], "accuracy": shares}
        say(f"recall: {name}, {found[name]['parameters']:,} parameters", *shares.values(), flush=True)
    return found


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
