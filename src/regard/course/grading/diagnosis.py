"""Finds the mistake in an answer: a known mistake with the same results, otherwise a general diagnosis."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from regard.course.exercise import Call, CallResult, Exercise, Mistake, RunResult, Tolerance, Track
from regard.course.grading.comparison import (
    CallComparison,
    answer_difference,
    as_numbers,
    comparable_parts,
    compare,
    equal,
    is_number,
)
from regard.course.grading.result_texts import argument_name, sentence
from regard.course.grading.sandbox import in_process
from regard.messages import Listed, language, say

LONGEST: Mapping[Track, float] = {"numpy": 0.5, "torch": 0.3}
"""Seconds to search for combinations of two mistakes: what is left of the time that a check may take."""

UNTOUCHED = "untouched"
"""The id of the original bug in a find-the-bug exercise."""

Cases = Callable[[np.random.Generator], Sequence[Call]]


@lru_cache(maxsize=256)
def trusted_answers(
    source: str, cases: Cases, seed: int, track: Track, only: int | None = None
) -> tuple[CallResult, ...]:
    """The answers of a trusted program to the calls of this seed, or to one of them; empty if it does not load.

    Cached, because the same data are often graded again.
    """
    calls = _calls(cases, seed)
    return in_process(source, calls if only is None else [calls[only]], track).answers


@lru_cache(maxsize=4)
def _calls(cases: Cases, seed: int) -> Sequence[Call]:
    """Cached for several programs; each of them receives copies."""
    return cases(np.random.default_rng(seed))


def matching(exercise: Exercise, seed: int, tests: Sequence[CallComparison]) -> tuple[str, ...]:
    """The ids of the mistakes that explain every answer; empty if there are none."""
    assert exercise.grader is not None
    known = [mistake for mistake in exercise.grader.mistakes if mistake.id in exercise.mistakes]
    failing = [place for place, test in enumerate(tests) if not test.same]
    for mistake in known:
        found = _agreeing(exercise, mistake.text(exercise.solution), seed, tests)
        # The same exception type alone is not enough.
        if all(found) and any(found[place] in ("value", "message") for place in failing):
            return (mistake.id,)
    return _two_at_once(exercise, known, seed, tests) if any(tests[at].difference for at in failing) else ()


def _two_at_once(
    exercise: Exercise, known: Sequence[Mistake], seed: int, tests: Sequence[CallComparison]
) -> tuple[str, ...]:
    end = time.perf_counter() + LONGEST[exercise.track]
    exclusive = exercise.exclusive - {UNTOUCHED}
    for ids, text in _pairs(exercise.solution, [mistake for mistake in known if mistake.id not in exclusive]):
        if time.perf_counter() > end:
            break
        found = _agreeing(exercise, text, seed, tests)
        if all(found) and "value" in found:
            return ids
    return ()


def _pairs(solution: str, known: Sequence[Mistake]) -> Iterator[tuple[tuple[str, str], str]]:
    """Programs with two mistakes at once, where both replacements apply."""
    swapped = [mistake for mistake in known if mistake.source is None]
    for first, second in combinations(swapped, 2):
        text = first.text(solution)
        if first.id != second.id and all(old in text for old, _ in second.swaps):
            yield (first.id, second.id), second.text(text)


def _agreeing(exercise: Exercise, source: str, seed: int, tests: Sequence[CallComparison]) -> list[str]:
    """For each call how the mistake agrees with the learner's answer, or "" if it does not."""
    assert exercise.grader is not None
    request = source, exercise.grader.cases, seed, exercise.track
    no_agreement = [""] * len(tests)
    # A mistake must explain every failing call, so one of them rules out most mistakes; the quickest has no gradients.
    failing = (place for place, test in enumerate(tests) if not test.same)
    one = min(failing, key=lambda place: tests[place].expected.gradients is not None)
    tried = trusted_answers(*request, only=one)
    if not tried or not _agreement(exercise, tests[one], tried[0]):
        return no_agreement
    answers = trusted_answers(*request)
    return [_agreement(exercise, test, answer) for test, answer in zip(tests, answers, strict=False)] or no_agreement


def _agreement(exercise: Exercise, test: CallComparison, mistake: CallResult) -> str:
    """How two answers agree: both "right", equal in "value" or "message", or only in the "kind" of exception."""
    assert exercise.grader is not None
    tolerance, weights_optional, got = exercise.tolerance, exercise.grader.weights_optional, test.got
    if test.same and compare(test.target, test.expected, mistake, tolerance, weights_optional).same:
        return "right"
    if got.fault or mistake.fault or got.raised != mistake.raised:
        return ""
    if got.raised:
        return "message" if got.message == mistake.message else "kind"
    return "" if answer_difference(mistake, got, tolerance, weights_optional) else "value"


