"""`calculate`: scaled dot-product attention in float64, with one array for each step; and the same as NumPy code.

The order is that of a calculation on paper: scores, scaled, masked, softmax in its parts, output. The edge cases are
those of `reference`: a fully masked query gets zeros, masked keys have no effect, and a query that sees NaN or Inf gets
a row of NaN.

The code is a script with literal numbers that needs only NumPy and gives the same result to the last bit. Lines for
special cases (a mask, a fully masked query, NaN) are written only if the numbers need them, so that the plain case
reads like the formula.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.arrays import is_tensor, to_numpy
from regard.axes import attention_sizes
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.masks import Mask
from regard.memory import require_bytes
from regard.messages import Language, say
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


def script(c: Calculation, lang: Language | None = None) -> str:
    """Python source that recomputes `weights` and `output` and prints them."""
    return "\n".join([*_inputs(c, lang), "", *_scores(c, lang), "", *_softmax(c, lang), "", *_output(c, lang)])


def _inputs(c: Calculation, lang: Language | None) -> Iterator[str]:
    yield "import numpy as np"
    yield ""
    if _overflows(c):
        yield _comment("script-quiet", lang)
        yield 'np.seterr(over="ignore", invalid="ignore")'
        yield ""
    yield _comment("script-inputs", lang)
    for name, values in (("Q", c.q), ("K", c.k), ("V", c.v)):
        yield from literal(name, values)
    if c.masked is not None:
        yield _comment("script-mask", lang)
        yield from literal("may_look", c.allowed)


def _overflows(c: Calculation) -> bool:
    """Whether NumPy would warn: a number is not finite, other than the -inf of masked scores."""
    arrays = (c.q, c.k, c.v, c.scores, c.scaled, c.output)
    lost = np.isfinite(c.before_softmax) & ~np.isfinite(c.shifted)
    return bool(lost.any()) or not all(np.isfinite(x).all() for x in arrays)


def _scores(c: Calculation, lang: Language | None) -> Iterator[str]:
    yield _comment("script-scores", lang)
    yield "scores = Q @ K.T"
    if c.scale is None:
        yield f"scaled = scores / np.sqrt({c.q.shape[1]})"
    else:
        yield f"scaled = scores * {c.scale!r}"
    if c.masked is None:
        return
    yield "masked = np.where(may_look, scaled, -np.inf)"
    if c.sees_nonfinite.any():
        yield ""
        yield _comment("script-not-finite", lang)
        yield "bad_queries, bad_keys = ~np.isfinite(Q).all(axis=1), ~np.isfinite(K).all(axis=1)"
        yield "met = (may_look & bad_keys).any(axis=1) | (bad_queries & may_look.any(axis=1))"
        yield "masked[met] = np.nan"


def _softmax(c: Calculation, lang: Language | None) -> Iterator[str]:
    before = "scaled" if c.masked is None else "masked"
    yield _comment("script-softmax", lang)
    # The maximum of an empty axis needs `initial`.
    start = "" if c.scores.shape[1] else ", initial=-np.inf"
    yield f"highest = {before}.max(axis=1, keepdims=True{start})"
    if (c.highest == -np.inf).any():
        yield _comment("script-nowhere", lang)
        yield "highest = np.where(highest == -np.inf, 0, highest)"
    yield f"shifted = {before} - highest"
    yield "powers = np.exp(shifted)"
    yield "sums = powers.sum(axis=1, keepdims=True)"
    if (c.sums == 0).any():
        yield "weights = powers / np.where(sums == 0, 1, sums)"
    else:
        yield "weights = powers / sums"


def _output(c: Calculation, lang: Language | None) -> Iterator[str]:
    yield _comment("script-output", lang)
    if np.isfinite(c.v).all():
        yield "output = weights @ V"
    else:
        yield _comment("script-bad-values", lang)
        yield "bad_values = ~np.isfinite(V).all(axis=1)"
        yield "output = weights @ np.where(bad_values[:, None], 0, V)"
        yield "output[(may_look & bad_values).any(axis=1)] = np.nan"
    yield ""
    yield 'print("weights")'
    yield "print(weights)"
    yield 'print("output")'
    yield "print(output)"


def literal(name: str, values: np.ndarray) -> Iterator[str]:
    """`name = np.array(...)`, a row a line, each number in a form that is read back exactly."""
    if values.size == 0:
        yield f"{name} = np.zeros({values.shape}{', dtype=bool' if values.dtype == bool else ''})"
        return
    rows = ["[" + ", ".join(_number(x) for x in row) + "]" for row in values.tolist()]
    end = ", dtype=bool)" if values.dtype == bool else ")"
    if len(rows) == 1:
        yield f"{name} = np.array([{rows[0]}]{end}"
        return
    yield f"{name} = np.array(["
    yield from (f"    {row}," for row in rows)
    yield f"]{end}"


def _number(x: float | bool) -> str:
    """A literal.

    >>> _number(0.1), _number(-0.0), _number(True), _number(float("-inf"))
    ('0.1', '-0.0', '1', '-np.inf')
    """
    if isinstance(x, bool):
        return str(int(x))
    if np.isnan(x):
        return "np.nan"
    if np.isinf(x):
        return "np.inf" if x > 0 else "-np.inf"
    return repr(x)


def _comment(key: str, lang: Language | None) -> str:
    return f"# {say(key, lang)}"
