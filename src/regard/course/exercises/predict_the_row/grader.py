"""The sheet of `predict-the-row`: a fresh query and four keys; which key wins, and roughly by how much?

Small whole numbers and d_k = 4, so that it can be done in the head. Drawn until every slip would be told from the
truth and from the others: a foretelling counts to ±0.1.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations

import numpy as np

from regard.course.exercise import Field, Sheet, SheetSlip
from regard.messages import Language, Words

NAMES = "ABCD"
TOLERANCE = 0.1
APART = 0.12
"""How far slips are from each other, and from the truth, in some weight: more than the tolerance."""

HEAD = Words(
    en="# A query and four keys, d_k = 4. Before anything is calculated for you:\n"
    "# winner: the key that gets the most attention. weights: the whole row, to ±0.1, as [0.25, 0.25, 0.25, 0.25].\n",
    zh="# 一个查询，四个键，d_k = 4。先猜，再揭晓：\n"
    "# winner：得到注意力最多的键。weights：整行权重，允许 ±0.1 的误差，写成 [0.25, 0.25, 0.25, 0.25]。\n",
)
REVEALED = Words(en="The row, as it is (scores, scaled, weights):", zh="真正的这一行（得分、缩放后、权重）：")


def softmax(x: np.ndarray) -> np.ndarray:
    exps = np.exp(x - x.max())
    return exps / exps.sum()


# --- wrong in known ways: scores and keys to a row ---------------------------------------------------------

Way = Callable[[np.ndarray], np.ndarray]
ROWS: Mapping[str, Way] = {
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
        if _telling(K @ q, (K**2).sum(1)):
            return q, K


def _telling(scores: np.ndarray, lengths: np.ndarray) -> bool:
    """One clear winner, which is not the longest key, and every known way of going wrong apart from the others."""
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
    """The true row, drawn."""
    q, K = drawn(seed)
    scores = K @ q
    weights = softmax(scores / 2)
    rows = zip(NAMES, scores, scores / 2, weights, strict=True)
    bars = [
        f"  {name}  {score:3d}  {half:4.1f}  {weight:.2f}  {'█' * round(40 * weight)}"
        for name, score, half, weight in rows
    ]
    return "\n".join([getattr(REVEALED, lang), *bars])


def _row(id: str, way: Way) -> SheetSlip:
    def answers(seed: int) -> dict[str, object]:
        q, K = drawn(seed)
        scores = K @ q
        wrong: dict[str, object] = {"weights": way(scores).round(4).tolist()}
        return wrong | {"winner": NAMES[scores.argmin()]} if id == "smallest-wins" else wrong

    return SheetSlip(id, answers)


def _longest(seed: int) -> dict[str, object]:
    return {"winner": NAMES[(drawn(seed)[1] ** 2).sum(1).argmax()]}


SLIPS = (*(_row(id, way) for id, way in ROWS.items()), SheetSlip("longest-key", _longest))

SHEET = Sheet(make, fields, SLIPS, reveal)
