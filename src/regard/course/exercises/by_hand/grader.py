"""The sheet of `by-hand`: the three calculations of the tutorials, step by step, and where people go wrong.

Every right number is calculated here; the wrong ones are calculated the wrong way, so that each can be told by name.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from regard.course.exercise import Field, Sheet, SheetSlip
from regard.words import Language, Words

STEPS = ("scores", "scaled", "weights", "output")
TOLERANCES = {"scores": 0.001, "scaled": 0.005, "weights": 0.005, "output": 0.01}


class Given(NamedTuple):
    """One query, its keys and values."""

    q: np.ndarray
    K: np.ndarray
    V: np.ndarray


INPUTS = {
    "first": Given(np.array([1.0, 0]), np.array([[1.0, 0], [0, 1], [1, 0]]), np.array([[10.0, 0], [0, 20], [30, 0]])),
    "second": Given(np.array([1.0]), np.array([[1], [2], [0.5]]), np.array([[10.0], [20], [5]])),
    "third": Given(np.array([1.0, 0]), np.eye(2), np.array([[5.0, 0], [0, 10]])),
}

HEAD = Words(
    en="# Fill in the numbers between the brackets: [0.40, 0.20, 0.40]. Keep four decimals on the way, and round\n"
    "# at the end only. Weights count to ±0.005, outputs to ±0.01.\n",
    zh="# 把数字填进方括号：[0.40, 0.20, 0.40]。中间步骤保留四位小数，只在最后四舍五入。\n"
    "# 权重允许 ±0.005 的误差，输出允许 ±0.01。\n",
)
ABOUT = {
    "scores": Words(en="q · each key", zh="q 和每个键的点积"),
    "scaled": Words(en="scores / √d_k", zh="得分 / √d_k"),
    "weights": Words(en="softmax(scaled)", zh="softmax(scaled)"),
    "output": Words(en="weights · V", zh="权重 · V"),
}


def softmax(x: np.ndarray) -> np.ndarray:
    """As it is done by hand: these scores are small."""
    return np.exp(x) / np.exp(x).sum()


def make(seed: int, lang: Language) -> str:
    """The empty sheet."""
    lines = [getattr(HEAD, lang), f"seed = {seed}"]
    for name, (q, K, V) in INPUTS.items():
        lines += ["", f"[{name}]", f"# q = {_plain(q)}", f"# K = {_plain(K)}", f"# V = {_plain(V)}"]
        lines += [f"{step} = []".ljust(16) + f"# {getattr(ABOUT[step], lang)}" for step in STEPS]
    return "\n".join(lines) + "\n"


def _plain(array: np.ndarray) -> str:
    """Numbers as people write them: 10 and 0.5."""
    inner = ", ".join(_plain(part) if array.ndim > 1 else f"{part:g}" for part in array)
    return f"[{inner}]"


# --- right, and wrong in known ways ------------------------------------------------------------------------

Way = Callable[[Given, np.ndarray], np.ndarray]
"""One step: what is given, and what the step before left."""


def calculated(
    given: Given,
    scale: Way = lambda given, scores: scores / np.sqrt(len(given.q)),
    normalise: Way = lambda given, scaled: softmax(scaled),
    gather: Way = lambda given, weights: weights @ given.V,
) -> dict[str, np.ndarray]:
    """The four steps, each of which may be done another way; a wrong step goes on into those after it."""
    scores = given.K @ given.q
    scaled = scale(given, scores)
    weights = normalise(given, scaled)
    return dict(zip(STEPS, (scores, scaled, weights, gather(given, weights)), strict=True))


RIGHT = {name: calculated(given) for name, given in INPUTS.items()}


def fields(seed: int) -> Sequence[Field]:
    """The same for every seed: these three inputs are the tutorials'."""
    return [
        Field(f"{name}.{step}", value.round(6).tolist(), TOLERANCES[step], step)
        for name, steps in RIGHT.items()
        for step, value in steps.items()
    ]


def slip(id: str, **ways: Way) -> SheetSlip:
    """A step done another way, as the answers that it changes."""
    answers = {
        f"{name}.{step}": value.round(6).tolist()
        for name, given in INPUTS.items()
        for step, value in calculated(given, **ways).items()
        if not np.allclose(value, RIGHT[name][step], rtol=0, atol=TOLERANCES[step])
    }
    return SheetSlip(id, lambda seed: answers)


def typed(id: str, answers: dict[str, list[float]]) -> SheetSlip:
    """Answers as they stand in print, or come from weights cut short."""
    return SheetSlip(id, lambda seed: answers)


def shared(parts: np.ndarray) -> np.ndarray:
    """Parts of 1."""
    return parts / parts.sum()


SLIPS = (
    slip("zero-score-zero-weight", normalise=lambda given, scaled: shared(np.where(scaled == 0, 0, np.exp(scaled)))),
    typed("rounded-early", {"second.output": [15.57]}),
    typed("rounded-early", {"first.output": [16.0, 4.0], "second.output": [15.6]}),
    slip("no-scale", scale=lambda given, scores: scores),
    slip("divided-by-d-k", scale=lambda given, scores: scores / len(given.q)),
    slip("sqrt-keys", scale=lambda given, scores: scores / np.sqrt(len(given.K))),
    slip("multiplied", scale=lambda given, scores: scores * np.sqrt(len(given.q))),
    slip("scaling-not-used", normalise=lambda given, scaled: softmax(scaled * np.sqrt(len(given.q)))),
    slip("no-softmax", normalise=lambda given, scaled: scaled),
    slip("not-normalised", normalise=lambda given, scaled: np.exp(scaled)),
    slip("proportional", normalise=lambda given, scaled: shared(scaled)),
    slip("winner-takes-all", normalise=lambda given, scaled: shared((scaled == scaled.max()).astype(float))),
    slip("base-2", normalise=lambda given, scaled: shared(2**scaled)),
    slip("keys-for-values", gather=lambda given, weights: weights @ given.K),
    slip("plain-mean", gather=lambda given, weights: given.V.mean(0)),
    slip("plain-sum", gather=lambda given, weights: given.V.sum(0)),
)

SHEET = Sheet(make, fields, SLIPS)
