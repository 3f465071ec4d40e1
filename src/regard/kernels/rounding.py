"""When an LSE is no longer enough to tell weights by."""

import math

from regard.kinds import Array

COARSE = 1e-4
"""Of a weight exp(score − LSE) no larger part may be lost because both are rounded."""


def is_coarse(lse: Array, eps: float) -> bool:
    """Whether any is so far from 0 that it was rounded to too few digits; -inf is of a row that sees nothing.

    >>> import numpy as np
    >>> [is_coarse(np.array([3.0, far]), 2.0**-23) for far in (-800, 900, -np.inf, -3.4e38)]
    [False, True, False, True]
    """
    far = abs(lse)
    return bool(((far * eps > COARSE) & (far < math.inf)).any())
