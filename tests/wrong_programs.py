"""Wrong programs made from a solution, and whether a check lets them pass; for the tests of the exercises."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from regard.course.catalogue import exercise
from regard.course.exercise import Slip
from regard.course.grading import grader
from regard.course.grading.sandbox import in_process

Swaps = tuple[tuple[str, str], ...]
"""(old, new): each `old` stands in the solution, and all its places are replaced."""


def each(programs: Mapping[str, Mapping[str, Swaps]]) -> list[Any]:
    """One parameter set a program: the exercise and the swaps, under a readable name."""
    return [
        pytest.param(name, swaps, id=f"{name}: {what}") for name, own in programs.items() for what, swaps in own.items()
    ]


def passes(name: str, swaps: Swaps, seed: int) -> bool:
    """Whether the program passes; why it does not is left out, which takes most of the time."""
    tried = exercise(name)
    with mock.patch.object(grader, "diagnosed", return_value=("wrong", "")):
        return grader.grade(tried, Slip("wrong", swaps).text(tried.solution), seed=seed, run=in_process).passed
