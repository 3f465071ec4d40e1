"""Wrong programs derived from a solution, for the tests of the exercises."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from regard.course.catalogue import exercise
from regard.course.exercise import Mistake
from regard.course.grading import grader
from regard.course.grading.sandbox import in_process

Swaps = tuple[tuple[str, str], ...]
"""(old, new): each `old` occurs in the solution, and every occurrence is replaced."""


def each(programs: Mapping[str, Mapping[str, Swaps]]) -> list[Any]:
    """One pytest parameter per program: the exercise and the replacements, with a readable id."""
    return [
        pytest.param(name, swaps, id=f"{name}: {what}") for name, own in programs.items() for what, swaps in own.items()
    ]


def passes(name: str, swaps: Swaps, seed: int) -> bool:
    """Whether the program passes; skips the diagnosis, which takes most of the time."""
    tried = exercise(name)
    with mock.patch.object(grader, "diagnosed", return_value=("wrong", "")):
        return grader.grade(tried, Mistake("wrong", swaps).text(tried.solution), seed=seed, run=in_process).passed
