"""Traces and hand calculations in a notebook: their source, the widget, and the picture where scripts do not run."""

from typing import Any

from regard.trace.trace import Trace
from regard.views.explorer.effects import effects_of
from regard.views.explorer.source import TraceSource
from regard.views.explorer.still import still
from regard.views.explorer.widget import widget
from regard.views.picture import rescaled


def trace_widget(
    trace: Trace, model: Any, inputs: Any, layer: int | str | None, *, tokenizer: Any = None, **options: Any
) -> Any:
    """The widget of a Trace. Raises as `show`, ArgumentError for a model without inputs, and MissingPackageError."""
    source = TraceSource(trace, layer, effects=effects_of(model, inputs, tokenizer), **options)
    return widget(source, still_of(source), repr(trace), source.lang)


def still_of(source: TraceSource) -> str:
    """The head that the source opens with, as an SVG."""
    return still(rescaled(source.picture(*source.opening), source.scale), source.lang)
