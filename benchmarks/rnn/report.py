"""The report of RNN against Transformer: Markdown tables from the measured numbers."""

from collections.abc import Mapping
from typing import Any

from benchmarks.commit import with_commit
from benchmarks.dated import heading, table
from benchmarks.rnn.contenders import CLOSE, FORGET_BIAS, language_models, n_parameters
from benchmarks.rnn.recall import LONGEST, TESTED
from benchmarks.rnn.translation import SMALL, parameters
from benchmarks.rnn.translation_report import rates_table, translation_lines

RUN = "python -m benchmarks.rnn --part"
TIME_ON_GPU = "time on a GPU"
TOO_SHORT = {
    "en-zh": "704 steps on one core were too few: no model had learned to read its source (docs/log.md, 2026-11-18)."
}


def markdown(results: Mapping[str, Any]) -> str:
    """The whole report, from the parts that were measured."""
    parts = {
        "recall": _recall,
        "gradient": _gradient,
        "time": _time,
        TIME_ON_GPU: _time,
        "work": _work,
        "memory": _memory,
        "translation": translation_lines,
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
    rows += [(f"recipe {name}, {size}", parameters(name, size)) for name in SMALL for size in ("full", "small")]
    cells = ([what, ", ".join(f"{name} {count:,}" for name, count in found.items())] for what, found in rows)
    return ["## Parameters", "", *table(["models", "parameters"], cells)]


def _recall(found: Mapping[str, Any]) -> list[str]:
    models, seeds = found["models"], found["seeds"]
    lengths = list(next(iter(models.values()))["accuracy"])
    rows = (
        [name, f"{each['parameters']:,}", f"{each['lr']}", *(_share(each, length) for length in lengths)]
        for name, each in models.items()
    )
    return [
        "## Recall over distance",
        "",
        f"The copy puzzle with 2 to {LONGEST} letters, {found['steps']:,} steps of 32 examples. The share of right "
        f"letters on {TESTED} texts of each length that no training saw; chance is 4%. From a letter to its copy there "
        f"are as many words as the text has letters. The mean of {len(seeds)} seeds, in brackets the lowest and the "
        "highest. A low share after so few steps means that a model learns this slowly, not that it cannot learn it.",
        "",
        *table(["model", "parameters", "learning rate", *lengths], rows),
        "",
        f"Each model has its own learning rate: the one with the lowest validation loss after {found['trial_steps']} "
        f"steps, with another seed. LSTMs start with a forget bias of {FORGET_BIAS:g}. The losses:",
        "",
        *rates_table(models),
    ]


def _share(model: Mapping[str, Any], length: str) -> str:
    """The mean of the seeds, and the lowest and highest unless they are the same in whole per cent."""
    shares = [each["accuracy"][length] for each in model["runs"]]
    low, high = (f"{share:.0%}" for share in (min(shares), max(shares)))
    return f"{model['accuracy'][length]:.0%}" + ("" if low == high else f" ({low}–{high})")


def _gradient(found: Mapping[str, Any]) -> list[str]:
    return [
        "## Gradient that reaches the first word",
        "",
        "The gradient of the last word's loss by the first word's vector, divided by that by the last word's; initial "
        "weights, one layer, the median of 8 texts, float64. 1 means: the first word teaches as much as the last.",
        "",
        *_by_length(found, lambda value: f"{value:.1e}"),
    ]


def _time_heading(found: Mapping[str, Any]) -> list[str]:
    if found["device"] == "cpu":
        return ["## Time"]
    versions = found["versions"]
    return ["## Time on a GPU", "", f"{versions}; the other parts of this report were measured on the machine above."]


def _time(found: Mapping[str, Any]) -> list[str]:
    micro = f"{found['device']}, microseconds"
    return [
        *_time_heading(found),
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


def _not_run(results: Mapping[str, Any]) -> list[str]:
    """What is missing, and the command that measures it."""
    missing = {}
    for name in SMALL:
        if name not in results.get("translation", {}):
            command = f"`{RUN} translation --recipe {name} --data FOLDER --out RUNS --device cuda --report`"
            missing[f"recipe {name} at full size"] = (
                f"five such runs need a GPU, and none was at hand. {command} runs it."
            )
        if f"{name}, small" not in results.get("translation", {}):
            command = f"`{RUN} translation --recipe {name} --size small --data FOLDER --out RUNS --report` runs it."
            missing[f"recipe {name}, small"] = f"{TOO_SHORT.get(name, 'not measured on this day.')} {command}"
    if TIME_ON_GPU not in results:
        missing[TIME_ON_GPU] = f"no GPU was at hand. `{RUN} time --device cuda --report` runs it."
    return ["## Not run", "", *(f"- {name}: {why}" for name, why in missing.items())] if missing else []


def _by_length(found: Mapping[str, Mapping[str, float]], form: Any) -> list[str]:
    lengths = list(next(iter(found.values())))
    return table(["length", *lengths], ([name, *(form(each[at]) for at in lengths)] for name, each in found.items()))
