"""From weights to lightness: which weight gets the last colour, and how the others rise towards it.

auto          by the square root, as small weights are the most of any attention; where the first token takes a
              large share of everything (a sink), the scale is made for the others, and it may exceed it; unless
              these have next to nothing, which no colour should make look like much
linear, log   as their names say; log over four powers of ten
renormalised  without the first token, the other weights of each row brought to a sum of 1
hidden        without the first token, the other weights as they are
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from regard.errors import ArgumentError
from regard.trace.trace import ScaleName
from regard.words import Listed

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
"""From so many cells on, the strongest hundredth of them may share the last colour."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The weight that gets the last colour, and how the others are spread below it."""

    ceiling: float
    clipped: bool = False
    """Whether larger weights than the ceiling share its colour."""
    name: ScaleName = "auto"

    @classmethod
    def of(cls, pictures: "Iterable[Picture]", ceiling: float | None = None) -> "Scale":
        """Made for what is drawn: the largest weight, or of many the one that 99 % stay below; or as told."""
        drawn = list(pictures)
        name = drawn[0].scale if drawn else "auto"
        seen = _weights(one.cells for one in drawn)
        if not seen.size:
            return cls(ceiling or 1.0, name=name)
        if ceiling is not None:
            return cls(ceiling, bool(ceiling < seen.max()), name)
        ceiling = _highest(_beside_sinks(drawn) if name == "auto" else seen, name)
        if ceiling < NEGLIGIBLE / max(one.cells.shape[1] for one in drawn):
            ceiling = float(seen.max())
        # As shown: a ceiling that reads the same as the highest clips nothing that a reader could tell.
        return cls(ceiling, f"{ceiling:.2g}" != f"{seen.max():.2g}", name)

    def level(self, value: Any) -> Any:
        """From 0 to 1, how light a weight is; for one weight or an array of them."""
        share = np.clip(value / self.ceiling, 0.0, 1.0)
        if self.name == "linear":
            return share
        if self.name == "log":
            return np.clip(1 + np.log10(np.maximum(share, 1e-30)) / DECADES, 0.0, 1.0)
        return np.sqrt(share)

    def weight(self, level: float) -> float:
        """The weight that is so light: `level`, the other way round."""
        if self.name == "log":
            return float(self.ceiling * 10 ** (DECADES * (level - 1)))
        return self.ceiling * (level if self.name == "linear" else level**2)


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


def _highest(weights: np.ndarray, name: ScaleName) -> float:
    """The largest weight, or of many the one that 99 % stay below; 0 where there is none."""
    if weights.size >= MANY and name != "linear":
        return float(np.quantile(weights, 0.99))
    return float(weights.max(initial=0.0))


def _weights(pictures: Iterable[np.ndarray]) -> np.ndarray:
    """The weights that get a colour: hidden ones do not, and NaN gets its own."""
    return np.concatenate([np.zeros(0), *(cells[np.isfinite(cells) & (cells > 0)] for cells in pictures)])
