"""The report of RNN against Transformer: Markdown tables from the measured numbers."""

from collections.abc import Mapping
from typing import Any

from benchmarks.commit import with_commit
from benchmarks.dated import heading, table
from benchmarks.rnn.contenders import CLOSE, language_models, n_parameters
from benchmarks.rnn.recall import LONGEST, TESTED
from benchmarks.rnn.translation import parameters

NOT_RUN = {
    "translation": "training of five translators needs a GPU, and none was at hand. `python -m benchmarks.rnn --part "
    "translation --recipe multi30k-en-de --data FOLDER --out RUNS --device cuda --report` runs it.",
    "time on a GPU": "no GPU was at hand. `python -m benchmarks.rnn --part time --device cuda --report` runs it.",
}


def markdown(results: Mapping[str, Any]) -> str:
    """The whole report, from the parts that were measured."""
    parts = {
        "recall": _recall,
        "gradient": _gradient,
        "time": _time,
        "work": _work,
        "memory": _memory,
        "translation": _translation,
    }
    lines = [
        *heading(with_commit("RNN against Transformer")),
        f"`python -m benchmarks.rnn`. Models that are compared have equal parameters, within {CLOSE:.0%}, and equal "
        "data. Times are the shortest of several rounds in which the models take turns; the machine was shared.",
        "",
        *_parameters(),
    ]
    for name, write in parts.items():
        if name in results:
            lines += ["", *write(results[name])]
    return "\n".join([*lines, "", *_not_run(results), ""])


def _parameters() -> list[str]:
    language = {name: n_parameters(config) for name, config in language_models().items()}
    rows = [("language models (time, memory, work)", language)]
    rows += [(f"recipe {name}", parameters(name)) for name in ("multi30k-en-de", "en-zh")]
    cells = ([what, ", ".join(f"{name} {count:,}" for name, count in found.items())] for what, found in rows)
    return ["## Parameters", "", *table(["models", "parameters"], cells)]


def _recall(found: Mapping[str, Any]) -> list[str]:
    models = found["models"]
    lengths = list(next(iter(models.values()))["accuracy"])
    rows = (
        [name, f"{each['parameters']:,}", *(f"{share:.0%}" for share in each["accuracy"].values())]
        for name, each in models.items()
    )
    return [
        "## Recall over distance",
        "",
        f"The copy puzzle with 2 to {LONGEST} letters, {found['steps']} steps of 32 examples, one seed. The share of "
        f"right letters on {TESTED} texts of each length that no training saw; chance is 4%. From a letter to its copy "
        "there are as many words as the text has letters. A low share after so few steps means that a model learns "
        "this slowly, not that it cannot learn it.",
        "",
        *table(["model", "parameters", *lengths], rows),
    ]


def _gradient(found: Mapping[str, Any]) -> list[str]:
    return [
        "## Gradient that reaches the first word",
        "",
        "The gradient of the last word's loss by the first word's vector, divided by that by the last word's; initial "
        "weights, one layer, the median of 8 texts, float64. 1 means: the first word teaches as much as the last.",
        "",
        *_by_length(found, lambda value: f"{value:.1e}"),
    ]


def _time(found: Mapping[str, Any]) -> list[str]:
    micro = f"{found['device']}, microseconds"
    return [
        "## Time",
        "",
        f"Training, one text at a time, per word ({micro}, forward and backward):",
        "",
        *_by_length(found["training"]["one text"], lambda value: f"{1e6 * value:.1f}"),
        "",
        f"Training, batches of {found['tokens']:,} words, per word ({micro}, forward and backward):",
        "",
        *_by_length(found["training"]["a batch"], lambda value: f"{1e6 * value:.1f}"),
        "",
        f"Generation, the next word after a text of this length ({micro}):",
        "",
        *_by_length(found["generation"], lambda value: f"{1e6 * value:.0f}"),
    ]


def _work(found: Mapping[str, Any]) -> list[str]:
    return [
        "## Sequential steps against parallel work",
        "",
        "Counted. Products of matrices of a forward pass that must wait for one another:",
        "",
        *_by_length({name: each["steps"] for name, each in found.items()}, lambda value: f"{value:,.0f}"),
        "",
        "Multiplications of the same pass, in millions:",
        "",
        *_by_length({name: each["multiplications"] for name, each in found.items()}, lambda v: f"{v / 1e6:,.0f}"),
    ]


def _memory(found: Mapping[str, Any]) -> list[str]:
    return [
        "## Memory",
        "",
        "Training: what the forward pass of one text keeps for the backward pass, MiB, on the CPU:",
        "",
        *_by_length(found["training"], lambda value: f"{value / 2**20:,.1f}"),
        "",
        "Generation: what is kept of the text read so far, KiB, counted:",
        "",
        *_by_length(found["generation"], lambda value: f"{value / 2**10:,.0f}"),
    ]


def _translation(found: Mapping[str, Any]) -> list[str]:
    lines = ["## Translation"]
    for recipe, models in found.items():
        names = list(next(iter(models.values()))["scores"])
        rows = (
            [
                name,
                f"{each['parameters']:,}",
                *(", ".join(f"{score} {v:.1f}" for score, v in each["scores"][one].items()) for one in names),
                f"{each['seconds']:,} s",
            ]
            for name, each in models.items()
        )
        lines += ["", f"Recipe {recipe}:", "", *table(["model", "parameters", *names, "time"], rows)]
    return lines


def _not_run(results: Mapping[str, Any]) -> list[str]:
    on_gpu = results.get("time", {}).get("device") == "cuda"
    missing = {name: why for name, why in NOT_RUN.items() if name not in results}
    missing = {name: why for name, why in missing.items() if name != "time on a GPU" or not on_gpu}
    return ["## Not run", "", *(f"- {name}: {why}" for name, why in missing.items())] if missing else []


def _by_length(found: Mapping[str, Mapping[str, float]], form: Any) -> list[str]:
    lengths = list(next(iter(found.values())))
    return table(["length", *lengths], ([name, *(form(each[at]) for at in lengths)] for name, each in found.items()))
