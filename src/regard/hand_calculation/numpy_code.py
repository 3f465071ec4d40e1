"""A hand calculation as a NumPy script: literal numbers, only NumPy, the same result to the last bit.

The lines are those of `calculation`. Lines for special cases (a mask, a fully masked query, NaN) are written only
if the numbers need them, so that the plain case reads like the formula.
"""

from collections.abc import Iterator

import numpy as np

from regard.hand_calculation.calculation import Calculation
from regard.messages import Language, say


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
