"""What is kept of each attention within a memory budget: decided before anything is computed.

Every module of the same type gets the same share, so that the last layers are not left empty. Exact weights are left
out first, then outputs, then maps become coarser, then the top keys are left out; statistics of one number per query
stay.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from regard.arrays import is_integer
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.errors import ArgumentError, TooLargeError
from regard.masks.rules import Dense
from regard.memory import available_bytes, format_bytes, free_gpu_bytes
from regard.messages import say
from regard.records import See
from regard.statistics_table import bytes_of

FREE_MEMORY_DIVISOR = 4
"""Without a budget, a watch uses up to free memory divided by this."""

UNCHECKED_BYTES = 2**27
"""Without a budget, bytes that a watch uses before it asks how much memory is free: asking takes longer than a call."""

COARSEST = 16
"""The smallest number of map bins that still shows more than noise."""

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BUDGET_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B\s*", re.I)

FourSizes = tuple[int, int, int, int]


class Budget:
    """The budget of one watch. `types` counts, by class, the modules that may compute attention."""

    def __init__(self, budget: Any, see: See, types: Callable[[], Counter[type]] = Counter) -> None:
        self._budget = None if budget is None else in_bytes(budget)
        self._decimal = isinstance(budget, str) and "i" not in budget.lower()
        self._left = self._budget or 0
        self._see = see
        self._types = types
        self._calls: Counter[type] = Counter()
        self._coarsest = see.map or 0
        self._wanted = 0
        self._reduced: Counter[str] = Counter()

    @cached_property
    def _per_type(self) -> Counter[type]:
        return self._types()

    def fit(self, captured: CapturedCall | CapturedWeights, name: str, module: nn.Module, sizes: FourSizes) -> See:
        """What to keep of this call; TooLargeError if not even one number per query fits."""
        exact = _bytes_of_exact(captured, self._see.v) if self._see.qk else 0
        Ev = 0 if captured.v is None else captured.v.shape[-1]
        need = bytes_of(self._see, sizes, Ev) + exact
        if self._budget is None and self._wanted + need <= UNCHECKED_BYTES:
            self._wanted += need
            return self._see
        if self._budget is None:  # a Record is on the same device as its source
            self._ask(captured.q if isinstance(captured, CapturedCall) else captured.weights)
        assert self._budget is not None
        modules_of_type = self.modules_like(module)
        share = self._left // (modules_of_type - self._calls[type(module)] % modules_of_type)
        self._calls[type(module)] += 1
        self._wanted += need
        if need <= share:
            self._left -= need
            return self._see
        for see in _reductions(self._see):
            need = bytes_of(see, sizes, Ev) + exact * see.qk
            if need <= share:
                self._left -= need
                self._count_reductions(see)
                return see
        raise TooLargeError(
            "watch-budget-small",
            name=name,
            budget=self._format(self._budget),
            need=self._format(modules_of_type * need),
        )

    def fits_again(self, need: int) -> bool:
        """Whether a Record of this many bytes, like one that was just counted, fits; False if `fit` must decide."""
        return self._budget is None and self._wanted + need <= UNCHECKED_BYTES

    def count(self, need: int) -> None:
        """Count a Record that `fits_again`."""
        self._wanted += need

    @property
    def left(self) -> int | None:
        """The bytes that are not used yet; None without a budget."""
        return None if self._budget is None else self._left

    def modules_like(self, module: nn.Module) -> int:
        """The number of modules of the same type that may compute attention."""
        return max(1, self._per_type[type(module)])

    def _ask(self, beside: Tensor | None) -> None:
        self._budget = self._left = in_bytes(None, beside)

    def reserve(self, count: int, beside: Tensor | None = None) -> bool:
        """Reserve `count` more bytes for what was not requested, beside a tensor. Returns whether they fit."""
        if self._budget is None:
            self._ask(beside)
        fits = count <= self._left // 2
        self._left -= count * fits
        return fits

    def _count_reductions(self, see: See) -> None:
        self._reduced["qk"] += self._see.qk and not see.qk
        self._reduced["outputs"] += self._see.outputs and not see.outputs
        self._reduced["top"] += self._see.top != see.top
        if see.map is None:
            self._reduced["no-map"] += self._see.map is not None
        elif see.map != self._see.map:
            self._reduced["map"] += 1
            self._coarsest = min(self._coarsest, see.map)

    def warning(self) -> str | None:
        """A message about what did not fit; None if everything did."""
        parts = [
            say(f"watch-left-out-{what}", count=self._reduced[what], bins=self._coarsest, asked=self._see.map)
            for what in ("qk", "outputs", "map", "no-map", "top")
            if self._reduced[what]
        ]
        if not parts:
            return None
        assert self._budget is not None
        budget, need = self._format(self._budget), self._format(self._wanted)
        return say("watch-left-out", budget=budget, parts=say("watch-and").join(parts), need=need)

    def _format(self, count: int) -> str:
        """In the units of the given budget."""
        return format_bytes(count, self._decimal)


def in_bytes(budget: Any, beside: Tensor | None = None) -> int:
    """A budget in bytes; None is a share of the free memory on the device of the tensor `beside`.

    >>> in_bytes("2 GB"), in_bytes("1.5MiB"), in_bytes(4096)
    (2000000000, 1572864, 4096)
    """
    if budget is None:
        free = free_gpu_bytes(beside)
        free = available_bytes() if free is None else free
        return 2**62 if free is None else free // FREE_MEMORY_DIVISOR
    if is_integer(budget) and budget > 0:
        return int(budget)
    match = _BUDGET_TEXT.fullmatch(budget) if isinstance(budget, str) else None
    if match is None or not float(match[1]):
        raise ArgumentError("watch-budget", value=budget)
    unit = _UNITS[match[2].upper()]
    return int(float(match[1]) * (2 ** (10 * list(_UNITS.values()).index(unit)) if match[3] else unit))


def _bytes_of_exact(captured: CapturedCall | CapturedWeights, v: bool) -> int:
    """The bytes that must be kept to compute exact weights later, and with `v` the output."""
    if isinstance(captured, CapturedWeights):
        return _bytes(captured.weights)
    rule = None if captured.mask is None else captured.mask.rule
    allowed = rule.allowed if isinstance(rule, Dense) else None
    parts = (captured.q, captured.k, captured.bias, allowed, captured.v if v else None)
    return sum(_bytes(part) for part in parts if part is not None)


def _bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()


def _reductions(see: See) -> Iterator[See]:
    """Smaller and smaller versions of a request, down to one number per query."""
    if see.qk:
        see = replace(see, qk=False, v=False)
        yield see
    if see.outputs:
        see = replace(see, outputs=False)
        yield see
    while see.map is not None and see.map > COARSEST:
        see = replace(see, map=max(COARSEST, see.map // 2))
        yield see
    if see.top is not None:
        see = replace(see, top=None)
        yield see
    if see.map is not None:
        yield replace(see, map=None)
