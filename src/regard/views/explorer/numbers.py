"""The arithmetic of one query of a real model, step by step, as `regard.explain` calculates it: in float64.

q and k are those that the Record keeps (`See(qk=True)`); with `See(v=True)` the values and the output are shown too.
Of many keys only those with the largest weights are listed; sums go over all keys.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from regard.arrays import to_numpy
from regard.attention_call import WeightsFromQK
from regard.errors import NotKeptError
from regard.hand_calculation.calculation import literal
from regard.messages import LANGUAGES, Language, say
from regard.records import Record
from regard.views.explorer.answers import Answer

MOST_KEYS = 64
"""The most keys that are listed."""


@dataclass(frozen=True, slots=True, eq=False)
class HeadNumbers:
    """The numbers of some queries of one head, in float64. n queries, S keys."""

    q: np.ndarray  # n E
    k: np.ndarray  # S E
    v: np.ndarray | None  # S Ev
    scale: float
    softcap: float | None
    bias: np.ndarray | None  # n S
    visible: np.ndarray  # n S

    @classmethod
    def of(cls, record: Record, sample: int, head: int, queries: slice) -> "HeadNumbers":
        """From the kept q and k of a record. Raises NotKeptError where there are none."""
        if not can_explain(record):
            raise NotKeptError("numbers-not-kept", name=record.name)
        assert isinstance(record.exact, WeightsFromQK)
        alone = record.exact.of_head(sample, head)
        T, S = record.shape[2:]
        rows = slice(*queries.indices(T))
        bias = None
        if alone.bias is not None:
            bias = np.broadcast_to(_double(alone.bias)[0, 0], (T, S))[rows]
        visible = True if alone.bound is None else to_numpy(alone.bound.block(rows, slice(0, S)))
        seen = np.array(np.broadcast_to(visible, (1, 1, rows.stop - rows.start, S))[0, 0], bool)
        seen[to_numpy(alone.lse)[0, 0, rows] == -np.inf] = False  # padding
        return cls(
            q=_double(alone.q)[0, 0, rows],
            k=_double(alone.k)[0, 0],
            v=None if alone.v is None else _double(alone.v)[0, 0],
            scale=float(alone.scale),
            softcap=alone.softcap,
            bias=bias,
            visible=seen,
        )

    @property
    def given_scale(self) -> float | None:
        """The scale; None where it is 1/√E."""
        return None if np.isclose(self.scale * sqrt(self.q.shape[-1]), 1, rtol=1e-7) else self.scale

    def stages(self) -> dict[str, np.ndarray]:
        """dots, scaled, masked, exps, weights n S; largest and sum n 1; output n Ev where the values were kept."""
        with np.errstate(over="ignore", invalid="ignore"):
            dots = self.q @ self.k.T
            scaled = dots / np.sqrt(self.q.shape[-1]) if self.given_scale is None else dots * self.scale
            capped = scaled if self.softcap is None else self.softcap * np.tanh(scaled / self.softcap)
            biased = capped if self.bias is None else capped + self.bias
            masked = np.where(self.visible, biased, -np.inf)
            largest = masked.max(axis=1, keepdims=True, initial=-np.inf)
            exps = np.exp(masked - np.where(largest == -np.inf, 0, largest))
            total = exps.sum(axis=1, keepdims=True)
            weights = exps / np.where(total == 0, 1, total)
            found = {"dots": dots, "scaled": scaled, "masked": masked, "exps": exps, "weights": weights}
            found |= {"largest": largest, "sum": total}
            if self.v is not None:
                found["output"] = _output(weights, self.visible, self.v)
        return found


def can_explain(record: Record) -> bool:
    """Whether the record keeps q and k."""
    return isinstance(record.exact, WeightsFromQK)


def ability(record: Record) -> str:
    """What can be explained of a record: "full", "without-values" or "none"."""
    if not isinstance(record.exact, WeightsFromQK):
        return "none"
    return "without-values" if record.exact.v is None else "full"


INPUTS = "{inputs}"
"""Where the front end writes q, k and v into the code that a file stores: they are in the file as arrays."""


def explained(
    record: Record, sample: int, head: int, query: int, most: int = MOST_KEYS, *, for_file: bool = False
) -> Answer:
    """The arithmetic of one query; of many keys those with the largest weights, in the order of their positions."""
    numbers = HeadNumbers.of(record, sample, head, slice(query, query + 1))
    stages = {name: values[0] for name, values in numbers.stages().items()}
    weights, S = stages["weights"], record.shape[3]
    n = min(S, max(1, min(MOST_KEYS, most)))
    order = np.argsort(-np.where(np.isnan(weights), np.inf, weights), kind="stable")
    keys = np.sort(order[:n])
    others = np.ones(S, bool)
    others[keys] = False
    arrays = {"q": _single(numbers.q[0]), "k": _single(numbers.k[keys])}
    arrays |= {name: stages[name][keys] for name in ("dots", "scaled", "masked", "exps", "weights")}
    arrays |= {"visible": numbers.visible[0][keys].astype(np.uint8), "sum": stages["sum"]}
    if numbers.bias is not None:
        arrays["bias"] = numbers.bias[0][keys]
    if numbers.v is not None:
        arrays |= {"v": _single(numbers.v[keys]), "output": stages["output"]}
    about = {
        "query": query,
        "keys": keys.tolist(),
        **_settings(numbers),
        "largest": _finite(stages["largest"][0]),
        "rest": {
            "keys": int(others.sum()),
            "weight": _finite(float(weights[others].sum())),
            "reason": record.rest,
        },
        "code": {lang: _code(numbers, keys, others, stages, lang, for_file) for lang in LANGUAGES},
    }
    return Answer(about, arrays)


def all_queries(record: Record, sample: int, head: int) -> Answer:
    """What the front end computes the arithmetic of every query from: q, k, v, bias and visible keys, for a file.

    The NumPy code has a place for the numbers of one query, which the front end fills in.
    """
    numbers = HeadNumbers.of(record, sample, head, slice(0, record.shape[2]))
    arrays = {"q": _single(numbers.q), "k": _single(numbers.k), "visible": numbers.visible.astype(np.uint8)}
    if numbers.bias is not None:
        arrays["bias"] = _single(numbers.bias)
    if numbers.v is not None:
        arrays["v"] = _single(numbers.v)
    code = {lang: "\n".join(_script(numbers, INPUTS, "0", [], lang)) for lang in LANGUAGES}
    return Answer({**_settings(numbers), "reason": record.rest, "code": code}, arrays)


def _single(values: np.ndarray) -> np.ndarray:
    """The same numbers in float32 where it holds them exactly, as those of most models."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values, equal_nan=True) else values


