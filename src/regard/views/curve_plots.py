"""Curves with matplotlib: the smoothed curve over a shade of the values themselves, several runs in one picture.

A Figure of its own, never shown; pyplot and its settings are not touched.
"""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import MissingPackageError
from regard.files.output import PICTURES, check_place, ending_of, write_output
from regard.messages import Language, Listed, say
from regard.views.curves import VALIDATION, Curve, metric_name, thin, value_range
from regard.views.fonts import drawable, spoken, text_style
from regard.views.labels import cut, visible
from regard.views.picture import chosen_language

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 800
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's (2008), which colour-blind eyes tell apart."""
_STROKES = ("-", (0, (6, 1.5)), "-.", (0, (3, 1, 1, 1, 1, 1)))
"""From the eighth run on colours come again, so strokes change with them."""
_WIDEST_NAME = 40


def plot_curves(curves: Sequence[Curve], lang: Language | None = None) -> "Figure":
    """A Figure with all the curves; MissingPackageError where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="--png") from error
    lang = spoken(chosen_language(lang))
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    runs = list(dict.fromkeys(one.run for one in curves))
    for one in curves:
        _draw(axes, one, runs.index(one.run), len(runs) > 1, lang)
    low, high = value_range(curves)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    metrics = Listed(dict.fromkeys(metric_name(one.metric, lang) for one in curves)).joined(lang)
    pieces = [metrics] if len(runs) > 1 else [cut(visible(runs[0]), _WIDEST_NAME), metrics]
    axes.set_title(_text(" · ".join(pieces)), **text_style())
    axes.set_xlabel(_text(say("curves-step", lang)), **text_style())
    axes.set_ylabel(_text(metrics), **text_style())
    axes.grid(alpha=0.25)
    legend = axes.legend(frameon=False)
    for label in legend.get_texts():
        label.set(**text_style())
    return figure


def save_curves(curves: Sequence[Curve], path: Path, lang: Language | None = None) -> None:
    """Write the picture as its ending says, whole or not at all. Raises FileError and MissingPackageError."""
    kind = ending_of(path, *PICTURES).removeprefix(".")
    check_place(path)
    figure = plot_curves(curves, lang)
    drawn = BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    write_output(path, drawn.getvalue())


def _draw(axes: Any, one: Curve, run: int, several: bool, lang: Language) -> None:
    colour, stroke = _COLOURS[run % len(_COLOURS)], _STROKES[run // len(_COLOURS) % len(_STROKES)]
    columns = min(COLUMNS, len(one.steps))
    span = float(one.steps[0]), float(one.steps[-1])
    smooth, raw = (thin(one.steps, values, columns, span) for values in (one.smooth, one.values))
    there = ~np.isnan(raw.mean)
    steps = thin(one.steps, one.steps, columns, span).mean[there]
    name = metric_name(one.metric, lang)
    label = _text(f"{cut(visible(one.run), _WIDEST_NAME)} · {name}" if several else name)
    if one.metric == VALIDATION:  # beside the loss of the same run: same colour, told apart by stroke and points
        axes.plot(steps, smooth.mean[there], color=colour, linestyle=":", marker="o", markersize=4, label=label)
        return
    if one.noisy:
        axes.fill_between(steps, raw.low[there], raw.high[there], color=colour, alpha=0.18, linewidth=0)
    marker = "o" if len(steps) == 1 else None
    axes.plot(steps, smooth.mean[there], color=colour, linestyle=stroke, marker=marker, linewidth=1.6, label=label)


def _text(text: str) -> str:
    return drawable([text])[0]
