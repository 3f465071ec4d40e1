"""A small exercise for tests of the grader: `shift(x, by=1.0)` subtracts the mean and adds `by`."""

from collections.abc import Sequence

import numpy as np
import pytest

from regard.course.exercise import Call, Exercise, Grader, Mistake, call
from regard.messages import Message

SOLUTION = """
import numpy as np


def shift(x, by=1.0):
    if x.ndim != 2:
        raise ValueError("two axes, please")
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred + by
"""


def cases(rng: np.random.Generator) -> Sequence[Call]:
    def numbers(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).round(2)

    return [
        call("shift", numbers(2, 3)),
        call("shift", numbers(4, 3), by=2.5, about="by"),
        call("shift", numbers(3, 2), -1.0),
        call("shift", numbers(3), about="axes"),
    ]


@pytest.fixture
def shift() -> Exercise:
    mistakes = (
        Mistake("over-rows", (("axis=-1", "axis=0"),)),
        Mistake("not-shifted", (("centred + by", "centred"),)),
        Mistake("not-centred", (("x - x.mean(axis=-1, keepdims=True)", "x"),)),
    )
    return Exercise(
        id="shift",
        kind="code",
        track="numpy",
        lesson=1,
        title=Message(en="Shift", zh="平移"),
        task=Message(en="Write shift.", zh="写 shift。"),
        hints={"en": ("a", "b", "c"), "zh": ("一", "二", "三")},
        cases={"by": Message(en="another shift", zh="另一个平移"), "axes": Message(en="one axis", zh="只有一个轴")},
        mistakes={mistake.id: Message(en=f"mistake {mistake.id}", zh=f"错误 {mistake.id}") for mistake in mistakes},
        stub="def shift(x, by=1.0):\n    raise NotImplementedError\n",
        solution=SOLUTION,
        grader=Grader(cases, mistakes),
        sheet=None,
    )