def _settings(numbers: HeadNumbers) -> dict[str, Any]:
    return {
        "E": numbers.q.shape[-1],
        "Ev": None if numbers.v is None else numbers.v.shape[-1],
        "scale": numbers.given_scale,
        "softcap": numbers.softcap,
    }


def _output(weights: np.ndarray, visible: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The weighted sum of the values; NaN for a query that sees a value that is not finite, as in the definition."""
    bad = ~np.isfinite(v).all(axis=1)
    if not bad.any():
        return np.asarray(weights @ v)
    output = weights @ np.where(bad[:, None], 0, v)
    output[(visible & bad).any(axis=1)] = np.nan
    return np.asarray(output)


# --- the same as NumPy code ------------------------------------------------------------------------------


def _code(
    numbers: HeadNumbers,
    keys: np.ndarray,
    others: np.ndarray,
    stages: dict[str, np.ndarray],
    lang: Language,
    for_file: bool,
) -> str:
    """A script that computes `weights` of the listed keys, and `output` where the values are known."""
    more = []
    if others.any():
        more = [f"# {say('script-others', lang, count=int(others.sum()))}"]
        more.append(f"others = {float(stages['exps'][others].sum())!r}")
        if numbers.v is not None:
            rest = stages["weights"][others] @ numbers.v[others]
            more += literal("output_of_others", rest[None])
    inputs = INPUTS if for_file else "\n".join(_inputs(numbers, keys))
    return "\n".join(_script(numbers, inputs, "0", more, lang))


def _inputs(numbers: HeadNumbers, keys: np.ndarray) -> list[str]:
    lines = [*_rounded("Q", numbers.q), *_rounded("K", numbers.k[keys])]
    lines += [] if numbers.v is None else _rounded("V", numbers.v[keys])
    lines += [] if numbers.bias is None else _rounded("bias", numbers.bias[:, keys])
    return [*lines, *literal("visible", numbers.visible[:, keys])]


def _rounded(name: str, values: np.ndarray) -> list[str]:
    """A literal; numbers that float32 holds are written with its digits."""
    single = _single(values)
    if single is values:
        return list(literal(name, values))
    *lines, last = literal(name, single)
    return [*lines, last.removesuffix(")") + ", dtype=np.float32).astype(np.float64)"]


def _script(numbers: HeadNumbers, inputs: str, query: str, more: list[str], lang: Language) -> list[str]:
    def comment(key: str) -> str:
        return f"# {say(key, lang)}"

    lines = ["import numpy as np", "", comment("script-inputs"), inputs, f"query = {query}", *more, ""]
    lines += [comment("script-scores"), "scores = Q[query] @ K.T"]
    E, scale = numbers.q.shape[-1], numbers.given_scale
    lines.append(f"scaled = scores / np.sqrt({E})" if scale is None else f"scaled = scores * {scale!r}")
    if numbers.softcap is not None:
        lines.append(f"scaled = {numbers.softcap!r} * np.tanh(scaled / {numbers.softcap!r})")
    if numbers.bias is not None:
        lines.append("scaled = scaled + bias[query]")
    lines += ["masked = np.where(visible[query], scaled, -np.inf)", "", comment("script-softmax")]
    lines += ["largest = masked.max() if visible[query].any() else 0.0", "exps = np.exp(masked - largest)"]
    lines.append("total = exps.sum()" + (" + others" if more else ""))
    lines += ["weights = exps / total if total else exps", 'print("weights", weights)']
    if numbers.v is not None:
        lines += ["", comment("script-output"), "output = weights @ V" + (" + output_of_others[0]" if more else "")]
        lines.append('print("output", output)')
    return lines


def _double(x: Any) -> np.ndarray:
    return np.asarray(to_numpy(x), np.float64)


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
