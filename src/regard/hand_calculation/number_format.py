"""Text of numbers, sums and matrices: short and aligned; a rounded number shows that it is rounded.

A grid contains only ASCII, so that its columns line up in every terminal: in Chinese ones characters such as ∞ and
… may be two cells wide.
"""

from collections.abc import Iterable, Sequence

import numpy as np

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
