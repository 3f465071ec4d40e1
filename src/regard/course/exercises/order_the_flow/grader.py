"""The answer sheet of `order-the-flow`: nine boxes of the flow chart with shuffled letters, to be sorted.

Scaling and masking may be exchanged (-inf divided by √d_k is -inf); every other step needs the one before it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from regard.course.exercise import Field, Sheet, SheetMistake
from regard.messages import Language, Message

STEPS = {
    "project": Message(en="X W_q, X W_k, X W_v: Q, K and V", zh="X W_q、X W_k、X W_v：得到 Q、K、V"),
    "split": Message(en="split the features into heads", zh="把特征拆成多头"),
    "score": Message(en="Q Kᵀ in each head: the scores", zh="每个头算 Q Kᵀ：得分"),
    "scale": Message(en="divide the scores by √d_k", zh="得分除以 √d_k"),
    "mask": Message(en="write -inf at the masked positions", zh="在被屏蔽的位置写入 -inf"),
    "softmax": Message(en="softmax over the keys: the weights", zh="沿着键做 softmax：权重"),
    "gather": Message(en="weights times V", zh="权重乘 V"),
    "merge": Message(en="concatenate the heads", zh="拼接各个头"),
    "output": Message(en="times W_o: the output", zh="乘 W_o：输出"),
}
RIGHT = tuple(STEPS)
"""The right order, as in the formula."""
NEEDS = {after: (before,) for before, after in pairwise(RIGHT)} | {"mask": ("score",), "softmax": ("scale", "mask")}
"""The steps whose results each step uses."""
TOO_EARLY = Message(
    en="{step} uses the result of {needed}, so it cannot come before {needed}",
    zh="{step} 要用到 {needed} 的结果，不能排在 {needed} 前面",
)

HEAD = Message(
    en='# Multi-head self-attention in nine steps, shuffled. Type the letters in order: order = "ABCDEFGHI".\n',
    zh='# 多头自注意力的九个步骤，顺序已打乱。请按顺序填字母，比如 order = "ABCDEFGHI"。\n',
)


def letters(seed: int) -> dict[str, str]:
    """The letter of each step; never alphabetical already."""
    rng = np.random.default_rng(seed)
    while True:
        places = rng.permutation(len(STEPS))
        found = {step: "ABCDEFGHI"[place] for step, place in zip(STEPS, places, strict=True)}
        if "ABCDEFGHI" not in ("".join(as_letters(found, order)) for order in equivalent_orders(RIGHT)):
            return found


def as_letters(letter: dict[str, str], order: Sequence[str]) -> tuple[str, ...]:
    """Steps as letters."""
    return tuple(letter[step] for step in order)


def equivalent_orders(order: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """An order, and the same with scaling and masking exchanged."""
    exchanged = {"scale": "mask", "mask": "scale"}
    return tuple(order), tuple(exchanged.get(step, step) for step in order)


def make(seed: int, lang: Language) -> str:
    """The empty sheet."""
    listed = sorted((letter, getattr(STEPS[step], lang)) for step, letter in letters(seed).items())
    boxes = [f"# {letter}  {words}" for letter, words in listed]
    return "\n".join([getattr(HEAD, lang), *boxes, "", f"seed = {seed}", 'order = ""']) + "\n"


def fields(seed: int) -> Sequence[Field]:
    """One answer, with two accepted orders."""
    letter = letters(seed)
    expected, other = ("".join(as_letters(letter, order)) for order in equivalent_orders(RIGHT))
    return [Field("order", expected, step="order", alternatives=(other,))]


def moved(step: str, after: str | None) -> tuple[str, ...]:
    """The right order with one step moved after another; None: to the front."""
    rest = [each for each in RIGHT if each != step]
    place = 0 if after is None else rest.index(after) + 1
    return (*rest[:place], step, *rest[place:])


WRONG: Sequence[tuple[str, tuple[str, ...]]] = (
    ("split-before-projecting", moved("split", None)),
    ("scale-after-softmax", moved("scale", "softmax")),
    ("scale-after-values", moved("scale", "gather")),
    ("scale-before-scores", moved("scale", "split")),
    ("mask-after-softmax", moved("mask", "softmax")),
    ("mask-before-scores", moved("mask", "split")),
    ("softmax-before-scores", moved("softmax", "split")),
    ("softmax-after-values", moved("softmax", "gather")),
    ("values-before-softmax", moved("gather", "score")),
    ("merge-after-output", moved("merge", "output")),
    ("merge-before-values", moved("merge", "softmax")),
    ("output-before-values", moved("output", "softmax")),
    ("backwards", RIGHT[::-1]),
)


def mistakes(id: str, order: tuple[str, ...]) -> list[SheetMistake]:
    """With scaling and masking in this order, and exchanged if they are adjacent."""
    adjacent = abs(order.index("scale") - order.index("mask")) == 1

    def typing(order: tuple[str, ...]) -> Callable[[int], dict[str, str]]:
        return lambda seed: {"order": "".join(as_letters(letters(seed), order))}

    return [SheetMistake(id, typing(each)) for each in (equivalent_orders(order) if adjacent else [order])]


def too_early(seed: int, name: str, typed: str, lang: Language) -> str | None:
    """A message about the first step that precedes one it needs; None if there is none, or a letter is wrong."""
    letter = letters(seed)
    if sorted(typed) != sorted(letter.values()):
        return None
    place = {step: typed.index(letter[step]) for step in STEPS}
    for step in sorted(NEEDS, key=place.__getitem__):
        for needed in NEEDS[step]:
            if place[step] < place[needed]:
                return str(getattr(TOO_EARLY, lang)).format(step=letter[step], needed=letter[needed])
    return None


SHEET = Sheet(make, fields, [mistake for id, order in WRONG for mistake in mistakes(id, order)], remark=too_early)
