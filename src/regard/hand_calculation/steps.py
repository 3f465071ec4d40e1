"""Step and Steps: the calculation as text with a line for each number, as a sequence of steps, and as JSON.

Sentences come from `messages`, code from `calculation`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, overload

import numpy as np

from regard.axes import Shape
from regard.errors import MissingPackageError, UnknownNameError
from regard.hand_calculation.calculation import Calculation, script
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
                yield say("hand-fully-masked", lang, row=i)
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


# key -> (symbol, the array of the calculation, name of its rows, name of its columns)
ORDER: dict[str, tuple[str, str, str, str | None]] = {
    "queries": ("Q", "q", "q", None),
    "keys": ("K", "k", "k", None),
    "values": ("V", "v", "v", None),
    "scores": ("scores", "scores", "q", "k"),
    "scaled": ("scaled", "scaled", "q", "k"),
    "masked": ("masked", "masked", "q", "k"),
    "shifted": ("shifted", "shifted", "q", "k"),
    "powers": ("powers", "powers", "q", "k"),
    "sums": ("sums", "sums", "q", None),
    "weights": ("weights", "weights", "q", "k"),
    "output": ("output", "output", "q", None),
}


@dataclass(frozen=True, eq=False)
class Step:
    """One step: its numbers and their explanation. `symbol` is also its name in the code."""

    key: str
    symbol: str
    values: np.ndarray
    calculation: Calculation = field(repr=False)

    @property
    def shape(self) -> Shape:
        return self.values.shape

    def title(self, lang: Language | None = None) -> str:
        """The title: what is calculated, as a formula and in words."""
        return say(f"hand-{self.key}-title", lang, **self._values_for_text())

    def sentence(self, lang: Language | None = None) -> str:
        """One sentence that explains the step."""
        c, key = self.calculation, self.key
        if key == "scaled" and c.scale is not None:
            key = "scaled-given"
        elif key == "weights" and (c.sums == 0).any():
            key = "weights-some-zero"
        return say(f"hand-{key}", lang, **self._values_for_text())

    def details(self, lang: Language | None = None) -> tuple[str, ...]:
        """The sums written out, one line each; only the first ones of a large calculation."""
        return details(self.key, self.calculation, lang)

    def text(self, lang: Language | None = None) -> str:
        """Title, sentence, numbers and details."""
        _, _, rows, columns = ORDER[self.key]
        shape = " × ".join(str(size) for size in self.shape)
        blocks = [[self.sentence(lang)], grid(self.values, rows, columns), list(self.details(lang))]
        body = "\n\n".join("\n".join(f"   {line}" for line in block) for block in blocks if block)
        return f"{self.title(lang)}  ({shape})\n{body}"

    def _values_for_text(self) -> dict[str, Any]:
        c = self.calculation
        E = c.q.shape[1]
        by = f"/ √{E}" if c.scale is None else f"· {spell(c.scale)}"
        scale = None if c.scale is None else spell(c.scale)
        before = "scaled" if c.masked is None else "masked"
        return {"E": E, "root": spell(np.sqrt(E)), "scale": scale, "by": by, "before": before}


class Steps(Sequence[Step]):
    """All steps in order, indexed by number or by key; also as text and as code."""

    def __init__(self, calculation: Calculation) -> None:
        self._calculation = calculation
        self._steps = tuple(_steps(calculation))

    @property
    def calculation(self) -> Calculation:
        """All arrays of the calculation."""
        return self._calculation

    @property
    def weights(self) -> np.ndarray:
        """T S, float64."""
        return self._calculation.weights

    @property
    def output(self) -> np.ndarray:
        """T Ev, float64."""
        return self._calculation.output

    def text(self, lang: Language | None = None) -> str:
        """The whole calculation in words and numbers."""
        c = self._calculation
        formula = "softmax(Q Kᵀ / √E) V" if c.scale is None else "softmax(scale · Q Kᵀ) V"
        head = say("hand-head", lang, formula=formula)
        sizes = say("hand-sizes", lang, **self._sizes())
        body = [f"{number}. {step.text(lang)}" for number, step in enumerate(self._steps, 1)]
        return "\n\n".join([f"{head}\n{sizes}", *body, say("hand-foot", lang)])

    def code(self, lang: Language | None = None) -> str:
        """The calculation as self-contained NumPy code with bit-identical results."""
        return script(self._calculation, lang)

    def widget(self, lang: Language | None = None) -> Any:
        """The calculation step by step in a notebook. Needs `pip install 'regard[notebook]'`."""
        from regard.views.explorer.widget import calculation_widget

        return calculation_widget(self, lang)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """In a notebook: the same panel; its text where anywidget is not installed."""
        try:
            return self.widget()._repr_mimebundle_(**options)
        except MissingPackageError:
            return {"text/plain": self.text()}, {}

    def to_dict(self, lang: Language | None = None) -> dict[str, Any]:
        """All steps as JSON values; non-finite numbers are the strings "inf", "-inf" and "nan"."""
        steps = [
            {
                "key": step.key,
                "symbol": step.symbol,
                "title": step.title(lang),
                "sentence": step.sentence(lang),
                "details": list(step.details(lang)),
                "shape": list(step.shape),
                "values": _json_rows(step.values),
            }
            for step in self._steps
        ]
        c = self._calculation
        return {
            "sizes": self._sizes(),
            "scale": c.scale,
            "allowed": c.allowed.tolist(),
            "steps": steps,
            "weights": _json_rows(self.weights),
            "output": _json_rows(self.output),
        }

    @overload
    def __getitem__(self, at: int | str) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, at: int | str | slice) -> Step | tuple[Step, ...]:
        if not isinstance(at, str):
            return self._steps[at]
        for step in self._steps:
            if at in (step.key, step.symbol):
                return step
        raise UnknownNameError("explain-no-step", asked=at, names=Listed(step.key for step in self._steps))

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{letter}={size}" for letter, size in self._sizes().items())
        return f"<Steps {sizes}: {', '.join(step.key for step in self._steps)}>"

    def _sizes(self) -> dict[str, int]:
        c = self._calculation
        return {"T": c.q.shape[0], "S": c.k.shape[0], "E": c.q.shape[1], "Ev": c.v.shape[1]}


def _steps(c: Calculation) -> Iterator[Step]:
    for key, (symbol, name, _, _) in ORDER.items():
        values = getattr(c, name)
        if values is not None:
            yield Step(key, symbol, values, c)


def _json_rows(values: np.ndarray) -> list[list[float | str]]:
    return [[float(x) if np.isfinite(x) else str(float(x)) for x in row] for row in values]
