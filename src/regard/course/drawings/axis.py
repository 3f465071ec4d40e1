"""The axes of curves: their range, their ticks, and the place of a value, linear or in powers of ten."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.course.drawings.blocks import Curves
from regard.views.curves import ticks

MOST_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with a tick at each of `values`."""

    low: float
    high: float
    log: bool
    values: tuple[float, ...]

    def place(self, value: float) -> float:
        """The place of a value as a share of the axis."""
        low, high, at = (math.log10(x) if self.log else x for x in (self.low, self.high, value))
        return (at - low) / (high - low) if high > low else 0.5


def axis_of(curves: Curves, name: Literal["x", "y"]) -> Axis:
    """The axis that fits all points. A linear y axis of values above 0 that come near it begins at 0."""
    log = curves.log_x if name == "x" else curves.log_y
    numbers = curves.x if name == "x" else np.concatenate(list(curves.series.values()))
    known = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))].astype(float)
    low, high = float(known.min()), float(known.max())
    if log:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        step = math.ceil(max(1, last - first) / MOST_TICKS)
        if name == "y":
            low, high = 10.0**first, 10.0 ** max(last, first + 1)
        return Axis(low, high, True, tuple(10.0**at for at in range(first, last + 1, step) if low <= 10.0**at <= high))
    if name == "y":
        low = 0.0 if 0 < low < 0.4 * high else low
        space = 0.05 * (high - low) or 1.0
        high, low = high + space, low if low == 0 else low - space
    return Axis(low, high, False, tuple(ticks(low, high, MOST_TICKS)))


def tick_text(value: float) -> str:
    """A short number: powers of ten beyond four digits, and k for thousands.

    >>> [tick_text(x) for x in (0.0, 0.25, 12.0, 4096.0, 20000.0, 1e6, 1e-5)]
    ['0', '0.25', '12', '4,096', '20k', '1M', '1e-5']
    """
    size = abs(value)
    if size == 0 or 0.001 <= size < 10_000:
        return f"{value:,.4g}" if size < 1000 else f"{value:,.0f}"
    if size >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if size >= 1 else f"{value:.0e}".replace("e-0", "e-")
