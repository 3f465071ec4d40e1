"""The one grader: a learner's text against an exercise, and the verdict.

The learner's program gets the calls alone and runs apart; what is expected is calculated here, from the solution, at
the same time. The command line, the notebook and the tests all come through `grade`.
"""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import numpy as np

from regard.course.exercise import Call, Exercise, Grader
from regard.course.grading.answers import Answer, Outcome, Runner
from regard.course.grading.comparison import Compared, compared
from regard.course.grading.diagnosis import diagnosed, our_answers
from regard.course.grading.learner_source import look
from regard.course.grading.messages import printed, told, unanswered
from regard.course.grading.process import cancelled_on_error
from regard.course.grading.sandbox import in_process
from regard.course.grading.sandbox import run as sandboxed
from regard.course.grading.verdict import Test, Verdict
from regard.messages import language, say
from regard.packages import require_package


def grade(exercise: Exercise, source: str | bytes, *, seed: int | None = None, run: Runner = sandboxed) -> Verdict:
    """Try the text on fresh data and say what is wrong with it; with a `seed`, on the data of that seed."""
    started = time.perf_counter()
    looked = look(source)
    if looked.problem:
        title = getattr(exercise.title, language())
        is_sheet = exercise.sheet is not None
        return Verdict(
            exercise.id, False, "syntax", looked.problem, title=title, language=language(), is_sheet=is_sheet
        )
    source = looked.text
    if exercise.sheet is not None:
        from regard.course.grading.sheets import grade_sheet

        return grade_sheet(exercise, source)
    assert exercise.grader is not None
    require_package(exercise.track, say("sandbox-exercise"))
    seed = fresh_seed() if seed is None else seed
    calls = partial(_calls, exercise.grader, seed)
    with ThreadPoolExecutor(1) as beside, cancelled_on_error():
        running = beside.submit(copy_context().run, run, source, calls(), exercise.track)  # in the same language
        if run is in_process:
            running.result()  # two programs in one process would draw from the same random numbers
        expected = our_answers(exercise.solution, exercise.grader.cases, seed, exercise.track)
        outcome = running.result()
    asked = calls()
    tests = _compared(exercise, asked, expected, outcome)
    passed = not outcome.ended and len(tests) == len(asked) and all(test.right for test in tests)
    slip, diagnosis = (None, None) if passed else diagnosed(exercise, seed, tests, outcome)
    return Verdict(
        id=exercise.id,
        passed=passed,
        slip=slip,
        diagnosis=diagnosis,
        tests=tuple(_tests(exercise, asked, tests, outcome)),
        printed=printed(outcome.printed),
        seed=seed,
        seconds=time.perf_counter() - started,
        title=getattr(exercise.title, language()),
        language=language(),
        readable=outcome.readable,
    )


def fresh_seed() -> int:
    """Short enough to type, from where no program can guess it."""
    return int.from_bytes(os.urandom(4)) % 10**8


def _calls(grader: Grader, seed: int) -> Sequence[Call]:
    """New objects each time: what one program does to its arguments, no other sees."""
    return grader.cases(np.random.default_rng(seed))


def _compared(
    exercise: Exercise, calls: Sequence[Call], expected: Sequence[Answer], outcome: Outcome
) -> list[Compared]:
    """One for each call that gave an answer."""
    assert exercise.grader is not None
    given = zip(calls, expected, outcome.answers, strict=False)
    return [
        compared(call.target, right, got, exercise.tolerance, exercise.grader.weights_too) for call, right, got in given
    ]


def _tests(exercise: Exercise, calls: Sequence[Call], tests: Sequence[Compared], outcome: Outcome) -> Iterator[Test]:
    loaded = outcome.answers or outcome.ended not in ("syntax", "raises", "refused")
    for place, call in enumerate(calls):
        about = exercise.cases.get(call.about)
        name = getattr(about, language()) if about else say(f"case-{call.about or 'plain'}")
        if place < len(tests):
            yield told(name, call, tests[place], exercise)
        else:
            yield unanswered(name, call, exercise.track, reached=bool(loaded) and place == len(tests))
