"""`regard explain`: attention calculated by hand, for matrices of the command line or those of the tutorial."""

import math
import re
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import put, read_stdin, write_json
from regard.errors import ArgumentError
from regard.messages import Listed

if TYPE_CHECKING:
    from regard.masks import Mask


_BETWEEN_ROWS = re.compile(r"\]\s*[,;]?\s*\[")
_NARROW = str.maketrans({"；": ";", "\n": ";", "，": ",", "、": ",", "－": "-", "−": "-", "＋": "+", "．": "."})


def read_matrix(text: str, option: str) -> list[list[float]]:
    """The numbers of a matrix. Raises ArgumentError with the option and the row, counted from 1.

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
    """A matrix of 1 (visible) and 0 (masked) as booleans."""
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


# The numbers of the tutorial "attention from zero", which gives a wrong result for them.
TUTORIAL = {"--q": "1 0", "--k": "1 0; 0 1; 1 0", "--v": "10 0; 0 20; 30 0"}


def explain(
    q: Annotated[str | None, typer.Option("--q", metavar="metavar-matrix", help="help-q")] = None,
    k: Annotated[str | None, typer.Option("--k", metavar="metavar-matrix", help="help-k")] = None,
    v: Annotated[str | None, typer.Option("--v", metavar="metavar-matrix", help="help-v")] = None,
    causal: Annotated[bool, typer.Option("--causal", help="help-causal")] = False,
    mask: Annotated[str | None, typer.Option("--mask", metavar="metavar-matrix", help="help-mask")] = None,
    code: Annotated[bool, typer.Option("--code", help="help-code")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.hand_calculation import explain as calculate

    given = _matrices({"--q": q, "--k": k, "--v": v})
    texts = _without_stdin({**given, **({} if mask is None else {"--mask": mask})})
    queries, keys, values = (read_matrix(texts[name], name) for name in TUTORIAL)
    steps = calculate(queries, keys, values, _mask(texts.get("--mask"), causal))
    if as_json:
        write_json({**steps.to_dict(), **({"code": steps.code()} if code else {})})
    else:
        put(steps.code() if code else steps.text())


def _matrices(given: dict[str, str | None]) -> dict[str, str]:
    """All three as given, or those of the tutorial."""
    found = {name: text for name, text in given.items() if text is not None}
    if found and len(found) < len(given):
        missing = Listed(name for name in given if name not in found)
        raise ArgumentError("cli-matrices-together", found=Listed(found), missing=missing)
    return found or TUTORIAL


def _without_stdin(texts: dict[str, str]) -> dict[str, str]:
    """The texts with `-` replaced by the content of stdin, which can be read only once."""
    from_stdin = [name for name, text in texts.items() if text.strip() == "-"]
    if len(from_stdin) > 1:
        raise ArgumentError("cli-stdin-twice", options=Listed(from_stdin))
    return {name: read_stdin() if name in from_stdin else text for name, text in texts.items()}


def _mask(text: str | None, causal: bool) -> "Mask | None":
    import numpy as np

    from regard.masks import Mask

    if text is None:
        return Mask.causal() if causal else None
    given = Mask.of(np.array(read_mask(text, "--mask")))
    return Mask.causal() & given if causal else given
