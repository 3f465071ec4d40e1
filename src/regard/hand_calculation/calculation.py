"""`calculate`: scaled dot-product attention of q, k and v in float64, with one array for each step.

The order is that of a calculation on paper: scores, scaled, masked, softmax in its parts, output. The edge cases
are those of `reference`: a fully masked query gets zeros, masked keys have no effect, and a query that sees NaN or
Inf gets a row of NaN. Formatting is in `number_format`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.arrays import is_tensor, to_numpy
from regard.axes import attention_sizes
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.masks import Mask
from regard.memory import require_bytes
from regard.reference.attention import weighted_sum

TABLES = 8
"""The number of T × S arrays of float64 in memory at once, temporaries included."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Calculation:
    """Every array of one calculation. `masked` is None without a mask."""

    q: np.ndarray  # T E
    k: np.ndarray  # S E
    v: np.ndarray  # S Ev
    scale: float | None
    """The `scale` argument; None for 1/√E."""
    allowed: np.ndarray  # T S
    scores: np.ndarray  # T S
    scaled: np.ndarray  # T S
    masked: np.ndarray | None  # T S
    highest: np.ndarray  # T 1
    shifted: np.ndarray  # T S
    powers: np.ndarray  # T S
    sums: np.ndarray  # T 1
    weights: np.ndarray  # T S
    output: np.ndarray  # T Ev

    @property
    def before_softmax(self) -> np.ndarray:
        """The input of softmax."""
        return self.scaled if self.masked is None else self.masked

    @property
    def fully_masked(self) -> np.ndarray:
        """Which queries are fully masked, (T,)."""
        return np.logical_not(self.allowed.any(axis=1))

    @property
    def sees_nonfinite(self) -> np.ndarray:
        """Which queries contain NaN or Inf or see a key that does, (T,)."""
        return queries_seeing_nonfinite(self.q, self.k, self.allowed)


def calculate(q: Any, k: Any, v: Any, mask: Any, scale: float | None) -> Calculation:
    """Check the arguments and do the calculation."""
    q, k, v = (_matrix(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    _check_axes(q, k, v)
    sizes = attention_sizes(q.shape, k.shape, v.shape)
    if scale is not None and not math.isfinite(scale):
        raise ArgumentError("scale-value", value=scale)
    require_bytes(TABLES * 8 * sizes.T * sizes.S, key="explain-too-large", T=sizes.T, S=sizes.S)
    allowed = _allowed(mask, sizes.T, sizes.S)
    # Overflow and NaN are visible in the numbers; no NumPy warning is needed.
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q @ k.T
        scaled = scores / np.sqrt(sizes.E) if scale is None else scores * float(scale)
        masked = _masked(scaled, q, k, allowed) if mask is not None or _any_nonfinite(q, k, v) else None
        before = scaled if masked is None else masked
        highest = before.max(axis=1, keepdims=True, initial=-np.inf)
        shifted = before - np.where(highest == -np.inf, 0, highest)
        powers = np.exp(shifted)
        sums = powers.sum(axis=1, keepdims=True)
        weights = powers / np.where(sums == 0, 1, sums)
        output = weighted_sum(weights, q, v, allowed)
    return Calculation(
        q=q, k=k, v=v, scale=None if scale is None else float(scale), allowed=allowed,
        scores=scores, scaled=scaled, masked=masked, highest=highest, shifted=shifted,
        powers=powers, sums=sums, weights=weights, output=output,
    )  # fmt: skip


def queries_seeing_nonfinite(q: np.ndarray, k: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which queries contain NaN or Inf or see a key that does, (T,)."""
    nonfinite_queries, nonfinite_keys = ~np.isfinite(q).all(axis=1), ~np.isfinite(k).all(axis=1)
    seeing: np.ndarray = (allowed & nonfinite_keys).any(axis=1) | (nonfinite_queries & allowed.any(axis=1))
    return seeing


def _masked(scaled: np.ndarray, q: np.ndarray, k: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    masked = np.where(allowed, scaled, -np.inf)
    masked[queries_seeing_nonfinite(q, k, allowed)] = np.nan
    return masked


def _any_nonfinite(*arrays: np.ndarray) -> bool:
    return not all(np.isfinite(x).all() for x in arrays)


def _matrix(x: Any, name: str) -> np.ndarray:
    """A copy of `x` as float64 in C order, as in the generated code."""
    try:
        array = to_numpy(x)
    except ValueError:  # NumPy's error for rows of different lengths
        raise ShapeError("explain-ragged", name=name) from None
    if array.dtype.kind not in "biuf":
        raise DtypeError("explain-numbers", name=name, dtype=array.dtype)
    with np.errstate(over="ignore"):
        return np.array(array, dtype=np.float64, order="C")


def _check_axes(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    axes = max(q.ndim, k.ndim, v.ndim)
    if axes > 2:
        zeros = ", ".join(["0"] * (axes - 2))
        raise ShapeError("explain-axes", q=q.shape, k=k.shape, v=v.shape, pick=zeros)
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError("explain-too-few-axes", q=q.shape, k=k.shape, v=v.shape)


def _allowed(mask: Any, T: int, S: int) -> np.ndarray:
    """The mask as booleans, True = visible, T S."""
    if mask is None:
        return np.ones((T, S), dtype=bool)
    if not isinstance(mask, Mask) and not is_tensor(mask):
        mask = np.asarray(mask)
    visible = Mask.of(mask).bind((), T, S).block(slice(0, T), slice(0, S))
    return np.array(np.broadcast_to(visible, (1, 1, T, S))[0, 0])
