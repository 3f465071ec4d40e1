"""The part of the report about translation, and the table of learning rates that were tried."""

from collections.abc import Mapping
from typing import Any

from benchmarks.dated import table
from benchmarks.rnn.contenders import FORGET_BIAS


def translation_lines(found: Mapping[str, Any]) -> list[str]:
    """A section for each recipe and size."""
    lines = ["## Translation"]
    for name, each in found.items():
        lines += ["", f"### Recipe {name}", "", *_recipe(each)]
    return lines


def _recipe(found: Mapping[str, Any]) -> list[str]:
    models = found["models"]
    lines = [
        f"{found['steps']:,} steps of at most {found['batch_tokens']:,} tokens per side, which is {found['epochs']:g} "
        f"times the training data, seed {found['seed']}, on one {found['device']}. {_search(found['beams'])} "
        f"LSTMs start with a forget bias of {FORGET_BIAS:g}.",
        "",
    ]
    if found["size"] == "small":
        lines += [
            "BLEU is low, because the models are small and the training is short: this is the ranking after "
            f"{found['steps']:,} steps, not the quality that these models reach. One seed: small differences mean "
            "nothing.",
            "",
        ]
    return [
        *lines,
        *_scores(models),
        "",
        "Validation loss per token by step:",
        "",
        *_losses(models),
        "",
        f"Validation loss after {found['trial_steps']} steps by learning rate, with another seed; the lowest decides:",
        "",
        *rates_table(models),
    ]


def _search(beams: int) -> str:
    return "Greedy search." if beams == 1 else f"{beams} beams."


def _scores(models: Mapping[str, Any]) -> list[str]:
    """Parameters, learning rate, loss, scores and time of each model."""
    sets = next(iter(models.values()))["scores"]
    names = [(one, score) for one, scores in sets.items() for score in scores]
    rows = (
        [
            name,
            f"{each['parameters']:,}",
            f"{each['lr']}",
            f"{each['loss']:.3f}",
            *(f"{each['scores'][one][score]:.1f}" for one, score in names),
            f"{1000 * each['seconds_per_step']:,.0f} ms",
        ]
        for name, each in models.items()
    )
    scores = [f"{one} {score}" for one, score in names]
    heads = ["model", "parameters", "learning rate", "validation loss", *scores, "forward and backward of a step"]
    return table(heads, rows)


def _losses(models: Mapping[str, Any]) -> list[str]:
    steps = list(next(iter(models.values()))["losses"])
    rows = ([name, *(f"{each['losses'][step]:.2f}" for step in steps)] for name, each in models.items())
    return table(["model", *steps], rows)


def rates_table(models: Mapping[str, Any]) -> list[str]:
    """The loss of the short runs by learning rate; a rate that was not tried for a model gets a dash."""
    rates = sorted({rate for each in models.values() for rate in each["trials"]}, key=float)
    rows = (
        [name, *(f"{each['trials'][rate]:.3f}" if rate in each["trials"] else "–" for rate in rates)]
        for name, each in models.items()
    )
    return table(["model", *rates], rows)
