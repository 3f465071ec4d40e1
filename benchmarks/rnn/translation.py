"""Translation quality of the same models: a bundled recipe, with only [model] and the learning rate exchanged.

The full size is the recipe's own and meant for a GPU. The small size, about a million parameters, trains on a CPU.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.measure import Contender, race
from benchmarks.rnn.contenders import n_parameters, recipes_like
from benchmarks.rnn.source_use import loss_with_wrong_source
from benchmarks.rnn.tuning import Place, best_rate, finalists, run, seeded, trials, with_rate
from regard.evaluation.scores import translation_logits
from regard.evaluation.translation import read_trained
from regard.models import build_model
from regard.recipes.data import DataSource, PreparedData, prepare
from regard.recipes.evaluating import EvaluationOptions, evaluate
from regard.recipes.recipe import Recipe, config_of, read_recipe
from regard.training.batches import IGNORED, Batch
from regard.training.metrics import MetricsFile
from regard.training.run_reports import METRICS

Size = Literal["full", "small"]
SMALL: dict[str, dict[str, str]] = {
    "multi30k-en-de": {
        "data.vocab_size": "3000",
        "data.batch_tokens": "2048",
        "data.tests": '["test_2016_flickr"]',
    },
    "en-zh": {
        "data.vocab_size": "4000",
        "data.batch_tokens": "1024",
        "model.norm": '{ place = "pre", final = true }',
        "training.schedule": "cosine",
    },
}
"""What the small size changes in a recipe, besides SMALL_ALL."""
SMALL_ALL = {
    "model.n_layers": "2",
    "model.d_model": "128",
    "model.n_heads": "4",
    "model.d_ff": "256",
    "model.dropout": "0.1",
    "training.steps": "1000",
    "training.warmup": "100",
    "training.valid_every": "100",
    "training.save_every": "100",
    "training.keep": "2",
    "training.average": "1",
    "training.patience": "none",
    "evaluation.beams": "1",
}
SEED = 1
TIMED_BATCHES, ROUNDS = 4, 5


def recipes(name: str, size: Size = "full", steps: int | None = None) -> dict[str, Recipe]:
    """A bundled translation recipe once for each model, all with the Transformer's parameters.

    No R-Drop, which doubles a step and was tuned for the Transformer. No CUDA graph for recurrent models: Bahdanau's
    decoder has as many launches as words.
    """
    base = read_recipe(name, SMALL_ALL | SMALL[name] if size == "small" else None)
    steps = steps or base.training.steps
    base = replace(base, film=None, training=replace(base.training, steps=steps, agreement=None))
    found = recipes_like(base, _vocab_size(base))
    plain = replace(base.training, capture=False)
    return {each: recipe if recipe is base else replace(recipe, training=plain) for each, recipe in found.items()}


def translation(name: str, size: Size, steps: int | None, trial_steps: int | None, place: Place) -> dict[str, Any]:
    """Choose the rate of every model, train and evaluate it; runs that are already in the folder are continued."""
    made = recipes(name, size, steps)
    base = made["Transformer"]
    trial_steps = trial_steps or max(1, base.training.steps // 8)
    prepared = prepare(base, DataSource(place.data, False, None))
    models = {each: _measured(each, recipe, trial_steps, place.below(each)) for each, recipe in made.items()}
    for each, seconds in step_times(made, prepared, place.device).items():
        models[each]["seconds_per_step"] = seconds
    return {
        "size": size,
        "device": place.device,
        "steps": base.training.steps,
        "trial_steps": trial_steps,
        "epochs": round(base.training.steps / prepared.data.batches_per_epoch, 2),
        "batch_tokens": base.data.batch_tokens,
        "beams": base.evaluation.beams,
        "seed": SEED,
        "models": models,
    }


def _measured(name: str, recipe: Recipe, trial_steps: int, place: Place) -> dict[str, Any]:
    """The rates of one model that were tried, its full runs with two of them, and the one with the lower loss."""
    losses = trials(recipe, trial_steps, place)
    runs = {str(lr): _full_run(with_rate(recipe, lr), place) for lr in finalists(losses)}
    lr = best_rate({rate: each["loss"] for rate, each in runs.items()})
    for rate, each in runs.items():
        print(f"translation: {name}, rate {rate}", each["loss"], each["wrong_source_loss"], each["scores"], flush=True)
    return {"lr": lr, "trials": losses, "runs": runs, **runs[str(lr)]}


def _full_run(recipe: Recipe, place: Place) -> dict[str, Any]:
    """Losses by step, with the right and the wrong source at the end, and the scores on the test sets."""
    recipe, place = seeded(recipe, SEED, place)
    figures = run(recipe, place)
    trained = read_trained(place.out)
    valid = prepare(recipe, DataSource(place.data, False, trained.tokenizer)).valid
    results = evaluate(place.out, EvaluationOptions(data=place.data, device=place.device))
    return {
        "parameters": figures["parameters"],
        "loss": round(figures["valid_loss"], 4),
        "wrong_source_loss": round(loss_with_wrong_source(trained.model.to(place.device), valid, place.device), 4),
        "losses": losses_by_step(MetricsFile(place.out / METRICS)),
        "scores": {each.set: {score.name: round(score.value, 2) for score in each.scores} for each in results},
    }


def losses_by_step(metrics: MetricsFile) -> dict[str, float]:
    """The validation losses of a run."""
    return {str(line["step"]): round(line["valid_loss"], 4) for line in metrics.read() if "valid_loss" in line}


def step_times(made: Mapping[str, Recipe], prepared: PreparedData, device: str) -> dict[str, float]:
    """Seconds of forward and backward per batch, the shortest of some rounds in which the models take turns."""
    batches = [prepared.data.batch(0, i) for i in range(min(TIMED_BATCHES, prepared.data.batches_per_epoch))]
    runs: dict[str, Contender] = {}
    for name, recipe in made.items():
        model = build_model(config_of(recipe, prepared.tokenizer.vocab_size)).to(device)
        runs[name] = partial(_pass, model, batches, device)
    times = race(runs, ROUNDS, warm_up=1).times
    return {name: round(min(times[name]) / len(batches), 5) for name in made}


def _pass(model: nn.Module, batches: list[Batch], device: str) -> None:
    for batch in batches:
        inputs = {name: each.to(device) for name, each in batch.inputs.items()}
        logits = translation_logits(model, **inputs).flatten(0, 1)
        loss = cross_entropy(logits, batch.targets.to(device).flatten(), ignore_index=IGNORED)
        loss.backward()
        loss.item()  # waits for a GPU
        model.zero_grad(set_to_none=True)


def parameters(name: str, size: Size = "full") -> dict[str, int]:
    """The parameters of every model of a recipe, before any training."""
    made = recipes(name, size)
    vocab_size = _vocab_size(made["Transformer"])
    return {each: n_parameters(config_of(recipe, vocab_size)) for each, recipe in made.items()}


def _vocab_size(recipe: Recipe) -> int:
    """The size that the recipe asks for; the learned vocabulary may be a few tokens smaller."""
    assert recipe.data.vocab_size is not None
    return recipe.data.vocab_size
