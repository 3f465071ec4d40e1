"""Which of an exercise's known slips gives what the learner's code gave: one of them, or two at once.

A slip is told only where it agrees with the learner on every call, the right ones too: one that explains the failing
calls but would fail elsewhere is another mistake.
The wrong programs are run here, after a failure, on the same calls. One that breaks is passed over: a diagnosis may
be missing, and is never in the way of a verdict.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from regard.course.exercise import Call, Exercise, Slip, Track
from regard.course.grading.answers import Answer
from regard.course.grading.comparing import Compared, between, compared
from regard.course.grading.sandbox import in_process

LONGEST = 0.5
"""Seconds spent on looking for two slips at once."""

UNTOUCHED = "untouched"
"""The slip of every program with a bug: the bug as it came."""

Cases = Callable[[np.random.Generator], Sequence[Call]]


@lru_cache(maxsize=256)
def our_answers(source: str, cases: Cases, seed: int, track: Track, only: int | None = None) -> tuple[Answer, ...]:
    """What a program of ours gives to the calls of that seed, or to one of them; none where it breaks.

    Kept, because the same data are often tried again.
    """
    calls = _calls(cases, seed)
    return in_process(source, calls if only is None else [calls[only]], track).answers


@lru_cache(maxsize=4)
def _calls(cases: Cases, seed: int) -> Sequence[Call]:
    """Kept for many programs, each of which gets copies."""
    return cases(np.random.default_rng(seed))


def matching(exercise: Exercise, seed: int, tests: Sequence[Compared]) -> tuple[str, ...]:
    """The ids of the slips that explain every answer; none when no slip does."""
    assert exercise.grader is not None
    known = [slip for slip in exercise.grader.slips if slip.id in exercise.slips]
    failing = [place for place, test in enumerate(tests) if not test.same]
    for slip in known:
        found = _agreeing(exercise, slip.text(exercise.solution), seed, tests)
        # An error of the same type alone says little.
        if all(found) and any(found[place] in ("value", "message") for place in failing):
            return (slip.id,)
    return _two_at_once(exercise, known, seed, tests) if any(tests[at].difference for at in failing) else ()


def _two_at_once(exercise: Exercise, known: Sequence[Slip], seed: int, tests: Sequence[Compared]) -> tuple[str, ...]:
    end = time.perf_counter() + LONGEST
    told_alone = exercise.alone - {UNTOUCHED}
    for ids, text in _pairs(exercise.solution, [slip for slip in known if slip.id not in told_alone]):
        if time.perf_counter() > end:
            break
        found = _agreeing(exercise, text, seed, tests)
        if all(found) and "value" in found:
            return ids
    return ()


def _pairs(solution: str, known: Sequence[Slip]) -> Iterator[tuple[tuple[str, str], str]]:
    """Programs with two slips, where both can be made in one text."""
    swapped = [slip for slip in known if slip.source is None]
    for first, second in combinations(swapped, 2):
        text = first.text(solution)
        if first.id != second.id and all(old in text for old, _ in second.swaps):
            yield (first.id, second.id), second.text(text)


def _agreeing(exercise: Exercise, source: str, seed: int, tests: Sequence[Compared]) -> list[str]:
    """For each call how the slip agrees with the learner, or "" where it does not."""
    assert exercise.grader is not None
    asked = source, exercise.grader.cases, seed, exercise.track
    nowhere = [""] * len(tests)
    # A slip explains all failing calls or nothing, so the first one is enough to rule out most.
    first = next(place for place, test in enumerate(tests) if not test.same)
    tried = our_answers(*asked, only=first)
    if not tried or not _agreement(exercise, tests[first], tried[0]):
        return nowhere
    answers = our_answers(*asked)
    return [_agreement(exercise, test, answer) for test, answer in zip(tests, answers, strict=False)] or nowhere


def _agreement(exercise: Exercise, test: Compared, slip: Answer) -> str:
    """Both are "right", or the same "value" or "message" came; "kind" for another error of the same type."""
    assert exercise.grader is not None
    tolerance, weights_too, got = exercise.tolerance, exercise.grader.weights_too, test.got
    if test.same and compared(test.target, test.expected, slip, tolerance, weights_too).same:
        return "right"
    if got.fault or slip.fault or got.raised != slip.raised:
        return ""
    if got.raised:
        return "message" if got.message == slip.message else "kind"
    return "" if between(slip, got, tolerance, weights_too) else "value"
