"""The answer sheet of `by-hand`: three calculations, step by step, and common mistakes.

The first calculation is from the tutorials; the other two depend on the seed, since the lesson prints those of the
tutorials. Right and wrong answers are both computed here, so that each mistake can be recognised.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from regard.course.exercise import Field, Sheet, SheetMistake
from regard.messages import Language, Message

STEPS = ("scores", "scaled", "weights", "output")
TOLERANCES = {"scores": 0.001, "scaled": 0.005, "weights": 0.005, "output": 0.01}


class HandInputs(NamedTuple):
    """One query, its keys and values."""

    q: np.ndarray
    K: np.ndarray
    V: np.ndarray


TUTORIALS = {
    "first": HandInputs(
        np.array([1.0, 0]), np.array([[1.0, 0], [0, 1], [1, 0]]), np.array([[10.0, 0], [0, 20], [30, 0]])
    ),
    "second": HandInputs(np.array([1.0]), np.array([[1], [2], [0.5]]), np.array([[10.0], [20], [5]])),
    "third": HandInputs(np.array([1.0, 0]), np.eye(2), np.array([[5.0, 0], [0, 10]])),
}
"""Seed 0."""

HEAD = Message(
    en="# Fill in the numbers between the brackets: [0.40, 0.20, 0.40]. Keep four decimals in between, and round\n"
    "# at the end only. Tolerance: ±0.005 for weights, ±0.01 for outputs.\n",
    zh="# 把数字填进方括号：[0.40, 0.20, 0.40]。中间步骤保留四位小数，只在最后四舍五入。\n"
    "# 权重允许 ±0.005 的误差，输出允许 ±0.01。\n",
)
ABOUT = {
    "scores": Message(en="q · each key", zh="q 和每个键的点积"),
    "scaled": Message(en="scores / √d_k", zh="得分 / √d_k"),
    "weights": Message(en="softmax(scaled)", zh="softmax(scaled)"),
    "output": Message(en="weights · V", zh="权重 · V"),
}


def softmax(x: np.ndarray) -> np.ndarray:
    """The plain formula, as by hand: these scores are small."""
    return np.exp(x) / np.exp(x).sum()


def make(seed: int, lang: Language) -> str:
    """The empty sheet."""
    lines = [getattr(HEAD, lang), f"seed = {seed}"]
    for name, (q, K, V) in inputs(seed).items():
        lines += ["", f"[{name}]", f"# q = {_plain(q)}", f"# K = {_plain(K)}", f"# V = {_plain(V)}"]
        lines += [f"{step} = []".ljust(16) + f"# {getattr(ABOUT[step], lang)}" for step in STEPS]
    return "\n".join(lines) + "\n"


def _plain(array: np.ndarray) -> str:
    """Numbers without trailing zeros: 10 and 0.5."""
    inner = ", ".join(_plain(part) if array.ndim > 1 else f"{part:g}" for part in array)
    return f"[{inner}]"


# --- right answers and known mistakes ----------------------------------------------------------------------

StepFunction = Callable[[HandInputs, np.ndarray], np.ndarray]
"""One step of the calculation, from the inputs and the result of the previous step."""


def calculated(
    given: HandInputs,
    scale: StepFunction = lambda given, scores: scores / np.sqrt(len(given.q)),
    normalise: StepFunction = lambda given, scaled: softmax(scaled),
    gather: StepFunction = lambda given, weights: weights @ given.V,
) -> dict[str, np.ndarray]:
    """The results of the four steps, each of which can be replaced; a wrong step affects the later ones."""
    scores = given.K @ given.q
    scaled = scale(given, scores)
    weights = normalise(given, scaled)
    return dict(zip(STEPS, (scores, scaled, weights, gather(given, weights)), strict=True))


def fields(seed: int) -> Sequence[Field]:
    """Four fields per calculation."""
    return [
        Field(
            f"{name}.{step}", value.round(6).tolist(), TOLERANCES[step], step, total=1.0 if step == "weights" else None
        )
        for name, given in inputs(seed).items()
        for step, value in calculated(given).items()
    ]


def changed(given: HandInputs, ways: Mapping[str, StepFunction]) -> dict[str, list[float]]:
    """The answers that change when steps are replaced."""
    right = calculated(given)
    return {
        step: value.round(6).tolist()
        for step, value in calculated(given, **ways).items()
        if not np.allclose(value, right[step], rtol=0, atol=TOLERANCES[step])
    }


def normalised(parts: np.ndarray) -> np.ndarray:
    """Divide by the sum."""
    return parts / parts.sum()


MISTAKES: Sequence[tuple[str, Mapping[str, StepFunction]]] = (
    (
        "zero-score-zero-weight",
        {"normalise": lambda given, scaled: normalised(np.where(scaled == 0, 0, np.exp(scaled)))},
    ),
    ("rounded-early", {"gather": lambda given, weights: np.floor(weights * 1000) / 1000 @ given.V}),
    ("rounded-early", {"gather": lambda given, weights: weights.round(2) @ given.V}),
    ("no-scale", {"scale": lambda given, scores: scores}),
    ("divided-by-d-k", {"scale": lambda given, scores: scores / len(given.q)}),
    ("sqrt-keys", {"scale": lambda given, scores: scores / np.sqrt(len(given.K))}),
    ("multiplied", {"scale": lambda given, scores: scores * np.sqrt(len(given.q))}),
    ("scaling-not-used", {"normalise": lambda given, scaled: softmax(scaled * np.sqrt(len(given.q)))}),
    ("no-softmax", {"normalise": lambda given, scaled: scaled}),
    ("not-normalised", {"normalise": lambda given, scaled: np.exp(scaled)}),
    ("proportional", {"normalise": lambda given, scaled: normalised(scaled)}),
    ("winner-takes-all", {"normalise": lambda given, scaled: normalised((scaled == scaled.max()).astype(float))}),
    ("base-2", {"normalise": lambda given, scaled: normalised(2**scaled)}),
    ("keys-for-values", {"gather": lambda given, weights: weights @ given.K}),
    ("plain-mean", {"gather": lambda given, weights: given.V.mean(0)}),
    ("plain-sum", {"gather": lambda given, weights: given.V.sum(0)}),
)


# --- drawing -----------------------------------------------------------------------------------------------


@cache
def inputs(seed: int) -> Mapping[str, HandInputs]:
    """The inputs on the sheet of a seed."""
    if seed == 0:
        return TUTORIALS
    rng = np.random.default_rng(seed)
    return {"first": TUTORIALS["first"], "second": _drawn(rng, 3, 4, 1), "third": _drawn(rng, 2, 2, 2)}


def _drawn(rng: np.random.Generator, keys: int, d_k: int, d_v: int) -> HandInputs:
    """Small integers, drawn until every mistake can be distinguished from the others."""
    while True:
        q, K = rng.integers(0, 3, d_k), rng.integers(0, 3, (keys, d_k))
        given = HandInputs(q.astype(float), K.astype(float), 5.0 * rng.integers(0, 7, (keys, d_v)))
        if _is_distinctive(given):
            return given


def _is_distinctive(given: HandInputs) -> bool:
    """Small scores with a unique maximum, distinct values, and no two mistakes with the same answers."""
    scores = np.sort(given.K @ given.q)
    if not scores[-2] < scores[-1] <= 6 or len(np.unique(given.V, axis=0)) < len(given.V):
        return False
    wrong = [(id, answers) for id, ways in MISTAKES if (answers := changed(given, ways))]
    return not any(one != other and _alike(a, b) for (one, a), (other, b) in combinations(wrong, 2))


def _alike(one: Mapping[str, list[float]], other: Mapping[str, list[float]]) -> bool:
    """Whether two mistakes give indistinguishable answers."""
    return one.keys() == other.keys() and all(
        np.allclose(one[step], other[step], rtol=0, atol=2 * TOLERANCES[step]) for step in one
    )


def _mistake(id: str, ways: Mapping[str, StepFunction]) -> SheetMistake:
    def answers(seed: int) -> dict[str, list[float]]:
        return {
            f"{name}.{step}": value
            for name, given in inputs(seed).items()
            for step, value in changed(given, ways).items()
        }

    return SheetMistake(id, answers)


SHEET = Sheet(make, fields, [_mistake(id, ways) for id, ways in MISTAKES])
