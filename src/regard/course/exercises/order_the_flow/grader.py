"""The sheet of `order-the-flow`: nine boxes of the flow chart under shuffled letters, to be put in order.

Scaling and masking may change places (-inf divided by √d_k is -inf); every other step needs the one before it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from regard.course.exercise import Field, Sheet, SheetSlip
from regard.messages import Language, Words

STEPS = {
    "project": Words(en="X W_q, X W_k, X W_v: Q, K and V", zh="X W_q、X W_k、X W_v：得到 Q、K、V"),
    "split": Words(en="cut the features into heads", zh="把特征拆成多头"),
    "score": Words(en="Q Kᵀ in each head: the scores", zh="每个头算 Q Kᵀ：得分"),
    "scale": Words(en="divide the scores by √d_k", zh="得分除以 √d_k"),
    "mask": Words(en="write -inf where nobody may look", zh="在不许看的地方写上 -inf"),
    "softmax": Words(en="softmax over the keys: the weights", zh="沿着键做 softmax：权重"),
    "gather": Words(en="weights times V", zh="权重乘 V"),
    "merge": Words(en="set the heads side by side again", zh="把各个头重新拼起来"),
    "output": Words(en="times W_o: the output", zh="乘 W_o：输出"),
}
RIGHT = tuple(STEPS)
"""In order, as the formula is written."""
NEEDS = {after: (before,) for before, after in pairwise(RIGHT)} | {"mask": ("score",), "softmax": ("scale", "mask")}
"""Whose results a step uses."""
TOO_EARLY = Words(
    en="{step} uses what {needed} makes, so it cannot stand before {needed}",
    zh="{step} 要用到 {needed} 的结果，不能排在 {needed} 前面",
)

HEAD = Words(
    en='# Multi-head self-attention in nine steps, shuffled. Type the letters in order: order = "ABCDEFGHI".\n',
    zh='# 多头自注意力的九个步骤，顺序已打乱。请按顺序填字母，比如 order = "ABCDEFGHI"。\n',
)


def letters(seed: int) -> dict[str, str]:
    """The letter of each step; never already in order."""
    rng = np.random.default_rng(seed)
    while True:
        places = rng.permutation(len(STEPS))
        found = {step: "ABCDEFGHI"[place] for step, place in zip(STEPS, places, strict=True)}
        if "ABCDEFGHI" not in ("".join(spelled(found, order)) for order in both(RIGHT)):
            return found


def spelled(letter: dict[str, str], order: Sequence[str]) -> tuple[str, ...]:
    """Steps as letters."""
    return tuple(letter[step] for step in order)


def both(order: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """An order, and the same with scaling and masking changed about."""
    turned = {"scale": "mask", "mask": "scale"}
    return tuple(order), tuple(turned.get(step, step) for step in order)


def make(seed: int, lang: Language) -> str:
    """The empty sheet."""
    listed = sorted((letter, getattr(STEPS[step], lang)) for step, letter in letters(seed).items())
    boxes = [f"# {letter}  {words}" for letter, words in listed]
    return "\n".join([getattr(HEAD, lang), *boxes, "", f"seed = {seed}", 'order = ""']) + "\n"


def fields(seed: int) -> Sequence[Field]:
    """One answer, right in two ways."""
    letter = letters(seed)
    expected, other = ("".join(spelled(letter, order)) for order in both(RIGHT))
    return [Field("order", expected, step="order", also=(other,))]


def moved(step: str, after: str | None) -> tuple[str, ...]:
    """The right order with one step moved behind another; None: to the front."""
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


def slips(id: str, order: tuple[str, ...]) -> list[SheetSlip]:
    """With scaling and masking as they stand, and changed about where they stand side by side."""
    beside = abs(order.index("scale") - order.index("mask")) == 1

    def typing(order: tuple[str, ...]) -> Callable[[int], dict[str, str]]:
        return lambda seed: {"order": "".join(spelled(letters(seed), order))}

    return [SheetSlip(id, typing(each)) for each in (both(order) if beside else [order])]


def too_early(seed: int, name: str, typed: str, lang: Language) -> str | None:
    """The first step that stands before one it needs; None where there is none, or a letter is not a box's."""
    letter = letters(seed)
    if sorted(typed) != sorted(letter.values()):
        return None
    place = {step: typed.index(letter[step]) for step in STEPS}
    for step in sorted(NEEDS, key=place.__getitem__):
        for needed in NEEDS[step]:
            if place[step] < place[needed]:
                return str(getattr(TOO_EARLY, lang)).format(step=letter[step], needed=letter[needed])
    return None


SHEET = Sheet(make, fields, [slip for id, order in WRONG for slip in slips(id, order)], remark=too_early)
