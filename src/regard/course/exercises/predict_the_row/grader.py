"""The answer sheet of `predict-the-row`: a random query and four keys; which key wins, and roughly by how much?

Small integers and d_k = 4, for mental arithmetic. Drawn until every mistake can be distinguished from the right answer
and from the others: a prediction may be off by 0.1.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations

import numpy as np

from regard.course.exercise import Field, Sheet, SheetMistake
from regard.messages import Language, Message

NAMES = "ABCD"
TOLERANCE = 0.1
APART = 0.12
"""Minimum distance of mistakes from each other and from the right row in some weight; above the tolerance."""

HEAD = Message(
    en="# A query and four keys, d_k = 4. Predict before you check:\n"
    "# winner: the key that gets the most attention. weights: the whole row, to ±0.1, as [0.25, 0.25, 0.25, 0.25].\n",
    zh="# 一个查询，四个键，d_k = 4。先猜，再揭晓：\n"
    "# winner：得到注意力最多的键。weights：整行权重，允许 ±0.1 的误差，写成 [0.25, 0.25, 0.25, 0.25]。\n",
)
REVEALED = Message(en="The right row (scores, scaled, weights):", zh="真正的这一行（得分、缩放后、权重）：")


def softmax(x: np.ndarray) -> np.ndarray:
    exps = np.exp(x - x.max())
    return exps / exps.sum()


# --- known mistakes: functions from scores to a row --------------------------------------------------------

RowFunction = Callable[[np.ndarray], np.ndarray]
ROWS: Mapping[str, RowFunction] = {
    "no-softmax": lambda scores: scores / 2,
    "winner-takes-all": lambda scores: (scores == scores.max()).astype(float),
    "no-scale": softmax,
    "proportional": lambda scores: scores / scores.sum(),
    "uniform": lambda scores: np.full(4, 0.25),
    "smallest-wins": lambda scores: softmax(-scores / 2),
}


@cache
def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The query and the keys of a seed."""
    rng = np.random.default_rng(seed)
    while True:
        q, K = rng.integers(-1, 3, 4), rng.integers(-1, 3, (4, 4))
        if _is_distinctive(K @ q, (K**2).sum(1)):
            return q, K


def _is_distinctive(scores: np.ndarray, lengths: np.ndarray) -> bool:
    """One clear winner, which is not the longest key, and all known mistakes distinguishable."""
    ordered, longest = np.sort(scores), np.sort(lengths)
    if ordered[0] < 0 or ordered[-1] == ordered[-2] or ordered[0] == ordered[1] or longest[-1] == longest[-2]:
        return False
    if scores.argmax() == lengths.argmax() or scores.argmin() == lengths.argmax():
        return False
    rows = [softmax(scores / 2), *(way(scores) for way in ROWS.values())]
    return all(np.abs(one - other).max() > APART for one, other in combinations(rows, 2))


def make(seed: int, lang: Language) -> str:
    """The empty sheet."""
    q, K = drawn(seed)
    keys = [f"# {name} = {key.tolist()}" for name, key in zip(NAMES, K, strict=True)]
    lines = [getattr(HEAD, lang), f"seed = {seed}", "", f"# q = {q.tolist()}", *keys, "", 'winner = ""', "weights = []"]
    return "\n".join(lines) + "\n"


def fields(seed: int) -> Sequence[Field]:
    """The winner, then the row."""
    q, K = drawn(seed)
    weights = softmax(K @ q / 2)
    return [
        Field("winner", NAMES[weights.argmax()], step="winner"),
        Field("weights", weights.round(4).tolist(), TOLERANCE, "weights", total=1.0),
    ]


def reveal(seed: int, lang: Language) -> str:
    """The right row as a bar chart."""
    q, K = drawn(seed)
    scores = K @ q
    weights = softmax(scores / 2)
    rows = zip(NAMES, scores, scores / 2, weights, strict=True)
    bars = [
        f"  {name}  {score:3d}  {half:4.1f}  {weight:.2f}  {'█' * round(40 * weight)}"
        for name, score, half, weight in rows
    ]
    return "\n".join([getattr(REVEALED, lang), *bars])


def _row(id: str, way: RowFunction) -> SheetMistake:
    def answers(seed: int) -> dict[str, object]:
        q, K = drawn(seed)
        scores = K @ q
        wrong: dict[str, object] = {"weights": way(scores).round(4).tolist()}
        return wrong | {"winner": NAMES[scores.argmin()]} if id == "smallest-wins" else wrong

    return SheetMistake(id, answers)


def _longest(seed: int) -> dict[str, object]:
    return {"winner": NAMES[(drawn(seed)[1] ** 2).sum(1).argmax()]}


MISTAKES = (*(_row(id, way) for id, way in ROWS.items()), SheetMistake("longest-key", _longest))

SHEET = Sheet(make, fields, MISTAKES, reveal)
