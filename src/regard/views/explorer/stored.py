"""The answers that a file stores, within a budget: the overview, and the map of every head, pooled until all fit."""

from regard.views.explorer.answers import Answer
from regard.views.explorer.source import TraceSource


def stored_answers(source: TraceSource) -> dict[str, Answer]:
    """The answers by their names in the file."""
    answers = {"overview": source.overview()}
    for layer, record in enumerate(source.records):
        for head in range(record.shape[1]):
            answers[f"head-{layer}-{head}"] = source.head(layer, head)
    return answers
