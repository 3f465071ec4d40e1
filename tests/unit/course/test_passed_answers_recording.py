"""A recorded check: progress always, the answer if it passed, and under a key of its own for a teacher's exercise."""

from pathlib import Path

import pytest

from regard.course.exercise import Exercise
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.course.passed_answers import PassedAnswers, record
from regard.course.progress import ProgressFile


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))


def fail(message: str) -> None:
    raise AssertionError(message)


def test_a_failed_check_keeps_no_answer(shift: Exercise) -> None:
    record(shift, grade(shift, shift.stub, run=in_process), shift.stub, fail)
    assert ProgressFile().read().work("shift").attempts == 1
    assert PassedAnswers().read("shift") is None


def test_a_pass_of_an_own_exercise_is_kept_under_its_own_key(shift: Exercise) -> None:
    own = Exercise(**{**vars(shift), "folder": "./shift"})
    source = f"\ufeff{shift.solution}".replace("\n", "\r\n").encode()
    record(own, grade(own, source, run=in_process), source, fail)
    progress = ProgressFile().read()
    assert progress.passed("own.shift")
    assert not progress.passed("shift")
    assert PassedAnswers().read("own.shift") == shift.solution.encode()


def test_what_cannot_be_written_is_reported_once(shift: Exercise, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    said: list[str] = []
    record(shift, grade(shift, shift.solution, run=in_process), shift.solution, said.append)
    assert len(said) == 1
