"""The explorer in a notebook, by anywidget: of a trace or a hand calculation. The kernel answers its requests.

Where scripts do not run (a notebook on GitHub, a converted one), the picture of the first head is shown instead.
"""

from functools import cache
from typing import Any

import numpy as np

from regard.attention_call import WeightsFromQK
from regard.errors import require_package
from regard.hand_calculation import Steps
from regard.kernels.blocked import rectangle
from regard.masks import Mask
from regard.messages import Language
from regard.records import Record
from regard.trace.trace import Trace
from regard.views.explorer import front
from regard.views.explorer.answers import Answer, Source, answered
from regard.views.explorer.source import TraceSource, effects_of
from regard.views.explorer.still import still
from regard.views.picture import rescaled


def widget(source: Source, picture: str, text: str, lang: str | None = None) -> Any:
    """An anywidget that answers from `source`. Raises MissingPackageError without anywidget.

    picture, text   what is shown where scripts do not run: an SVG, and plain text
    """
    require_package("anywidget", "widget()")
    return _widget_class()(source, picture, text, lang)


@cache
def _widget_class() -> Any:
    """The class, made on first use: anywidget is an optional package."""
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        """The explorer in a notebook."""

        _esm = front.script("widget.js")
        sheet = traitlets.Unicode(front.style()).tag(sync=True)  # for a shadow root, which `_css` does not reach
        picture = traitlets.Unicode("").tag(sync=True)
        lang = traitlets.Unicode(None, allow_none=True).tag(sync=True)
        theme = traitlets.Unicode(None, allow_none=True).tag(sync=True)

        def __init__(self, source: Source, picture: str, text: str, lang: str | None) -> None:
            super().__init__(lang=lang, picture=picture)
            self.source, self._text = source, text
            self.on_msg(self._receive)

        def _receive(self, _widget: Any, message: Any, _buffers: Any) -> None:
            reply, buffers = answered(self.source, message)
            self.send(reply, buffers)

        def __repr__(self) -> str:
            return self._text

        def _repr_mimebundle_(self, **options: Any) -> Any:
            bundle = super()._repr_mimebundle_(**options)
            data, about = bundle if isinstance(bundle, tuple) else (bundle, {})
            return {**(data or {}), "image/svg+xml": self.picture, "text/plain": self._text}, about

    return ExplorerWidget


def trace_widget(
    trace: Trace, model: Any, inputs: Any, layer: int | str | None, *, tokenizer: Any = None, **options: Any
) -> Any:
    """The widget of a Trace. Raises as `show`, ArgumentError for a model without inputs, and MissingPackageError."""
    source = TraceSource(trace, layer, effects=effects_of(model, inputs, tokenizer), **options)
    return widget(source, still_of(source), repr(trace), source.lang)


def still_of(source: TraceSource) -> str:
    """The head that the source opens with, as an SVG."""
    return still(rescaled(source.picture(*source.opening), source.scale), source.lang)


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
