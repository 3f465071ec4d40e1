"""Curves with matplotlib: smoothed curves over a shade of the raw values, several runs in one figure.

Returns a Figure that is never shown. Does not use pyplot or change its settings.
"""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import MissingPackageError
from regard.files.output import PICTURES, check_target, extension_of, write_output
from regard.messages import Language, Listed, say
from regard.views.curves import VALIDATION, Curve, bin_points, metric_name, value_range
from regard.views.fonts import drawable, drawable_language, text_style
from regard.views.labels import cut, printable_label
from regard.views.picture import chosen_language

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 800
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito (2008), which colour-blind readers can distinguish."""
_STROKES = ("-", (0, (6, 1.5)), "-.", (0, (3, 1, 1, 1, 1, 1)))
"""Colours repeat from the eighth run on, with another line style."""
_WIDEST_NAME = 40


def plot_curves(curves: Sequence[Curve], lang: Language | None = None) -> "Figure":
    """A Figure with all curves. Raises MissingPackageError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("missing-package", package="matplotlib", extra="plot", what="--png") from error
    lang = drawable_language(chosen_language(lang))
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    runs = list(dict.fromkeys(one.run for one in curves))
    for one in curves:
        _draw(axes, one, runs.index(one.run), len(runs) > 1, lang)
    low, high = value_range(curves)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    metrics = Listed(dict.fromkeys(metric_name(one.metric, lang) for one in curves)).joined(lang)
    pieces = [metrics] if len(runs) > 1 else [cut(printable_label(runs[0]), _WIDEST_NAME), metrics]
    axes.set_title(_text(" · ".join(pieces)), **text_style())
    axes.set_xlabel(_text(say("curves-step", lang)), **text_style())
    axes.set_ylabel(_text(metrics), **text_style())
    axes.grid(alpha=0.25)
    legend = axes.legend(frameon=False)
    for label in legend.get_texts():
        label.set(**text_style())
    return figure


def save_curves(curves: Sequence[Curve], path: Path, lang: Language | None = None) -> None:
    """Write the figure in the format of the file's extension, completely or not at all. Raises FileError and
    MissingPackageError.
    """
    kind = extension_of(path, *PICTURES).removeprefix(".")
    check_target(path)
    figure = plot_curves(curves, lang)
    drawn = BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    write_output(path, drawn.getvalue())


def _draw(axes: Any, one: Curve, run: int, several: bool, lang: Language) -> None:
    colour, stroke = _COLOURS[run % len(_COLOURS)], _STROKES[run // len(_COLOURS) % len(_STROKES)]
    columns = min(COLUMNS, len(one.steps))
    span = float(one.steps[0]), float(one.steps[-1])
    smooth, raw = (bin_points(one.steps, values, columns, span) for values in (one.smooth, one.values))
    there = ~np.isnan(raw.mean)
    steps = bin_points(one.steps, one.steps, columns, span).mean[there]
    name = metric_name(one.metric, lang)
    label = _text(f"{cut(printable_label(one.run), _WIDEST_NAME)} · {name}" if several else name)
    if one.metric == VALIDATION:  # same colour as the training loss of the run, other line style and markers
        axes.plot(steps, smooth.mean[there], color=colour, linestyle=":", marker="o", markersize=4, label=label)
        return
    if one.noisy:
        axes.fill_between(steps, raw.low[there], raw.high[there], color=colour, alpha=0.18, linewidth=0)
    marker = "o" if len(steps) == 1 else None
    axes.plot(steps, smooth.mean[there], color=colour, linestyle=stroke, marker=marker, linewidth=1.6, label=label)


def _text(text: str) -> str:
    return drawable([text])[0]
