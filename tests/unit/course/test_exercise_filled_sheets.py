"""Filled sheets are graded as right, or with the mistake that was filled in."""

import pytest

from regard.course.catalogue import entries, exercise
from regard.course.exercise import filled_sheet
from regard.course.grading.grader import grade


@pytest.mark.parametrize("name", [row.id for row in entries() if row.kind == "sheet"])
def test_a_filled_sheet_passes_and_a_changed_one_does_not(name: str) -> None:
    tried = exercise(name)
    assert tried.sheet is not None
    assert grade(tried, filled_sheet(tried.sheet, 4)).passed
    mistake = tried.sheet.mistakes[0]
    assert grade(tried, filled_sheet(tried.sheet, 4, mistake.answers(4))).mistake == mistake.id
