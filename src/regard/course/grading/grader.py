"""Grades a learner's source against an exercise and returns the verdict.

The learner's program receives only the calls and runs in a separate process; the expected answers are computed here
from the solution at the same time. The command line, the notebook and the tests all use `grade`.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import numpy as np

from regard.course.exercise import Call, CallResult, Exercise, Grader, Runner, RunResult
from regard.course.grading.comparison import CallComparison, answer_difference, compare
from regard.course.grading.diagnosis import diagnosed, trusted_answers
from regard.course.grading.learner_source import read_source
from regard.course.grading.process import cancelled_on_error
from regard.course.grading.result_texts import as_test, printed, unanswered
from regard.course.grading.sandbox import in_process
from regard.course.grading.sandbox import run as sandboxed
from regard.course.grading.verdict import Test, Verdict
from regard.messages import language, say
from regard.packages import require_package

REPEATS = 8
OF_NUMBERS = ("unknown", "near", "low-precision", "not-shares")
"""General diagnoses of wrong numbers: before one of these, the same call is tried several times."""


def grade(exercise: Exercise, source: str | bytes, *, seed: int | None = None, run: Runner = sandboxed) -> Verdict:
    """Test the source on fresh data, or on the data of a `seed`, and diagnose mistakes."""
    started = time.perf_counter()
    learner_source = read_source(source)
    if learner_source.problem:
        title = getattr(exercise.title, language())
        is_sheet = exercise.sheet is not None
        about = {"title": title, "language": language(), "is_sheet": is_sheet, "argument": exercise.argument}
        return Verdict(exercise.id, False, "syntax", learner_source.problem, **about)
    source = learner_source.text
    if exercise.sheet is not None:
        from regard.course.grading.sheets import grade_sheet

        return grade_sheet(exercise, source)
    assert exercise.grader is not None
    require_package(exercise.track, say("sandbox-exercise"))
    seed = fresh_seed() if seed is None else seed
    calls = partial(_calls, exercise.grader, seed)
    with ThreadPoolExecutor(1) as executor, cancelled_on_error():
        running = executor.submit(copy_context().run, run, source, calls(), exercise.track)  # in the same language
        if run is in_process:
            running.result()  # two programs in one process would share the random state
        expected = trusted_answers(exercise.solution, exercise.grader.cases, seed, exercise.track)
        outcome = running.result()
    requested = calls()
    tests = _compare_all(exercise, requested, expected, outcome)
    passed = not outcome.ended and len(tests) == len(requested) and all(test.right for test in tests)
    mistake, diagnosis = (None, None) if passed else diagnosed(exercise, seed, tests, outcome)
    if mistake in OF_NUMBERS and not _is_repeatable(exercise, source, calls, tests, run):
        mistake, diagnosis = "not-repeatable", say("slip-not-repeatable")
    return Verdict(
        id=exercise.id,
        passed=passed,
        slip=mistake,
        diagnosis=diagnosis,
        tests=tuple(_tests(exercise, requested, tests, outcome)),
        printed=printed(outcome.printed),
        seed=seed,
        seconds=time.perf_counter() - started,
        title=getattr(exercise.title, language()),
        language=language(),
        solution_readable=outcome.solution_readable,
        argument=exercise.argument,
    )


def _is_repeatable(
    exercise: Exercise, source: str, calls: Callable[[], Sequence[Call]], tests: Sequence[CallComparison], run: Runner
) -> bool:
    """Whether the first wrong call gives the same answer several times in a row. A draw may repeat by chance."""
    place = next(place for place, test in enumerate(tests) if not test.same)
    answers = run(source, [calls()[place] for _ in range(REPEATS)], exercise.track).answers
    first, *others = answers or (tests[place].got,)
    return all(
        not one.raised and not one.fault and answer_difference(first, one, exercise.tolerance) is None for one in others
    ) or bool(first.raised or first.fault)


def fresh_seed() -> int:
    """A seed short enough to type, from a source that no program can predict."""
    return int.from_bytes(os.urandom(4)) % 10**8


def _calls(grader: Grader, seed: int) -> Sequence[Call]:
    """New objects on each call: no program sees what another did to its arguments."""
    return grader.cases(np.random.default_rng(seed))


def _compare_all(
    exercise: Exercise, calls: Sequence[Call], expected: Sequence[CallResult], outcome: RunResult
) -> list[CallComparison]:
    """One comparison for each answered call."""
    assert exercise.grader is not None
    given = zip(calls, expected, outcome.answers, strict=False)
    return [
        compare(call.target, right, got, exercise.tolerance, exercise.grader.weights_optional)
        for call, right, got in given
    ]


def _tests(
    exercise: Exercise, calls: Sequence[Call], tests: Sequence[CallComparison], outcome: RunResult
) -> Iterator[Test]:
    loaded = outcome.answers or outcome.ended not in ("syntax", "raises", "refused")
    for place, call in enumerate(calls):
        about = exercise.cases.get(call.about)
        name = getattr(about, language()) if about else say(f"case-{call.about or 'plain'}")
        if place < len(tests):
            yield as_test(name, call, tests[place], exercise)
        else:
            yield unanswered(name, call, exercise.track, reached=bool(loaded) and place == len(tests))
