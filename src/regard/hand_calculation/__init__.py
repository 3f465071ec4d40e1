"""`explain`: attention calculated by hand, every step with its numbers, shape and a sentence.

    calculation      the numbers, in float64, in the order of a calculation on paper; and the same as NumPy code
    steps            Step and Steps, the result of `explain`, with lines that explain the numbers of each step

One head at a time, for reading, not for speed. Independent of `dispatch`.
"""

from typing import Any

from regard.hand_calculation.calculation import calculate
from regard.hand_calculation.steps import Step, Steps
from regard.masks import Mask

__all__ = ["Step", "Steps", "explain"]


def explain(q: Any, k: Any, v: Any, mask: Mask | Any = None, *, scale: float | None = None) -> Steps:
    """The hand calculation of softmax(Q Kᵀ / √E) V, step by step.

    q (T, E), k (S, E), v (S, Ev): NumPy, torch or nested lists. `mask` is a Mask or boolean, True = visible.
    `scale` replaces 1/√E. Everything is calculated in float64 and rounded only when shown.

    >>> steps = explain([[1, 0]], [[1, 0], [0, 1], [1, 0]], [[10, 0], [0, 20], [30, 0]])
    >>> steps["weights"].values.round(5).tolist()
    [[0.40111, 0.19778, 0.40111]]
    >>> print(*steps["output"].details("en"))
    q0: 0.4011·[10, 0] + 0.1978·[0, 20] + 0.4011·[30, 0] = [16.0445, 3.9555]
    """
    return Steps(calculate(q, k, v, mask, scale))
