"""The calls that test an answer, and the known mistakes. 测试答案的各次调用，以及已知的错误。"""

from collections.abc import Sequence

import numpy as np

from regard.course.exercise import Call, Grader, Mistake, Tolerance, call


def cases(rng: np.random.Generator) -> Sequence[Call]:
    """New data for every check, from rng: small, so that a learner can read them, with the edge cases.

    每次批改用 rng 生成新的数据：数据要小，便于阅读，并包括边界情况。
    """

    def numbers(*shape: int) -> np.ndarray:
        return rng.normal(0.0, 3.0, shape).round(2)

    def mask(*visible: int, size: int) -> np.ndarray:
        return np.isin(np.arange(size), visible)

    # call(function, arguments…, about=key of [cases] in task.toml); the expected results come from solution.py.
    # call(函数名, 参数…, about=task.toml 里 [cases] 的名字)；正确结果由 solution.py 算出。
    return [
        call("mean_pooling", numbers(4, 3), mask(0, 1, size=4)),
        call("mean_pooling", numbers(5, 2), mask(1, 2, 4, size=5)),
        call("mean_pooling", numbers(3, 4), mask(0, 1, 2, size=3), about="no-padding"),
        call("mean_pooling", numbers(2, 3), mask(size=2), about="all-padding"),
        call("mean_pooling", numbers(3, 3), mask(0, 2, size=3), about="square"),
    ]


TOKENS, COUNT = "mask[:, None].astype(float)", "max(tokens.sum(), 1.0)"

# A mistake is solution.py with some text replaced: (old, new). Its id is a key of [mistakes] in task.toml.
# 一种错误就是替换了几处文字的 solution.py：(原文, 新文)。它的名字是 task.toml 里 [mistakes] 的名字。
MISTAKES = (
    Mistake("no-mask", ((TOKENS, "np.ones((len(x), 1))"),)),
    Mistake("divided-by-all", ((COUNT, "len(x)"),)),
    Mistake("not-divided", ((" / count", ""),)),
    Mistake("inverted", ((TOKENS, "(~mask)[:, None].astype(float)"),)),
    Mistake("over-features", (("axis=0", "axis=1"),)),
    Mistake("largest", (("(x * tokens).sum(axis=0) / count", "np.where(tokens > 0, x, 0).max(axis=0)"),)),
    Mistake("nan-without-tokens", ((COUNT, "tokens.sum()"),)),
)

GRADER = Grader(cases, MISTAKES, tolerance=Tolerance(rtol=1e-6, atol=1e-8))
