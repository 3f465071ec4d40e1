"""The calls in the example of a task, added to the tests of its grader.

The lines after the prompt run once with the solution, and each call of a tested function is recorded.
"""

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache, wraps
from typing import Any

import numpy as np

from regard.course.exercise import Call, Grader

ABOUT = "example"
_LINE = re.compile(r"^ {4}(?:>>>|\.\.\.)(?: (.*))?$", re.MULTILINE)


def example_calls(task: str, solution: str, targets: Sequence[str]) -> tuple[Call, ...]:
    """The calls of `targets` in the example, in order.

    >>> example_calls(f"    {'>' * 3} f(2)", "def f(x): return x * x", ["f"])[0].args
    (2,)
    """
    lines = "\n".join(_LINE.findall(task))
    found: list[Call] = []
    running: list[str] = []

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not running:  # a call by another tested function is not part of the example
                found.append(Call(name, deepcopy(args), deepcopy(kwargs), ABOUT))
            running.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                running.pop()

        return call

    space: dict[str, Any] = {"np": np}
    if lines:
        exec(compile(solution, "<solution>", "exec", dont_inherit=True), space)
        space |= {name: recorded(name, space[name]) for name in targets}
        exec(compile(lines, "<example>", "exec", dont_inherit=True), space)
    return tuple(found)


def with_examples(grader: Grader, task: str, solution: str) -> Grader:
    """The grader with the calls of the task's example before its own. They are collected on first use."""
    own = grader.cases

    @cache
    def printed() -> tuple[Call, ...]:
        targets = dict.fromkeys(call.target for call in own(np.random.default_rng(0)) if call.instance is None)
        return example_calls(task, solution, list(targets))

    def cases(rng: np.random.Generator) -> Sequence[Call]:
        return [*deepcopy(printed()), *own(rng)]

    return replace(grader, cases=cases)