BEFORE_ANY_NUMBER = (
    *("syntax", "refused", "too-slow", "too-much-memory", "too-much-output", "killed", "garbled"),
    *("not-written", "missing-name", "not-callable", "not-a-module"),
    *("missing-parameter", "plain-tensor", "layer-for-parameter", "extra-parameter", "wrong-parameter"),
)
GENERAL = (
    *BEFORE_ANY_NUMBER,
    *("raises", "mutates-input", "no-error", "hard-coded", "transposed", "wrong-type", "wrong-count", "wrong-shape"),
    *("wrong-dtype", "not-finite", "no-gradient", "wrong-gradient", "rounded", "low-precision", "near"),
    *("not-shares", "not-repeatable", "unknown"),
)
"""Diagnoses for any exercise; each has its message, "mistake-…"."""

LOW = Tolerance(rtol=5e-3, atol=1e-3)
"""Right to three digits: half precision, a small number added somewhere, or rounded constants."""


def diagnosed(exercise: Exercise, seed: int, tests: Sequence[CallComparison], outcome: RunResult) -> tuple[str, str]:
    """The id of the mistake, two of them joined by +, and the message."""
    if outcome.ended:
        values = {"type": outcome.raised, "message": outcome.message, "line": outcome.line, **outcome.details}
        return outcome.ended, sentence(outcome.ended, values)
    name, values = general(tests)
    first = next((test for test in tests if not test.same), None)
    if first and name not in BEFORE_ANY_NUMBER:
        names = matching(exercise, seed, tests)
        if names:
            return "+".join(names), _mistakes_sentence(exercise, names)
    return name, sentence(name, values, first.difference if first else None, exercise.track)


def _mistakes_sentence(exercise: Exercise, names: Sequence[str]) -> str:
    """The message for one mistake or two; messages that say the rest is right are never combined."""
    first, *more = (getattr(exercise.mistakes[name], language()) for name in names)
    if not more:
        return first
    if names[0] == UNTOUCHED:
        return say("mistake-bug-and", second=more[0])
    return say("mistake-two", first=first, second=more[0])


def general(tests: Sequence[CallComparison]) -> tuple[str, dict[str, Any]]:
    """A general diagnosis, and the placeholders of its message."""
    failing = [test for test in tests if not test.same]
    if not failing:
        return "mutates-input", {
            "names": _names(next(test.changed_arguments for test in tests if test.changed_arguments))
        }
    diagnosis = next(_certain(tests, failing[0]), None) or _of_numbers(tests, failing)
    if diagnosis[0] == "unknown":  # an exception in another call is more informative
        diagnosis = next((_raised(test) for test in failing if test.got.raised), diagnosis)
    return diagnosis


def _names(changed_arguments: tuple[str, ...]) -> Listed:
    return Listed(map(argument_name, changed_arguments))


def _certain(tests: Sequence[CallComparison], first: CallComparison) -> Iterator[tuple[str, dict[str, Any]]]:
    """Diagnoses that need no comparison of numbers."""
    got = first.got
    if got.fault:
        yield got.fault, {"name": first.target, "message": got.message, **got.details}
    same_target = [test.got for test in tests if test.target == first.target]
    unwritten = all(
        one.raised == "NotImplementedError" for one in same_target
    )  # in some calls only: torch raises it too
    if unwritten or all(not one.raised and one.value is None for one in same_target):
        yield "not-written", {"name": first.target}
    changed_arguments = next((test.changed_arguments for test in tests if test.changed_arguments), ())
    # Raised outside the learner's own lines: autograd found that x was changed in place.
    if got.raised and got.line is None and changed_arguments:
        yield "mutates-input", {"names": _names(changed_arguments)}
    if got.raised:
        yield _raised(first)
    if first.expected.raised:
        yield "no-error", {"type": first.expected.raised}


def _raised(test: CallComparison) -> tuple[str, dict[str, Any]]:
    return "raises", {"type": test.got.raised, "message": test.got.message, "line": test.got.line}


