"""Step and Steps: the calculation as text, as a sequence of steps, and as JSON.

Sentences come from `messages`, lines of numbers from `explanations`, code from `numpy_code`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from regard.axes import Shape
from regard.errors import MissingPackageError, UnknownNameError
from regard.hand_calculation.calculation import Calculation
from regard.hand_calculation.explanations import details, grid, spell
from regard.hand_calculation.numpy_code import script
from regard.messages import Language, Listed, say

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
