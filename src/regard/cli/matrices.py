"""Matrices on the command line: rows between semicolons or line ends, numbers between spaces or commas.

Chinese keyboards write ； ， － ． and these mean the same; so do the brackets of a matrix pasted from Python.
"""

import math
import re

from regard.errors import ArgumentError

_BETWEEN_ROWS = re.compile(r"\]\s*[,;]?\s*\[")
_NARROW = str.maketrans({"；": ";", "\n": ";", "，": ",", "、": ",", "－": "-", "−": "-", "＋": "+", "．": "."})


def read_matrix(text: str, option: str) -> list[list[float]]:
    """The numbers of a matrix; ArgumentError names the option and the row (from 1) that is wrong.

    >>> read_matrix("1 0; 0, 1", "--q"), read_matrix("1，２；-3 4e1", "--q")
    ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [-3.0, 40.0]])
    >>> read_matrix("[[1, 0], [0, 1]]", "--q")
    [[1.0, 0.0], [0.0, 1.0]]
    """
    plain = _BETWEEN_ROWS.sub(";", text.translate(_NARROW)).replace("[", " ").replace("]", " ")
    lines = plain.strip().rstrip("; ").split(";")
    rows = [_read_row(line, number, option) for number, line in enumerate(lines, 1)]
    if not rows[0]:
        raise ArgumentError("cli-matrix-empty", option=option)
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ArgumentError("cli-matrix-ragged", option=option, row=number, found=len(row), wanted=len(rows[0]))
    return rows


def read_mask(text: str, option: str) -> list[list[bool]]:
    """A matrix of 1 (may look) and 0 (may not)."""
    rows = read_matrix(text, option)
    for number, row in enumerate(rows, 1):
        for found in row:
            if found not in (0, 1):
                raise ArgumentError("cli-matrix-not-mask", option=option, row=number, found=f"{found:g}")
    return [[found == 1 for found in row] for row in rows]


def _read_row(line: str, number: int, option: str) -> list[float]:
    row = []
    for word in line.replace(",", " ").split():
        try:
            value = float(word)
        except ValueError:
            raise ArgumentError("cli-matrix-not-number", option=option, row=number, found=word) from None
        if math.isinf(value) and any(map(str.isdecimal, word)):
            raise ArgumentError("cli-matrix-large", option=option, row=number, found=word)
        row.append(value)
    return row
