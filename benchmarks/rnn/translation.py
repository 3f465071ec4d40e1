"""Translation quality of the same models: the bundled recipes, with only [model] exchanged. Meant for a GPU."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.rnn.contenders import model_table, n_parameters, translators
from regard.config import RecurrentConfig, TransformerConfig
from regard.recipes.evaluating import EvaluationOptions, evaluate
from regard.recipes.recipe import Recipe, config_of, read_recipe
from regard.recipes.running import train


def recipes(name: str, steps: int | None = None) -> dict[str, Recipe]:
    """A bundled translation recipe once for each model, all with the Transformer's parameters.

    The learning rate of the recurrent models is lower and there is no R-Drop, which doubles a step: both were tuned
    for the Transformer. No CUDA graph: Bahdanau's decoder has as many launches as words.
    """
    base = read_recipe(name)
    base = base if steps is None else replace(base, training=replace(base.training, steps=steps))
    base = replace(base, training=replace(base.training, agreement=None))
    transformer = config_of(base, base.data.vocab_size or 8000)
    assert isinstance(transformer, TransformerConfig)
    plain = replace(base.training, lr=min(base.training.lr, 0.002), capture=False)
    return {
        contender: replace(base, model=model_table(config), training=plain, film=None)
        if isinstance(config, RecurrentConfig)
        else base
        for contender, config in translators(transformer).items()
    }


def translation(name: str, data: Path, out: Path, device: str, steps: int | None = None) -> dict[str, Any]:
    """Train and evaluate every model; a run that is already in `out` is continued or read."""
    found: dict[str, Any] = {}
    for contender, recipe in recipes(name, steps).items():
        folder, start = out / contender.replace(" ", "").replace("+", "-").lower(), time.perf_counter()
        figures = train(recipe, data=data, out=folder, device=device).figures
        scores = {
            each.set: {score.name: score.value for score in each.scores}
            for each in evaluate(folder, EvaluationOptions(data=data, device=device))
        }
        seconds = time.perf_counter() - start
        found[contender] = {"parameters": figures["parameters"], "scores": scores, "seconds": round(seconds)}
    return found


def parameters(name: str) -> dict[str, int]:
    """The parameters of every model of a recipe, before any training."""
    made = recipes(name)
    vocab_size = made["Transformer"].data.vocab_size or 8000
    return {contender: n_parameters(config_of(recipe, vocab_size)) for contender, recipe in made.items()}
