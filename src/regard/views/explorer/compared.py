"""A Comparison of two traces as a source of the explorer: the first trace, and both sides of every head, aligned."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.axes import in_range
from regard.files.output import PAGES, check_target, extension_of, write_output
from regard.messages import LANGUAGES, Language, say
from regard.trace.comparison import Comparison, Pair
from regard.trace.pooling import bin_size, pool
from regard.views.explorer import overview as shown
from regard.views.explorer.answers import Answer
from regard.views.explorer.page import filled, stored_answers
from regard.views.explorer.source import TraceSource
from regard.views.explorer.widget import still_of, widget

MOST_CELLS = 512
"""The most rows, and columns, of both sides."""


class ComparisonSource(TraceSource):
    """The answers about two traces."""

    def __init__(self, comparison: Comparison, lang: Language | None = None) -> None:
        super().__init__(comparison.left, sample=comparison.sample, lang=lang)
        self.comparison = comparison

    def overview(self) -> Answer:
        answer = super().overview()
        answer.about["compare"] = {"names": [self._name(side) for side in (0, 1)]}
        return answer

    def _name(self, side: int) -> dict[Language, str]:
        """The text of a side where the two differ, else "first" and "second"."""
        trace = (self.comparison.left, self.comparison.right)[side]
        both = [one.texts for one in (self.comparison.left, self.comparison.right)]
        if trace.texts is not None and both[0] != both[1]:
            return dict.fromkeys(LANGUAGES, shown.label(" → ".join(filter(None, trace.texts))))
        return {lang: say(f"compare-side-{side}", lang) for lang in LANGUAGES}

    def compare(self, layer: int, head: int, other: Any = None) -> Answer:
        """Both sides of one head on the aligned tokens, and the labels of each row and column on both sides."""
        record = self.records[in_range("layer", layer, len(self.records))]
        found = self.comparison.aligned(layer, in_range("head", head, record.shape[1]))
        R, C = found.left.shape
        high, wide = bin_size(R, MOST_CELLS), bin_size(C, MOST_CELLS)
        cells = [_pooled(side, high, wide).astype(np.float32) for side in (found.left, found.right)]
        rows, cols = high * found.bins[0], wide * found.bins[1]
        about = {"R": len(cells[0]), "C": cells[0].shape[1], "high": rows, "wide": cols, "note": None}
        about |= {
            "queries": self._labels(layer, "query_tokens", found.queries.pairs[::high], rows),
            "keys": self._labels(layer, "key_tokens", found.keys.pairs[::wide], cols),
        }
        return Answer(about, {"cells": cells[0], "other": cells[1]})

    def _labels(self, layer: int, side: str, pairs: Sequence[Pair], size: int) -> list[list[str | None]]:
        """The labels of both sides; positions where a cell covers several tokens or there are no tokens."""
        tables = [
            shown.token_labels(getattr(trace[layer], side), self.comparison.sample)
            for trace in (self.comparison.left, self.comparison.right)
        ]

        def name(number: int, at: int | None) -> str | None:
            table = tables[number]
            return None if at is None else str(at) if table is None or size > 1 else table[at]

        return [[name(0, a), name(1, b)] for a, b in pairs]


def write_comparison(comparison: Comparison, path: str | os.PathLike[str], lang: Language | None = None) -> None:
    """Write the page, completely or not at all."""
    target = Path(path)
    extension_of(target, *PAGES)
    check_target(target)
    source = ComparisonSource(comparison, lang)
    answers = stored_answers(source)
    for layer, record in enumerate(source.records):
        for head in range(record.shape[1]):
            answers[f"compare-{layer}-{head}"] = source.compare(layer, head).compressed()
    write_output(target, filled(answers, source.lang).encode())


def comparison_widget(comparison: Comparison, lang: Language | None = None) -> Any:
    """The widget. Raises MissingPackageError."""
    source = ComparisonSource(comparison, lang)
    return widget(source, still_of(source), comparison.text(lang=lang), source.lang)


def _pooled(side: np.ndarray, high: int, wide: int) -> np.ndarray:
    if high == wide == 1:
        return side
    counts = np.isfinite(side).any(-1).astype(int)
    return pool(np.nan_to_num(side), counts, high, wide)[0]