def _of_numbers(tests: Sequence[CallComparison], failing: Sequence[CallComparison]) -> tuple[str, dict[str, Any]]:
    """Diagnoses from the numbers, the most specific first."""
    values = [test for test in failing if test.difference is not None and not _of_gradient(test)]
    if not values:  # the values are right, only gradients differ
        found = failing[0].difference
        assert found is not None
        return ("wrong-gradient" if np.any(found.got) else "no-gradient"), {}
    first = values[0]
    found = first.difference
    assert found is not None
    if _hard_coded([test for test in tests if test.target == first.target]):
        return "hard-coded", {}
    if all(_transposed(test) for test in values):
        return "transposed", {}
    if found.fault != "wrong-value":
        return found.fault, {}
    if first.changed_arguments:
        return "mutates-input", {"names": _names(first.changed_arguments)}
    if places := _rounded_to(values):
        return "rounded", {"places": places}
    if all(equal(*comparable_parts(test.expected.value, test.got.value), LOW) for test in values):
        return ("low-precision", {}) if all(map(_in_half_precision, values)) else ("near", {"most": _distance(values)})
    if (total := _wrong_total(values)) is not None:
        return "not-shares", {"total": total}
    return "unknown", {}


def _of_gradient(test: CallComparison) -> bool:
    return test.difference is not None and test.difference.path[:1] == ("gradient",)


def _in_half_precision(test: CallComparison) -> bool:
    """Whether float16 represents every number of the result: it was computed in float16, or cast to it."""
    given = [np.asarray(leaf) for leaf in leaves(test.got.value)]
    with np.errstate(over="ignore"):
        return all(np.array_equal(leaf, leaf.astype(np.float16).astype(leaf.dtype)) for leaf in given)


def _distance(tests: Sequence[CallComparison]) -> str:
    """The largest absolute error."""
    both = (comparable_parts(test.expected.value, test.got.value) for test in tests)
    pairs = [pair for right, given in both for pair in zip(leaves(right), leaves(given), strict=True)]
    # Infinite numbers are left out before subtracting: inf - inf would be a NaN with a warning.
    finite = [np.abs(right[np.isfinite(right)] - given[np.isfinite(right)]) for right, given in pairs]
    return f"{max(float(part.max(initial=0.0)) for part in finite):.1g}"


def _wrong_total(tests: Sequence[CallComparison]) -> str | None:
    """The sum of the first wrong row, if every row should sum to 1 (or be empty) and some do not."""
    for test in tests:
        if test.difference is None or test.difference.fault != "wrong-value":
            return None
        right, given = test.difference.expected, test.difference.got
        if not isinstance(right, np.ndarray) or right.ndim == 0 or right.dtype.kind != "f" or (right < 0).any():
            return None
        wanted, found = right.sum(-1), np.asarray(given).sum(-1)
        if not np.all(np.isclose(wanted, 1) | (wanted == 0)) or not wanted.any():
            return None
        if not np.allclose(wanted, found, rtol=0, atol=1e-3):
            return f"{float(np.ravel(found)[np.argmax(np.ravel(np.abs(found - wanted)))]):.4g}"
    return None


def _hard_coded(tests: Sequence[CallComparison]) -> bool:
    """Whether the answer is the same for all arguments although the expected answers differ."""
    plain = [test for test in tests if not test.got.raised and not test.expected.raised]
    same = all(equal(plain[0].got.value, test.got.value, Tolerance(0.0, 0.0)) for test in plain[1:])
    return same and any(not equal(plain[0].expected.value, test.expected.value, LOW) for test in plain[1:])


def _transposed(test: CallComparison) -> bool:
    assert test.difference is not None
    right, given = test.difference.expected, test.difference.got
    if not isinstance(right, np.ndarray) or not isinstance(given, np.ndarray) or min(right.ndim, given.ndim) < 2:
        return False
    return equal(right, given.swapaxes(-1, -2), Tolerance(1e-4, 1e-5))


def _rounded_to(tests: Sequence[CallComparison]) -> int | None:
    """The number of decimals if every number is the right one, rounded or truncated; otherwise None."""
    both = (comparable_parts(test.expected.value, test.got.value) for test in tests)
    pairs = [(list(leaves(right)), list(leaves(given))) for right, given in both]
    return next((places for places in range(1, 9) if all(_at_places(*pair, places) for pair in pairs)), None)


def _at_places(right: list[np.ndarray], given: list[np.ndarray], places: int) -> bool:
    if [array.shape for array in right] != [array.shape for array in given] or not any(map(np.any, given)):
        return False
    near, scale = Tolerance(rtol=1e-9, atol=1e-9), 10.0**places
    ways = ([round_(array * scale) / scale for array in right] for round_ in (np.round, np.trunc))
    return any(all(map(equal, way, given, [near] * len(given))) for way in ways)


def leaves(value: Any) -> Iterator[np.ndarray]:
    """Every number or array inside a result.

    >>> [array.tolist() for array in leaves((1, [np.zeros(2)], "x"))]
    [1, [0.0, 0.0]]
    """
    if isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    elif is_number(value):
        yield as_numbers(value)
