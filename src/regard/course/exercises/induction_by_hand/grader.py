"""The answer sheet of `induction-by-hand`: a previous-token head and an induction head on five tokens, by hand.

The scores of the first head are ln(strength) and 0, so that its weights are simple fractions. Seed 0 is "A B C A B";
other seeds draw the letters, the pattern and both strengths.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from regard.course.exercise import Field, Sheet, SheetMistake
from regard.messages import Language, Message

PATTERNS = ("ABCAB", "ABCDB", "ABCAC", "ABCDC")
"""The last token occurred once before, not in the first place, and the tokens around that place differ."""
T = 5
ROWS = tuple(f"previous.row_{place}" for place in range(1, T + 1))
TOLERANCES = {"previous": 0.005, "match": 0.005, "scores": 0.02, "weights": 0.01}

HEAD = Message(
    en="# Fill in the numbers between the brackets, five each, with three decimals: [0.25, 0.5, 0.25, 0, 0]. Type a\n"
    "# fraction as a decimal number. Tolerance: ±0.005, for scores ±0.02, for the last weights ±0.01.\n",
    zh="# 把数字填进方括号，每行五个，保留三位小数：[0.25, 0.5, 0.25, 0, 0]。\n"
    "# 分数要写成小数。允许 ±0.005 的误差，scores 允许 ±0.02，最后的 weights 允许 ±0.01。\n",
)
TEXT = Message(en="# The text, positions 1 to 5:  {}", zh="# 文本，位置 1 到 5：  {}")
FIRST = Message(
    en="# Layer 1, previous-token head: score ln {0} for the position before (its exp is {0}), 0 for the others.",
    zh="# 第 1 层，前一词元头：对前一个位置的得分是 ln {0}（取 exp 得 {0}），对其他位置是 0。",
)
SECOND = Message(
    en="# Layer 2, induction head, only its row 5: score = {} · match.",
    zh="# 第 2 层，归纳头，只算第 5 行：score = {} · match。",
)
ROW = Message(en="row {}: attention of position {} over positions 1 to 5", zh="第 {} 行：位置 {} 对位置 1 到 5 的权重")
ABOUT = {
    "match": Message(
        en="how much of token 5 layer 1 wrote into each position", zh="第 1 层往每个位置写入了多少第 5 个词元"
    ),
    "scores": Message(en="{} · match", zh="{} · match"),
    "weights": Message(en="softmax(scores)", zh="softmax(scores)"),
    "prediction": Message(en="the token that the head copies, a letter", zh="这个头复制的词元，填字母"),
}
REVEALED = Message(
    en="Row 5 of the induction head: it attends most to the token that followed the earlier one.",
    zh="归纳头的第 5 行：最关注的，是上次出现之后的那个词元。",
)


class Drawn(NamedTuple):
    """One sheet: five letters, exp of the score of the previous-token head, and the factor of the induction head."""

    text: str
    strength: int
    factor: int


@cache
def drawn(seed: int) -> Drawn:
    """The text and the strengths of a seed."""
    if seed == 0:
        return Drawn("ABCAB", 4, 3)
    rng = np.random.default_rng(seed)
    letters = "".join(rng.permutation(list("ABCDEFGH")))
    pattern = PATTERNS[rng.integers(len(PATTERNS))]
    return Drawn(
        pattern.translate(str.maketrans("ABCD", letters[:4])), int(rng.choice([4, 6, 9])), int(rng.choice([3, 4]))
    )


# --- right answers and known mistakes ----------------------------------------------------------------------


def softmax(x: np.ndarray) -> np.ndarray:
    """Over the last axis; these scores are small."""
    powers = np.exp(x)
    return powers / powers.sum(axis=-1, keepdims=True)


def previous_head(given: Drawn) -> np.ndarray:
    """The weights of layer 1, T × T."""
    return softmax(np.where(np.tri(T) > 0, np.log(given.strength) * np.eye(T, k=-1), -np.inf))


def matched(given: Drawn, previous: np.ndarray) -> np.ndarray:
    """The weight of each row on the places of the last token: its share of what layer 1 wrote."""
    return previous @ np.array([letter == given.text[-1] for letter in given.text], dtype=float)


def earlier(given: Drawn) -> int:
    """The earlier place of the last token, from 0."""
    return given.text.index(given.text[-1])


StepFunction = Callable[..., Any]


def calculated(given: Drawn, **ways: StepFunction) -> dict[str, Any]:
    """All answers by field; a step replaced in `ways` affects the later ones."""
    previous = ways.get("previous", previous_head)(given)
    match = ways.get("match", matched)(given, previous)
    scores = ways.get("scores", lambda given, match: given.factor * match)(given, match)
    weights = ways.get("weights", lambda given, scores: softmax(scores))(given, scores)
    prediction = ways.get("prediction", lambda given, weights: given.text[weights.argmax()])(given, weights)
    steps = {"match": match, "scores": scores, "weights": weights}
    return {
        **{name: row.round(6).tolist() for name, row in zip(ROWS, previous, strict=True)},
        **{f"induction.{step}": value.round(6).tolist() for step, value in steps.items()},
        "induction.prediction": prediction,
    }


def _hot(place: int) -> np.ndarray:
    return np.eye(T)[place]


MISTAKES: Mapping[str, Mapping[str, StepFunction]] = {
    "attends-to-itself": {
        "previous": lambda given: softmax(np.where(np.tri(T) > 0, np.log(given.strength) * np.eye(T), -np.inf))
    },
    "no-causal-mask": {"previous": lambda given: softmax(np.log(given.strength) * np.eye(T, k=-1))},
    "zero-score-zero-weight": {"previous": lambda given: np.vstack([_hot(0), np.eye(T)[:-1]])},
    "not-normalised": {"previous": lambda given: np.tri(T) + (given.strength - 1) * np.eye(T, k=-1)},
    "log-for-exp": {
        "previous": lambda given: (
            (n := np.tri(T) + (np.log(given.strength) - 1) * np.eye(T, k=-1)) / n.sum(-1, keepdims=True)
        )
    },
    "itself-left-out": {
        "previous": lambda given: np.vstack(
            [
                _hot(0),
                (n := np.tri(T, k=-1)[1:] + (given.strength - 1) * np.eye(T, k=-1)[1:]) / n.sum(-1, keepdims=True),
            ]
        )
    },
    "same-token": {
        "match": lambda given, previous: np.array([float(letter == given.text[-1]) for letter in given.text])
    },
    "hard-match": {"match": lambda given, previous: _hot(earlier(given) + 1)},
    "one-place-only": {"match": lambda given, previous: previous[:, earlier(given)]},
    "column-five": {"match": lambda given, previous: previous[:, -1]},
    "row-five": {"match": lambda given, previous: previous[-1]},
    "not-multiplied": {"scores": lambda given, match: match},
    "scaled-by-root": {"scores": lambda given, match: given.factor * match / np.sqrt(T)},
    "no-softmax": {"weights": lambda given, scores: scores},
    "exp-only": {"weights": lambda given, scores: np.exp(scores)},
    "proportional": {"weights": lambda given, scores: scores / scores.sum()},
    "winner-takes-all": {"weights": lambda given, scores: _hot(scores.argmax())},
    "itself-hidden": {"weights": lambda given, scores: np.append(softmax(scores[:-1]), 0.0)},
    "copies-itself": {"prediction": lambda given, weights: given.text[-1]},
    "token-before": {"prediction": lambda given, weights: given.text[earlier(given) - 1]},
}


def tolerance(name: str) -> float:
    """The tolerance of a field."""
    home, _, step = name.partition(".")
    return TOLERANCES.get(home, TOLERANCES.get(step, 0.0))


def changed(given: Drawn, ways: Mapping[str, StepFunction]) -> dict[str, Any]:
    """The answers that a mistake changes by more than the tolerance."""
    right = calculated(given)
    return {
        name: value
        for name, value in calculated(given, **ways).items()
        if (value != right[name] if isinstance(value, str) else not np.allclose(value, right[name], 0, tolerance(name)))
    }


def _mistake(id: str, ways: Mapping[str, StepFunction]) -> SheetMistake:
    return SheetMistake(id, lambda seed: changed(drawn(seed), ways))


# --- the sheet ---------------------------------------------------------------------------------------------


def make(seed: int, lang: Language) -> str:
    """The empty sheet."""
    text, strength, factor = drawn(seed)
    lines = [getattr(HEAD, lang), f"seed = {seed}", "", getattr(TEXT, lang).format("  ".join(text))]
    lines += ["", getattr(FIRST, lang).format(strength), "[previous]"]
    lines += [f"row_{n} = []".ljust(16) + f"# {getattr(ROW, lang).format(n, n)}" for n in range(1, T + 1)]
    lines += ["", getattr(SECOND, lang).format(factor), "[induction]"]
    for step, about in ABOUT.items():
        empty = '""' if step == "prediction" else "[]"
        lines.append(f"{step} = {empty}".ljust(16) + f"# {getattr(about, lang).format(factor)}")
    return "\n".join(lines) + "\n"


def fields(seed: int) -> Sequence[Field]:
    """The five rows of layer 1, then the four steps of layer 2."""
    given = drawn(seed)
    return [
        Field(
            name,
            value,
            tolerance(name),
            "row" if name in ROWS else name.split(".")[1],
            total=1.0 if name in ROWS or name == "induction.weights" else None,
        )
        for name, value in calculated(given).items()
    ]


def reveal(seed: int, lang: Language) -> str:
    """The last row of the induction head as a bar chart."""
    given = drawn(seed)
    weights = calculated(given)["induction.weights"]
    bars = [
        f"  {letter}  {weight:.2f}  {'█' * round(40 * weight)}"
        for letter, weight in zip(given.text, weights, strict=True)
    ]
    return "\n".join([getattr(REVEALED, lang), *bars])


SHEET = Sheet(make, fields, [_mistake(id, ways) for id, ways in MISTAKES.items()], reveal)
