"""Curves of a run: its metrics.jsonl read, one metric picked, thinned and smoothed.

How a curve is drawn is known next door, in `curve_lines` (terminal) and `curve_plots` (matplotlib).
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.errors import FileError, UnknownNameError
from regard.messages import Language, Listed, say
from regard.views.labels import visible

METRICS = "metrics.jsonl"
VALIDATION = "valid_loss"
_SMOOTH = 40
"""A smoothed point is the mean of about one part in so many of the whole curve."""
_EXACT = ("lr", "tokens", "seconds")

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One metric of one run: `values` at `steps`, both float64, the steps rising."""

    run: str
    metric: str
    steps: np.ndarray
    values: np.ndarray

    @property
    def noisy(self) -> bool:
        """Whether single values say less than their mean: not of a schedule or a count, nor of a few points."""
        return self.metric not in _EXACT and len(self.values) >= 2 * _SMOOTH

    @property
    def smooth(self) -> np.ndarray:
        """Each value as the mean of its neighbourhood, where the values are noisy; else the values."""
        return running_mean(self.values, len(self.values) // _SMOOTH) if self.noisy else self.values


class Thinned(NamedTuple):
    """A curve in columns: the mean, lowest and highest of each; NaN where a column has no point."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read_metrics(run: Path) -> list[Line]:
    """The lines of a run's metrics.jsonl, each with its step.

    A last line that stops in the middle is left out: the run may be writing it. FileError for anything else.
    """
    if not run.is_dir():
        raise FileError("curves-no-run", path=str(run))
    path = run / METRICS
    if not os.path.lexists(path):
        raise FileError("curves-no-metrics", path=str(path))
    # Of a room that needs torch, one of the files that do not.
    from regard.training.metrics import MetricsFile

    lines = MetricsFile(path).read()
    if not lines:
        raise FileError("curves-empty", path=str(path))
    return lines


def metrics_in(lines: Sequence[Line]) -> list[str]:
    """The metrics that hold a number anywhere, in the order in which they appear.

    >>> metrics_in([{"step": 1, "loss": None, "lr": 0.1}, {"step": 2, "loss": 3.5, "skipped": False}])
    ['lr', 'loss']
    """
    found = (name for line in lines for name, value in line.items() if name != "step" and _is_number(value))
    return list(dict.fromkeys(found))


def curve(run: str, lines: Sequence[Line], metric: str) -> Curve:
    """One metric over the steps; steps without it are left out. UnknownNameError where no step has it."""
    points = [(line["step"], line[metric]) for line in lines if _is_number(line.get(metric))]
    if not points or metric == "step":
        raise UnknownNameError("curves-metric", asked=metric, run=run, metrics=Listed(metrics_in(lines)))
    steps, values = np.array(points, dtype=np.float64).T
    return Curve(run, metric, steps, values)


def curves_of(run: str, lines: Sequence[Line], metric: str | None = None) -> list[Curve]:
    """The metric that was asked for; otherwise the loss, and the validation loss where there is one."""
    drawn = [curve(run, lines, metric or "loss")]
    if metric is None and VALIDATION in metrics_in(lines):
        drawn.append(curve(run, lines, VALIDATION))
    return drawn


def run_names(runs: Sequence[Path]) -> list[str]:
    """What to call the runs: the names of their folders, or, where two are the same, the paths as they were given."""
    names = [run.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


# --- fewer points ----------------------------------------------------------------------------------------


def thin(steps: np.ndarray, values: np.ndarray, columns: int, span: tuple[float, float]) -> Thinned:
    """The points in so many columns between the first and the last step of `span`.

    >>> thin(np.arange(4.0), np.array([1.0, 3.0, 5.0, 5.0]), 2, (0, 3)).mean.tolist()
    [2.0, 5.0]
    """
    first, last = span
    places = (steps - first) / (last - first) * columns if last > first else np.zeros(len(steps))
    at = np.clip(places.astype(int), 0, columns - 1)
    counts = np.bincount(at, minlength=columns)
    with np.errstate(invalid="ignore"):  # 0 / 0: a column without a point is NaN
        mean = np.bincount(at, weights=values, minlength=columns) / counts
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    np.minimum.at(low, at, values)
    np.maximum.at(high, at, values)
    empty = counts == 0
    low[empty] = high[empty] = np.nan
    return Thinned(mean, low, high)


def running_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Each value as the mean of those up to `width` / 2 away on both sides.

    Near the beginning, where losses are steep, of fewer on both sides; near the end only fewer lie ahead.

    >>> running_mean(np.array([0.0, 3.0, 6.0, 3.0]), 2).tolist()
    [0.0, 3.0, 4.0, 4.5]
    """
    at = np.arange(len(values))
    before = np.minimum(at, width // 2)
    ahead = np.minimum(before, at[::-1])
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[at + ahead + 1] - sums[at - before]) / (before + ahead + 1)


# --- axes ------------------------------------------------------------------------------------------------


def value_range(curves: Sequence[Curve]) -> tuple[float, float]:
    """From the lowest to the highest value of the smoothed curves: one spike must not flatten all the rest."""
    low = min(float(one.smooth.min()) for one in curves)
    high = max(float(one.smooth.max()) for one in curves)
    room = abs(low) / 10 or 1.0  # a constant stands in the middle
    return (low, high) if high > low else (low - room, high + room)


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most so many round numbers from `low` to `high`.

    >>> ticks(0.0, 1000.0, 5), ticks(1.3, 3.1, 4)
    ([0.0, 500.0, 1000.0], [1.5, 2.0, 2.5, 3.0])
    """
    if not high > low:
        return [low]
    size = 10.0 ** math.floor(math.log10((high - low) / max(1, most)))
    for step in (size * factor for factor in (1, 2, 5, 10, 20, 50, 100)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [number * step for number in range(first, last + 1)]
    return [low]


# --- words and numbers -----------------------------------------------------------------------------------


def metric_name(metric: str, lang: Language) -> str:
    """What a metric is called; the file's own name where we have no word for it."""
    known = {"loss": "curves-loss", VALIDATION: "curves-valid-loss", "lr": "curves-lr", "norm": "curves-norm"}
    return say(known[metric], lang) if metric in known else visible(metric)


def number(value: float) -> str:
    """A value with four figures that count, whole where it is large.

    >>> [number(x) for x in (1.46973, 0.0003, 513000.0, 0.30000000000000004)]
    ['1.47', '0.0003', '513,000', '0.3']
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def loss_text(value: float, digits: int = 4) -> str:
    """A loss with so many digits behind the point; one that would lose most of them in its powers of ten.

    >>> loss_text(1.46973), loss_text(0.00001079), loss_text(0.0)
    ('1.4697', '1.1e-05', '0.0000')
    """
    return f"{value:.1e}" if 0 < abs(value) < 10.0 ** (1 - digits) else f"{value:.{digits}f}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300  # NaN is not
