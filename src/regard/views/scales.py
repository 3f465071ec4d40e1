"""From weights to lightness: which weight gets the last colour, and how the others rise towards it.

auto          by the square root, as small weights are the most of any attention. Where the first token takes a large
              share of everything (a sink), or a few weights of many are far above the others, the colours up to a
              bend are for the others, and those behind it, by the logarithm, for what is larger: so a sink does not
              swallow the picture, and yet no two weights share a colour
linear, log   as their names say; log over four powers of ten
renormalised  without the first token, the other weights of each row brought to a sum of 1
hidden        without the first token, the other weights as they are

The terminal, matplotlib and the page all draw by the Scale that is made here.
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
"""A first key that receives more than this share of all attention is pointed out,"""
TIMES_EVEN = 1.5
"""and more than so many times what it receives from a head that looks evenly: of a short text that is much already."""
NEGLIGIBLE = 0.1
"""Weights below so many even shares of a row are next to nothing, where there are larger ones."""
DECADES = 4
MANY = 400
"""From so many cells on, the strongest hundredth of them stand behind the bend."""
BEHIND_BEND = 0.12
"""The share of the colours for weights behind the bend: so much, and as much again for each power of ten."""
MOST_BEHIND = 0.5
CEILINGS = (1.0, 3.0)
"""Ceilings are these times powers of ten: so heads that are drawn one by one can mostly be compared."""
TICKS = (1.0, 2.0, 5.0)
"""Weights that are named beside a bar of colours are these times powers of ten."""
_APART = 0.08
"""How far apart weights stand that are named beside a bar of colours, in levels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The weight that gets the last colour, and how the others are spread below it."""

    ceiling: float
    clipped: bool = False
    """Whether larger weights than the ceiling share its colour."""
    name: ScaleName = "auto"
    bend: float | None = None
    """The weight above which colours go by the logarithm; None where they go by the square root throughout."""

    @classmethod
    def of(cls, pictures: "Iterable[Picture]", ceiling: float | None = None) -> "Scale":
        """Made for what is drawn: up to the largest weight, rounded up, or up to the ceiling that is told."""
        drawn = list(pictures)
        name = drawn[0].scale if drawn else "auto"
        seen = _weights(one.cells for one in drawn)
        if not seen.size:
            return cls(ceiling or 1.0, name=name)
        highest = float(seen.max())
        top = rounded_up(highest) if ceiling is None else ceiling
        bend = None
        if name not in ("linear", "log"):
            others = _highest(_beside_sinks(drawn) if name == "auto" else seen)
            if others >= NEGLIGIBLE / max(one.cells.shape[1] for one in drawn):
                is_bent = others < min(highest, top) and (others / top) ** 0.5 < bend_level(others, top)
                bend = others if is_bent else None
        return cls(top, top < highest, name, bend)

    @property
    def bend_level(self) -> float:
        """How light the weight at the bend is; 1 without one."""
        return 1.0 if self.bend is None else bend_level(self.bend, self.ceiling)

    def level(self, value: Any) -> Any:
        """From 0 to 1, how light a weight is; for one weight or an array of them."""
        share = np.clip(value / self.ceiling, 0.0, 1.0)
        if self.name == "linear":
            return share
        if self.name == "log":
            return np.clip(1 + np.log10(np.maximum(share, 1e-30)) / DECADES, 0.0, 1.0)
        if self.bend is None:
            return np.sqrt(share)
        at, low = self.bend / self.ceiling, self.bend_level
        behind = low + (1 - low) * (1 - np.log(np.maximum(share, at)) / np.log(at))
        return np.where(share <= at, low * np.sqrt(share / at), behind)[()]

    def weight(self, level: float) -> float:
        """The weight that is so light: `level`, the other way round."""
        if self.name == "log":
            return float(self.ceiling * 10 ** (DECADES * (level - 1)))
        if self.name == "linear":
            return self.ceiling * level
        low = self.bend_level
        if self.bend is None or level <= low:
            return (self.ceiling if self.bend is None else self.bend) * (level / low) ** 2
        return float(self.bend * (self.ceiling / self.bend) ** ((level - low) / (1 - low)))

    def swatches(self) -> list[float]:
        """Levels that a short legend names: one more where the colours behind the bend hold much."""
        return [0, 0.25, 0.5, 0.75, *([] if self.bend is None else [0.875]), 1]

    def ticks(self) -> list[float]:
        """Round weights from 0 to the ceiling, whose colours can be told apart.

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


def bend_level(bend: float, ceiling: float) -> float:
    """How light the weight at the bend is: the more, the less there is above it."""
    return 1 - min(MOST_BEHIND, BEHIND_BEND * (1 + math.log10(ceiling / bend)))


def rounded_up(weight: float) -> float:
    """The next of 1 and 3 times a power of ten; what is above by rounding only counts as below.

    >>> rounded_up(0.93), rounded_up(0.17), rounded_up(0.012), rounded_up(1.0000001), rounded_up(0.3)
    (1.0, 0.3, 0.03, 1.0, 0.3)
    """
    power = math.floor(math.log10(weight))
    steps = (float(f"{times:g}e{power + up}") for up in (0, 1) for times in CEILINGS)
    return next(step for step in steps if weight <= step * (1 + 1e-6))


def chosen_scale(scale: Any) -> ScaleName:
    """The scale asked for; None means auto. ArgumentError with the choices for any other."""
    if scale is None:
        return "auto"
    if scale not in get_args(ScaleName):
        raise ArgumentError("option-unknown", option="scale", asked=scale, choices=Listed(get_args(ScaleName)))
    return scale


def sink_bar(pictures: "Iterable[Picture]") -> float:
    """The share above which a first key stands out in each of the pictures."""
    return max([SINK, *(TIMES_EVEN * one.even for one in pictures)])


def is_sink(share: float | None, bar: float) -> bool:
    """Whether the first key receives a lot."""
    return share is not None and share > bar


def _beside_sinks(pictures: "list[Picture]") -> np.ndarray:
    """The weights of all keys that are no sinks."""
    bar = sink_bar(pictures)
    return _weights(
        np.delete(one.cells, one.first_column, axis=1) if is_sink(one.first, bar) else one.cells for one in pictures
    )


def _highest(weights: np.ndarray) -> float:
    """The largest weight, or of many the one that 99 % stay below; 0 where there is none."""
    if weights.size >= MANY:
        return float(np.quantile(weights, 0.99))
    return float(weights.max(initial=0.0))


def _weights(pictures: Iterable[np.ndarray]) -> np.ndarray:
    """The weights that get a colour: hidden ones do not, and NaN gets its own."""
    return np.concatenate([np.zeros(0), *(cells[np.isfinite(cells) & (cells > 0)] for cells in pictures)])
