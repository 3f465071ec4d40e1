"""Curves of a training run: read metrics.jsonl, select a metric, bin and smooth it.

Drawn by `curve_drawing`.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.errors import FileError, UnknownNameError
from regard.messages import Language, Listed, say
from regard.views.labels import printable_label

METRICS = "metrics.jsonl"
VALIDATION = "valid_loss"
_SMOOTH = 40
"""A smoothed point averages about 1 / `_SMOOTH` of the curve."""
_EXACT = ("lr", "tokens", "seconds")

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One metric of one run: `values` at `steps`, both float64, steps ascending."""

    run: str
    metric: str
    steps: np.ndarray
    values: np.ndarray

    @property
    def noisy(self) -> bool:
        """Whether the values are noisy enough to smooth. Schedules, counts and short curves are not."""
        return self.metric not in _EXACT and len(self.values) >= 2 * _SMOOTH

    @property
    def smooth(self) -> np.ndarray:
        """The running mean of noisy values, else the values."""
        return running_mean(self.values, len(self.values) // _SMOOTH) if self.noisy else self.values


class Binned(NamedTuple):
    """A curve in columns: the mean, minimum and maximum of each; NaN for a column without a point."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read_metrics(run: Path) -> list[Line]:
    """The lines of a run's metrics.jsonl, each with its step.

    Skips an incomplete last line: the run may still be writing it. Raises FileError for anything else.
    """
    if not run.is_dir():
        raise FileError("curves-no-run", path=str(run))
    path = run / METRICS
    if not os.path.lexists(path):
        raise FileError("curves-no-metrics", path=str(path))
    # `training` needs torch, but this module of it does not.
    from regard.training.metrics import MetricsFile

    lines = MetricsFile(path).read()
    if not lines:
        raise FileError("curves-empty", path=str(path))
    return lines


def metrics_in(lines: Sequence[Line]) -> list[str]:
    """The metrics with at least one number, in order of appearance.

    >>> metrics_in([{"step": 1, "loss": None, "lr": 0.1}, {"step": 2, "loss": 3.5, "skipped": False}])
    ['lr', 'loss']
    """
    found = (name for line in lines for name, value in line.items() if name != "step" and _is_number(value))
    return list(dict.fromkeys(found))


def curve(run: str, lines: Sequence[Line], metric: str) -> Curve:
    """One metric over the steps; steps without it are skipped. Raises UnknownNameError if no step has it."""
    points = [(line["step"], line[metric]) for line in lines if _is_number(line.get(metric))]
    if not points or metric == "step":
        raise UnknownNameError("curves-metric", asked=metric, run=run, metrics=Listed.few(metrics_in(lines), 24))
    steps, values = np.array(points, dtype=np.float64).T
    return Curve(run, metric, steps, values)


def curves_of(run: str, lines: Sequence[Line], metric: str | None = None) -> list[Curve]:
    """The requested metric, or all that a pattern such as attention/*/entropy matches; * stops at a slash.

    By default the loss, and the validation loss if there is one.
    """
    if metric is not None and "*" in metric:
        found = [name for name in metrics_in(lines) if _matches(name, metric)]
        return [curve(run, lines, name) for name in found or [metric]]
    drawn = [curve(run, lines, metric or "loss")]
    if metric is None and VALIDATION in metrics_in(lines):
        drawn.append(curve(run, lines, VALIDATION))
    return drawn


def _matches(name: str, pattern: str) -> bool:
    """Whether the parts of a name between slashes match those of a pattern."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def run_names(runs: Sequence[Path]) -> list[str]:
    """Display names of the runs: their folder names, or the given paths if two names are equal."""
    names = [run.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


# --- binning ---------------------------------------------------------------------------------------------


def bin_points(steps: np.ndarray, values: np.ndarray, columns: int, span: tuple[float, float]) -> Binned:
    """The points binned into `columns` columns over the steps of `span`.

    >>> bin_points(np.arange(4.0), np.array([1.0, 3.0, 5.0, 5.0]), 2, (0, 3)).mean.tolist()
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
    return Binned(mean, low, high)


def running_mean(values: np.ndarray, width: int) -> np.ndarray:
    """The running mean over `width` / 2 values on each side.

    Near the beginning, where losses are steep, both sides shrink; near the end only the right side does.

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
    """The minimum and maximum of the smoothed curves. A spike does not flatten the rest."""
    low = min(float(one.smooth.min()) for one in curves)
    high = max(float(one.smooth.max()) for one in curves)
    margin = abs(low) / 10 or 1.0  # a constant is drawn in the middle
    return (low, high) if high > low else (low - margin, high + margin)


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round numbers from `low` to `high`.

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
    """The display name of a metric; its name in the file if there is no translation."""
    known = {"loss": "curves-loss", VALIDATION: "curves-valid-loss", "lr": "curves-lr", "norm": "curves-norm"}
    return say(known[metric], lang) if metric in known else printable_label(metric)


def number(value: float) -> str:
    """A value with four significant digits, or without decimals if it is large.

    >>> [number(x) for x in (1.46973, 0.0003, 513000.0, 0.30000000000000004)]
    ['1.47', '0.0003', '513,000', '0.3']
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def loss_text(value: float, digits: int = 4) -> str:
    """A loss with `digits` decimals; in scientific notation if it is too small for them.

    >>> loss_text(1.46973), loss_text(0.00001079), loss_text(0.0)
    ('1.4697', '1.1e-05', '0.0000')
    """
    return f"{value:.1e}" if 0 < abs(value) < 10.0 ** (1 - digits) else f"{value:.{digits}f}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300  # excludes NaN
