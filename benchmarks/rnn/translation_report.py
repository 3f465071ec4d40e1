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
        "Wrong source: by how much the validation loss grows if each sentence gets the source of another one. Near 0, "
        "a model ignores its source: it has become a language model, and its BLEU says nothing about translation.",
        "",
        "Validation loss per token by step:",
        "",
        *_losses(models),
        "",
        f"Learning rates: short runs of {found['trial_steps']} steps with another seed give the losses below. The best "
        "rate and the next lower one are then trained in full, and the lower validation loss decides; the table of "
        "scores shows both, the chosen one in bold. Short runs alone would mislead: so early they measure how fast a "
        "model learns the language, not whether it reads the source. docs/log.md, 2026-11-18, tells how this rule came "
        "about, after scores of finished runs had been seen.",
        "",
        *rates_table(models),
    ]


def _search(beams: int) -> str:
    return "Greedy search." if beams == 1 else f"{beams} beams."


def _scores(models: Mapping[str, Any]) -> list[str]:
    """A row for each full run: parameters, learning rate, losses, scores, and the time of a step."""
    sets = next(iter(models.values()))["scores"]
    names = [(one, score) for one, scores in sets.items() for score in scores]
    rows = []
    for name, model in models.items():
        for rate, each in model["runs"].items():
            cells = [
                name,
                f"{each['parameters']:,}",
                rate,
                f"{each['loss']:.3f}",
                f"{each['wrong_source_loss'] - each['loss']:+.2f}",
                *(f"{each['scores'][one][score]:.1f}" for one, score in names),
                f"{1000 * model['seconds_per_step']:,.0f} ms",
            ]
            rows.append([f"**{cell}**" for cell in cells] if float(rate) == model["lr"] else cells)
    scores = [f"{one} {score}" for one, score in names]
    losses = ["validation loss", "wrong source"]
    return table(["model", "parameters", "learning rate", *losses, *scores, "forward and backward"], rows)


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
