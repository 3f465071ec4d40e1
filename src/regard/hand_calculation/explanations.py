"""The lines that explain the numbers of each step, and the text of numbers, sums and matrices in them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from regard.hand_calculation.calculation import Calculation
from regard.messages import Language, Listed, say

# --- numbers as text ---------------------------------------------------------------------------------------


WHOLE = 8
"""The largest number of rows or columns that is shown completely."""
EDGE = 3
"""The number shown at each end of a larger one."""
TERMS = 4
"""A longer sum shows only its first and last terms."""
GAP = "..."


def spell(x: float) -> str:
    """A number, rounded for display; one that is exact with four decimals has no trailing zeros.

    >>> [spell(x) for x in (1.0, 0.5, 2 / 3, 16.04447, 0.99999, -0.0, 3e-7, -float("inf"))]
    ['1', '0.5', '0.6667', '16.0445', '1.0000', '0', '3.000e-07', '-inf']
    """
    x = float(x)
    if x == 0 or not np.isfinite(x):
        return "0" if x == 0 else str(x)
    if not 1e-3 <= abs(x) < 1e6:
        return f"{x:.3e}"
    text = f"{x:.4f}"
    return text.rstrip("0").rstrip(".") if float(text) == x else text


def factor(x: float) -> str:
    """A number as a factor of a product: negative numbers in brackets."""
    text = spell(x)
    return f"({text})" if text.startswith("-") else text


def vector(row: Sequence[float] | np.ndarray) -> str:
    """A row of numbers.

    >>> vector([1, 0.5]), vector(range(20))
    ('[1, 0.5]', '[0, 1, 2, ..., 17, 18, 19]')
    """
    return "[" + ", ".join(GAP if at is None else spell(row[at]) for at in corners(len(row))) + "]"


def total(terms: Iterable[str], count: int) -> str:
    """Terms joined by +; a long sum without its middle terms."""
    shown = list(terms)
    if count > TERMS:
        shown = [*shown[: TERMS - 2], GAP, shown[-1]]
    return " + ".join(shown) if shown else "0"


def grid(values: np.ndarray, rows: str, columns: str | None = None) -> list[str]:
    """A matrix in aligned columns; rows are named `rows`0, `rows`1 …, and columns likewise if `columns` is given.

    >>> print(*grid(np.array([[1, 0.25], [-2, 1]]), "q", "k"), sep="\\n")
        k0    k1
    q0   1  0.25
    q1  -2     1
    """
    across, down = corners(values.shape[1]), corners(values.shape[0])
    table = []
    if columns is not None and across and down:
        table.append(["", *(GAP if c is None else f"{columns}{c}" for c in across)])
    for r in down:
        if r is None:
            table.append([GAP] * (len(across) + 1))
        else:
            cells = (GAP if c is None else spell(values[r, c]) for c in across)
            table.append([f"{rows}{r}", *cells])
    widths = [max(len(line[at]) for line in table) for at in range(len(across) + 1)] if table else []
    return ["  ".join(_aligned(cell, at, widths) for at, cell in enumerate(line)) for line in table]


def corners(length: int) -> list[int | None]:
    """The indices that are shown of `length`; None marks the gap.

    >>> corners(3), corners(20)
    ([0, 1, 2], [0, 1, 2, None, 17, 18, 19])
    """
    if length <= WHOLE:
        return list(range(length))
    return [*range(EDGE), None, *range(length - EDGE, length)]


def _aligned(cell: str, at: int, widths: list[int]) -> str:
    return cell.ljust(widths[at]) if at == 0 else cell.rjust(widths[at])


# --- explanations ------------------------------------------------------------------------------------------


LINES = 12
"""The largest number of sums written out per step."""

Lines = Iterator[str]


def details(key: str, c: Calculation, lang: Language | None) -> tuple[str, ...]:
    """The lines of the step `key`."""
    return tuple(EXPLAINERS[key](c, lang)) if key in EXPLAINERS else ()


def _scores(c: Calculation, lang: Language | None) -> Lines:
    E = c.q.shape[1]

    def line(i: int, j: int) -> str:
        terms = (f"{factor(a)}·{factor(b)}" for a, b in zip(c.q[i], c.k[j], strict=True))
        return f"q{i}·k{j} = {total(terms, E)} = {spell(c.scores[i, j])}"

    return _each_cell(c, line, lang)


def _scaled(c: Calculation, lang: Language | None) -> Lines:
    if c.scale is None:
        by = f"/ {spell(np.sqrt(c.q.shape[1]))}"
    else:
        by = f"· {factor(c.scale)}"

    def line(i: int, j: int) -> str:
        return f"{spell(c.scores[i, j])} {by} = {spell(c.scaled[i, j])}"

    return _each_cell(c, line, lang)


def _masked(c: Calculation, lang: Language | None) -> Lines:
    fully_masked, nonfinite = c.fully_masked, c.sees_nonfinite

    def lines() -> Lines:
        for i, visible in enumerate(c.allowed):
            if fully_masked[i]:
                yield say("hand-blind", lang, row=i)
            elif nonfinite[i]:
                yield say("hand-not-finite", lang, row=i)
            elif visible.all():
                yield say("hand-sees-all", lang, row=i)
            else:
                yield say("hand-sees", lang, row=i, seen=_names(visible), hidden=_names(~visible))

    return _cut(lines(), len(c.allowed), lang)


def _shifted(c: Calculation, lang: Language | None) -> Lines:
    def lines() -> Lines:
        for i, highest in enumerate(c.highest[:, 0]):
            if highest == -np.inf:
                yield say("hand-no-highest", lang, row=i)
            else:
                yield say("hand-highest", lang, row=i, highest=spell(highest))

    return _cut(lines(), len(c.highest), lang)


def _powers(c: Calculation, lang: Language | None) -> Lines:
    def line(i: int, j: int) -> str:
        return f"exp({spell(c.shifted[i, j])}) = {spell(c.powers[i, j])}"

    return _each_cell(c, line, lang)


def _sums(c: Calculation, lang: Language | None) -> Lines:
    S = c.powers.shape[1]

    def lines() -> Lines:
        for i, row in enumerate(c.powers):
            added = f"{total((spell(x) for x in row), S)} = {spell(c.sums[i, 0])}"
            yield say("hand-row", lang, row=i, sum=added)

    return _cut(lines(), len(c.powers), lang)


def _weights(c: Calculation, lang: Language | None) -> Lines:
    S = c.weights.shape[1]
    zero_sum = c.sums[:, 0] == 0

    def lines() -> Lines:
        for i, row in enumerate(c.weights):
            if zero_sum[i]:
                yield say("hand-weights-zero", lang, row=i)
            else:
                divided = zip(c.powers[i], row, strict=True)
                yield from (f"{spell(power)} / {spell(c.sums[i, 0])} = {spell(w)}" for power, w in divided)

    yield from _cut(lines(), int(np.where(zero_sum, 1, S).sum()), lang)
    visible = c.before_softmax > -np.inf
    for i, j in islice(np.argwhere(visible & (c.before_softmax == 0) & (c.weights > 0)), 1):
        yield say("hand-zero-score", lang, row=i, column=j, weight=spell(c.weights[i, j]))
    for i, j in islice(np.argwhere(visible & (c.weights == 0)), 1):
        yield say("hand-underflow", lang, row=i, column=j, score=spell(c.before_softmax[i, j]))


def _output(c: Calculation, lang: Language | None) -> Lines:
    S, fully_masked = c.v.shape[0], c.fully_masked

    def lines() -> Lines:
        for i, row in enumerate(c.weights):
            if c.sums[i, 0] == 0:
                # Scores can also be -inf by overflow; then the query is not masked.
                yield say("hand-output-zero" if fully_masked[i] else "hand-output-nothing", lang, row=i)
            else:
                terms = (f"{spell(weight)}·{vector(c.v[j])}" for j, weight in enumerate(row))
                yield say("hand-row", lang, row=i, sum=f"{total(terms, S)} = {vector(c.output[i])}")

    return _cut(lines(), len(c.weights), lang)


EXPLAINERS: dict[str, Callable[[Calculation, Language | None], Lines]] = {
    "scores": _scores,
    "scaled": _scaled,
    "masked": _masked,
    "shifted": _shifted,
    "powers": _powers,
    "sums": _sums,
    "weights": _weights,
    "output": _output,
}


def _each_cell(c: Calculation, line: Callable[[int, int], str], lang: Language | None) -> Lines:
    """One line for each query and key, cut if there are too many."""
    T, S = c.scores.shape
    return _cut((line(i, j) for i in range(T) for j in range(S)), T * S, lang)


def _cut(lines: Lines, count: int, lang: Language | None) -> Lines:
    """The first of `count` lines, and a line with the number left out."""
    shown = count if count <= LINES else LINES // 2
    yield from islice(lines, shown)
    if count > shown:
        yield say("hand-more", lang, count=count - shown)


def _names(chosen: np.ndarray) -> Listed:
    """The names of the chosen keys; the first ones if there are many.

    >>> _names(np.array([True, False, True]))
    ('k0', 'k2')
    """
    return Listed.few((f"k{j}" for j in np.flatnonzero(chosen)), 8)
