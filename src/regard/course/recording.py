"""Records a check: its result in the progress file, and the answer if it passed. For the command and for notebooks."""

from collections.abc import Callable

from regard.course.exercise import Exercise
from regard.course.grading.learner_source import read_source
from regard.course.grading.verdict import Verdict
from regard.course.passed_answers import ENDINGS, PassedAnswers
from regard.course.progress import ProgressFile


def record(exercise: Exercise, verdict: Verdict, answer: str | bytes, report: Callable[[str], object]) -> None:
    """Record one check. Never raises: what cannot be written is reported."""
    progress_file = ProgressFile(report=report)
    progress_file.checked(exercise.key, verdict.passed)
    if verdict.passed and progress_file.is_saved:
        ending = ENDINGS[exercise.sheet is not None]
        PassedAnswers(report=report).keep(exercise.key, read_source(answer).text, ending)
