"""A hand calculation, `regard.explain(q, k, v)`, as a source of the explorer: one head that opens in its numbers."""

from typing import Any

import numpy as np

from regard.attention_call import WeightsFromQK
from regard.hand_calculation import Steps
from regard.kernels.blocked import rectangle
from regard.masks import Mask
from regard.messages import Language
from regard.records import Record
from regard.trace.trace import Trace
from regard.views.explorer.answers import Answer
from regard.views.explorer.notebook import still_of
from regard.views.explorer.source import TraceSource
from regard.views.explorer.widget import widget


class CalculationSource(TraceSource):
    """The answers about one hand calculation."""

    def overview(self) -> Answer:
        answer = super().overview()
        answer.about["depth"] = "numbers"
        return answer


def calculation_trace(steps: Steps) -> Trace:
    """The calculation as a Trace of one head; its keys and queries are named q0, k0, …"""
    numbers = {step.key: step.values for step in steps}
    q, k, v = (numbers[name][None, None] for name in ("queries", "keys", "values"))
    T, S = q.shape[2], k.shape[2]
    sums, highest = numbers["sums"], steps.calculation.highest
    with np.errstate(divide="ignore"):
        lse = np.where(sums > 0, np.log(sums) + np.where(np.isneginf(highest), 0, highest), -np.inf)
    mask = None if steps.calculation.masked is None else Mask.of(steps.calculation.allowed)
    scale = steps.calculation.scale
    exact = WeightsFromQK(
        q=q,
        k=k,
        v=v,
        lse=lse[None, None, :, 0],
        scale=q.shape[-1] ** -0.5 if scale is None else scale,
        lead=(1, 1),
        compute=rectangle,
        mask=mask,
        bound=None if mask is None else mask.bind((1, 1), T, S),
    )
    record = Record(shape=(1, 1, T, S), name="explain", map=steps.weights[None, None], lse=exact.lse, exact=exact)
    return Trace(record.with_tokens([f"q{i}" for i in range(T)], [f"k{i}" for i in range(S)]))


def calculation_source(steps: Steps, lang: Language | None = None) -> TraceSource:
    """The source whose panel opens in the numbers."""
    return CalculationSource(calculation_trace(steps), lang=lang)


def calculation_widget(steps: Steps, lang: Language | None = None) -> Any:
    """The widget. Raises MissingPackageError."""
    source = calculation_source(steps, lang)
    return widget(source, still_of(source), steps.text(lang), source.lang)
