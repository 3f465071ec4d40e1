"""Rows of weights that do not sum to 1, each with the reason: a check of what models make themselves.

What a fused kernel computes sums to 1 by its definition. A softmax that a model makes may be cut, masked or mixed
before it meets the values; what was done to it names the reason. Numbers stay on their device until the block is over,
so that a GPU need not wait for them.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from regard.capture.caught import CaughtWeights
from regard.records import Rest
from regard.trace import Trace

EXACT, COARSE = 1e-3, 3e-2
"""How far from 1 a sum may be by rounding: of float32, and of float16 and bfloat16."""


class _Sum(NamedTuple):
    place: int  # of the record in its Trace
    name: str
    deviation: Tensor  # in units of what rounding may do
    reason: Rest


class RowSums:
    """Is told every attention that a model made by hand."""

    def __init__(self) -> None:
        self._sums: list[_Sum] = []

    def add(self, place: int, name: str, caught: CaughtWeights) -> None:
        """The weights of the record that the Trace has at `place`."""
        weights = caught.weights
        coarse = weights.dtype in (torch.float16, torch.bfloat16)
        if weights.numel():
            sums = weights.detach().sum(-1, dtype=torch.float32)
            deviation = torch.where(sums == 0, 0.0, (sums - 1).abs()).amax() / (COARSE if coarse else EXACT)
            reason: Rest = caught.rest or ("" if caught.sink is None else "sink")
            self._sums.append(_Sum(place, name, deviation, reason))

    def settle(self, trace: Trace) -> list[str]:
        """Give the records their reasons; the modules of which none is known."""
        unknown: dict[str, None] = {}
        for one, is_far in zip(self._sums, _far([one.deviation for one in self._sums]), strict=True):
            if is_far:
                trace.complete(one.place, {"rest": one.reason or "unknown"})
                if not one.reason:
                    unknown.setdefault(one.name)
        self._sums.clear()
        return list(unknown)


def _far(deviations: list[Tensor]) -> Iterable[bool]:
    """Which of them are beyond rounding: read once for all that lie on one device."""
    if len({one.device for one in deviations}) > 1:
        return [not one.item() <= 1 for one in deviations]
    return [not one <= 1 for one in torch.stack(deviations).tolist()] if deviations else []
