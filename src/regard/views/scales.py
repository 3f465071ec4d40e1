"""Scales from weights to lightness levels, shared by the terminal, matplotlib and the page.

auto          square root, as most attention weights are small. If the first token receives a large share (a sink), or a
              few of many weights are far above the others, weights above a threshold are logarithmic: a sink does not
              darken the rest, and different weights still have different colours
linear, log   as named; log covers four powers of ten
renormalised  without the first token, the other weights of each row normalised to a sum of 1
hidden        without the first token, the other weights unchanged
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from regard.errors import ArgumentError
from regard.messages import Listed
from regard.trace.trace import ScaleName

if TYPE_CHECKING:
    from regard.views.picture import Picture

SINK = 0.3
"""A first key with more than this share of all attention is reported as a sink,"""
TIMES_EVEN = 1.5
"""if it is also more than this multiple of its share in a head that attends evenly, which is large in short texts."""
NEGLIGIBLE = 0.1
"""Weights below this multiple of an even share are negligible if there are larger ones."""
DECADES = 4
MANY = 400
"""From this number of cells on, the largest 1 % are above the threshold."""
LOG_SHARE = 0.12
"""The share of the colours above the threshold: this much, and as much again for each power of ten."""
MOST_LOG_SHARE = 0.5
CEILINGS = (1.0, 3.0)
"""Ceilings are these times powers of ten, so that heads drawn separately are mostly comparable."""
TICKS = (1.0, 2.0, 5.0)
"""Ticks of a colour bar are these times powers of ten."""
_APART = 0.08
"""The minimum distance between ticks of a colour bar, in levels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The weight of the last colour, and how smaller weights map to levels."""

    ceiling: float
    clipped: bool = False
    """Whether weights above the ceiling share its colour."""
    name: ScaleName = "auto"
    log_threshold: float | None = None
    """The weight above which levels are logarithmic; None for the square root throughout."""

    @classmethod
    def of(cls, pictures: "Iterable[Picture]", ceiling: float | None = None) -> "Scale":
        """The scale of the pictures: up to the largest weight, rounded up, or up to the given ceiling."""
        drawn = list(pictures)
        name = drawn[0].scale if drawn else "auto"
        seen = _weights(one.cells for one in drawn)
        if not seen.size:
            return cls(ceiling or 1.0, name=name)
        highest = float(seen.max())
        top = rounded_up(highest) if ceiling is None else ceiling
        log_threshold = None
        if name not in ("linear", "log"):
            others = _highest(_beside_sinks(drawn) if name == "auto" else seen)
            if others >= NEGLIGIBLE / max(one.cells.shape[1] for one in drawn):
                has_threshold = others < min(highest, top) and (others / top) ** 0.5 < threshold_level(others, top)
                log_threshold = others if has_threshold else None
        return cls(top, top < highest, name, log_threshold)

    @property
    def threshold_level(self) -> float:
        """The level of the weight at the threshold; 1 without one."""
        return 1.0 if self.log_threshold is None else threshold_level(self.log_threshold, self.ceiling)

    def level(self, value: Any) -> Any:
        """The level of a weight, or of an array of weights, from 0 to 1."""
        share = np.clip(value / self.ceiling, 0.0, 1.0)
        if self.name == "linear":
            return share
        if self.name == "log":
            return np.clip(1 + np.log10(np.maximum(share, 1e-30)) / DECADES, 0.0, 1.0)
        if self.log_threshold is None:
            return np.sqrt(share)
        at, low = self.log_threshold / self.ceiling, self.threshold_level
        behind = low + (1 - low) * (1 - np.log(np.maximum(share, at)) / np.log(at))
        return np.where(share <= at, low * np.sqrt(share / at), behind)[()]

    def weight(self, level: float) -> float:
        """The weight of a level: the inverse of `level`."""
        if self.name == "log":
            return float(self.ceiling * 10 ** (DECADES * (level - 1)))
        if self.name == "linear":
            return self.ceiling * level
        low = self.threshold_level
        if self.log_threshold is None or level <= low:
            return (self.ceiling if self.log_threshold is None else self.log_threshold) * (level / low) ** 2
        return float(self.log_threshold * (self.ceiling / self.log_threshold) ** ((level - low) / (1 - low)))

    def swatches(self) -> list[float]:
        """The levels shown in a short legend; one more if there is a threshold."""
        return [0, 0.25, 0.5, 0.75, *([] if self.log_threshold is None else [0.875]), 1]

    def ticks(self) -> list[float]:
        """Round weights from 0 to the ceiling with distinguishable colours.

        >>> Scale(1.0).ticks()
        [0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
        """
        found = [self.ceiling]
        power = math.floor(math.log10(self.ceiling))
        steps = (float(f"{times:g}e{power - down}") for down in range(16) for times in reversed(TICKS))
        for weight in steps:
            if self.level(weight) < _APART:
                break
            if weight < self.ceiling and self.level(found[-1]) - self.level(weight) >= _APART:
                found.append(weight)
        return [0.0, *reversed(found)]


def threshold_level(log_threshold: float, ceiling: float) -> float:
    """The level at the threshold: higher if the range above it is smaller."""
    return 1 - min(MOST_LOG_SHARE, LOG_SHARE * (1 + math.log10(ceiling / log_threshold)))


def rounded_up(weight: float) -> float:
    """The weight rounded up to 1 or 3 times a power of ten; rounding errors are ignored.

    >>> rounded_up(0.93), rounded_up(0.17), rounded_up(0.012), rounded_up(1.0000001), rounded_up(0.3)
    (1.0, 0.3, 0.03, 1.0, 0.3)
    """
    power = math.floor(math.log10(weight))
    steps = (float(f"{times:g}e{power + up}") for up in (0, 1) for times in CEILINGS)
    return next(step for step in steps if weight <= step * (1 + 1e-6))


def chosen_scale(scale: Any) -> ScaleName:
    """The requested scale; None means auto. Raises ArgumentError with the choices for any other value."""
    if scale is None:
        return "auto"
    if scale not in get_args(ScaleName):
        raise ArgumentError("option-unknown", option="scale", asked=scale, choices=Listed(get_args(ScaleName)))
    return scale


def sink_bar(pictures: "Iterable[Picture]") -> float:
    """The share above which the first key counts as a sink in each of the pictures."""
    return max([SINK, *(TIMES_EVEN * one.even_share for one in pictures)])


def is_sink(share: float | None, bar: float) -> bool:
    """Whether the first key receives a large share."""
    return share is not None and share > bar


def _beside_sinks(pictures: "list[Picture]") -> np.ndarray:
    """The weights without the columns of sinks."""
    bar = sink_bar(pictures)
    return _weights(
        np.delete(one.cells, one.first_column, axis=1) if is_sink(one.first, bar) else one.cells for one in pictures
    )


def _highest(weights: np.ndarray) -> float:
    """The largest weight; of many weights the 99 % quantile; 0 if there are none."""
    if weights.size >= MANY:
        return float(np.quantile(weights, 0.99))
    return float(weights.max(initial=0.0))


def _weights(pictures: Iterable[np.ndarray]) -> np.ndarray:
    """The weights that get a colour of the scale: neither masked nor NaN."""
    return np.concatenate([np.zeros(0), *(cells[np.isfinite(cells) & (cells > 0)] for cells in pictures)])
