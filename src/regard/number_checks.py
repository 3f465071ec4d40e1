"""Checks of numbers that callers give: counts, and finite numbers."""

import math
from numbers import Real

from regard.arrays import is_integer
from regard.errors import ArgumentError


def check_counts(**counts: tuple[int, int]) -> None:
    """Raise ArgumentError unless each value is an integer of at least the given minimum: name=(value, minimum)."""
    for name, (value, least) in counts.items():
        if not is_integer(value) or value < least:
            raise ArgumentError("count-wanted", name=name, value=value, least=least)


def is_number(x: object) -> bool:
    """Whether `x` is a finite number; True and False are not."""
    try:
        return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x)
    except OverflowError:  # an integer too large for a float
        return False
