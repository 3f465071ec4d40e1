"""What of each attention may be kept within a budget of memory: asked before anything is computed.

Every module of the model's gets the same share, so that the last layers are not the ones that come away empty. Exact
rectangles go first, then the fineness of maps, then the strongest keys; what is one number a query stays.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from regard.arrays import is_whole
from regard.axes import bin_count, distance_count
from regard.capture.captured import Caught, CaughtWeights
from regard.errors import ArgumentError, TooLargeError
from regard.masks.rules import Dense
from regard.memory import available_bytes, free_beside, spell
from regard.messages import say
from regard.records import See

SHARE = 4
"""A watch that is told nothing takes up to one part in so many of the memory that is free."""

COARSEST = 16
"""Bins of a map, below which it shows no more than noise."""

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_SPELT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B\s*", re.I)

FourSizes = tuple[int, int, int, int]


class Keeping:
    """The budget of one watch. `modules` are those that may compute attention."""

    def __init__(self, budget: Any, see: See, modules: Iterable[nn.Module] = ()) -> None:
        self._budget = None if budget is None else in_bytes(budget)
        self._decimal = isinstance(budget, str) and "i" not in budget.lower()
        self._left = self._budget or 0
        self._see = see
        self._alike = Counter(type(module) for module in modules)
        self._calls: Counter[type] = Counter()
        self._coarsest = see.map or 0
        self._wanted = 0
        self._lost: Counter[str] = Counter()

    def see(self, caught: Caught | CaughtWeights, name: str, module: nn.Module, sizes: FourSizes) -> See:
        """What may be kept of this call; TooLargeError where not even a number for each query may."""
        if self._budget is None:  # a Record lies where what it is made of does
            self._budget = self._left = in_bytes(None, caught.q if isinstance(caught, Caught) else caught.weights)
        alike = max(1, self._alike[type(module)])
        share = self._left // (alike - self._calls[type(module)] % alike)
        self._calls[type(module)] += 1
        exact = _bytes_of_exact(caught) if self._see.qk else 0
        need = bytes_of(self._see, sizes) + exact
        self._wanted += need
        if need <= share:
            self._left -= need
            return self._see
        for see in _less_and_less(self._see):
            need = bytes_of(see, sizes) + exact * see.qk
            if need <= share:
                self._left -= need
                self._note(see)
                return see
        raise TooLargeError(
            "watch-budget-small", name=name, budget=self._spelt(self._budget), need=self._spelt(alike * need)
        )

    def affords(self, count: int) -> bool:
        """Whether so many bytes more, which nobody asked for, may be kept; if so they are counted."""
        fits = count <= self._left // 2
        self._left -= count * fits
        return fits

    def _note(self, see: See) -> None:
        self._lost["qk"] += self._see.qk and not see.qk
        self._lost["top"] += self._see.top != see.top
        if see.map is None:
            self._lost["no-map"] += self._see.map is not None
        elif see.map != self._see.map:
            self._lost["map"] += 1
            self._coarsest = min(self._coarsest, see.map)

    def left_out(self) -> str | None:
        """What did not fit, in one sentence; None where everything did."""
        parts = [
            say(f"watch-left-out-{what}", count=self._lost[what], bins=self._coarsest, asked=self._see.map)
            for what in ("qk", "map", "no-map", "top")
            if self._lost[what]
        ]
        if not parts:
            return None
        assert self._budget is not None
        budget, need = self._spelt(self._budget), self._spelt(self._wanted)
        return say("watch-left-out", budget=budget, parts=say("watch-and").join(parts), need=need)

    def _spelt(self, count: int) -> str:
        """In the units that the budget was given in."""
        return spell(count, self._decimal)


def in_bytes(budget: Any, beside: Tensor | None = None) -> int:
    """A budget as people write it, in bytes; None is a share of what is free where the tensor `beside` is.

    >>> in_bytes("2 GB"), in_bytes("1.5MiB"), in_bytes(4096)
    (2000000000, 1572864, 4096)
    """
    if budget is None:
        free = free_beside(beside)
        free = available_bytes() if free is None else free
        return 2**62 if free is None else free // SHARE
    if is_whole(budget) and budget > 0:
        return int(budget)
    spelt = _SPELT.fullmatch(budget) if isinstance(budget, str) else None
    if spelt is None or not float(spelt[1]):
        raise ArgumentError("watch-budget", value=budget)
    unit = _UNITS[spelt[2].upper()]
    return int(float(spelt[1]) * (2 ** (10 * list(_UNITS.values()).index(unit)) if spelt[3] else unit))


def bytes_of(see: See, sizes: FourSizes) -> int:
    """What the statistics of one call take, in float32: B H T S."""
    B, H, T, S = sizes
    numbers = T * (see.lse + see.entropy) + S * (see.received + see.values) + see.sink
    if see.map:
        numbers += bin_count(T, see.map) * bin_count(S, see.map)
    if see.top:
        numbers += 3 * T * min(see.top, S)  # indices are twice as long
    if see.distance:
        numbers += distance_count(T, S)
    return 4 * B * H * numbers


def _bytes_of_exact(caught: Caught | CaughtWeights) -> int:
    """What must be kept so that any rectangle of weights can be had."""
    if isinstance(caught, CaughtWeights):
        return _bytes(caught.weights)
    rule = None if caught.mask is None else caught.mask.rule
    parts = (caught.q, caught.k, caught.bias, rule.allowed if isinstance(rule, Dense) else None)
    return sum(_bytes(part) for part in parts if part is not None)


def _bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()


def _less_and_less(see: See) -> Iterator[See]:
    """Less than what is asked for, step by step; at last what is one number a query."""
    if see.qk:
        see = replace(see, qk=False)
        yield see
    while see.map is not None and see.map > COARSEST:
        see = replace(see, map=max(COARSEST, see.map // 2))
        yield see
    if see.top is not None:
        see = replace(see, top=None)
        yield see
    if see.map is not None:
        yield replace(see, map=None)
