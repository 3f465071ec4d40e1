"""How numbers, sums and matrices are written: short, aligned, and never more rounded than they look.

Only plain ASCII stands inside a grid, so that its columns line up in every terminal, in Chinese ones too,
where characters such as ∞ and … may be two cells wide.
"""

from collections.abc import Iterable, Sequence

import numpy as np

WHOLE = 8
"""A matrix with at most so many rows or columns is shown whole along that axis."""
EDGE = 3
"""Of a larger one, so many are shown at either end."""
TERMS = 4
"""A sum of more terms than this is shown by its first and last ones."""
GAP = "..."


def spell(x: float) -> str:
    """A number, rounded for display; one that four decimals write exactly stands without spare zeros.

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
    """A number as it stands in a product: in brackets where it has a sign."""
    text = spell(x)
    return f"({text})" if text.startswith("-") else text


def vector(row: Sequence[float] | np.ndarray) -> str:
    """A row of numbers.

    >>> vector([1, 0.5]), vector(range(20))
    ('[1, 0.5]', '[0, 1, 2, ..., 17, 18, 19]')
    """
    return "[" + ", ".join(GAP if at is None else spell(row[at]) for at in corners(len(row))) + "]"


def total(terms: Iterable[str], count: int) -> str:
    """Terms with + between them; the middle ones of a long sum are left out."""
    shown = list(terms)
    if count > TERMS:
        shown = [*shown[: TERMS - 2], GAP, shown[-1]]
    return " + ".join(shown) if shown else "0"


def grid(values: np.ndarray, rows: str, columns: str | None = None) -> list[str]:
    """A matrix in aligned columns; rows are called `rows`0, `rows`1 …, columns alike where they have a name.

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
    return ["  ".join(_placed(cell, at, widths) for at, cell in enumerate(line)) for line in table]


def corners(length: int) -> list[int | None]:
    """Which of `length` places are shown; None stands for those left out.

    >>> corners(3), corners(20)
    ([0, 1, 2], [0, 1, 2, None, 17, 18, 19])
    """
    if length <= WHOLE:
        return list(range(length))
    return [*range(EDGE), None, *range(length - EDGE, length)]


def _placed(cell: str, at: int, widths: list[int]) -> str:
    return cell.ljust(widths[at]) if at == 0 else cell.rjust(widths[at])
