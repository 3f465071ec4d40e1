"""What is wrong with an answer: a known slip that gives the same numbers, else what holds for any program."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from regard.course.exercise import Call, Exercise, Slip, Tolerance, Track
from regard.course.grading.answers import Answer, Outcome
from regard.course.grading.comparison import Compared, as_numbers, between, compared, equal, is_number, settled
from regard.course.grading.messages import named, sentence
from regard.course.grading.sandbox import in_process
from regard.messages import Listed, language, say

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


BEFORE_ANY_NUMBER = (
    *("syntax", "refused", "too-slow", "too-much-memory", "too-much-output", "killed", "garbled"),
    *("not-written", "missing-name", "not-callable", "not-a-module"),
    *("missing-parameter", "extra-parameter", "wrong-parameter"),
)
GENERAL = (
    *BEFORE_ANY_NUMBER,
    *("raises", "mutates-input", "no-error", "hard-coded", "transposed", "wrong-type", "wrong-count", "wrong-shape"),
    *("wrong-dtype", "not-finite", "no-gradient", "wrong-gradient", "rounded", "low-precision", "near"),
    *("not-shares", "unknown"),
)
"""Diagnoses that any exercise may get; each has its sentence, "slip-…", in `words`."""

LOW = Tolerance(rtol=5e-3, atol=1e-3)
"""Right to three digits: half precision, a small number added on the way, or constants that were cut short."""


def diagnosed(exercise: Exercise, seed: int, tests: Sequence[Compared], outcome: Outcome) -> tuple[str, str]:
    """The id of the slip, two of them joined by +, and its sentence."""
    if outcome.ended:
        values = {"type": outcome.raised, "message": outcome.message, "line": outcome.line, **outcome.details}
        return outcome.ended, sentence(outcome.ended, values)
    name, values = general(tests)
    first = next((test for test in tests if not test.same), None)
    if first and name not in BEFORE_ANY_NUMBER:
        names = matching(exercise, seed, tests)
        if names:
            return "+".join(names), _slips_told(exercise, names)
    return name, sentence(name, values, first.difference if first else None, exercise.track)


def _slips_told(exercise: Exercise, names: Sequence[str]) -> str:
    """One slip, or two at once: both are true then, since no sentence says that the rest is right."""
    first, *more = (getattr(exercise.slips[name], language()) for name in names)
    if not more:
        return first
    if names[0] == UNTOUCHED:
        return say("slip-bug-and", second=more[0])
    return say("slip-two", first=first, second=more[0])


def general(tests: Sequence[Compared]) -> tuple[str, dict[str, Any]]:
    """A general diagnosis, and the values of its sentence."""
    failing = [test for test in tests if not test.same]
    if not failing:
        return "mutates-input", {"names": _names(next(test.spoilt for test in tests if test.spoilt))}
    told = next(_certain(tests, failing[0]), None) or _of_numbers(tests, failing)
    if told[0] == "unknown":  # an exception in another call says more
        told = next((_raised(test) for test in failing if test.got.raised), told)
    return told


def _names(spoilt: tuple[str, ...]) -> Listed:
    return Listed(map(named, spoilt))


def _certain(tests: Sequence[Compared], first: Compared) -> Iterator[tuple[str, dict[str, Any]]]:
    """What needs no look at numbers."""
    got = first.got
    if got.fault:
        yield got.fault, {"name": first.target, "message": got.message, **got.details}
    same_target = [test.got for test in tests if test.target == first.target]
    unwritten = all(one.raised == "NotImplementedError" for one in same_target)  # some only: torch raises it too
    if unwritten or all(not one.raised and one.value is None for one in same_target):
        yield "not-written", {"name": first.target}
    spoilt = next((test.spoilt for test in tests if test.spoilt), ())
    if got.raised and got.line is None and spoilt:  # not in the learner's own lines: the way back found x changed
        yield "mutates-input", {"names": _names(spoilt)}
    if got.raised:
        yield _raised(first)
    if first.expected.raised:
        yield "no-error", {"type": first.expected.raised}


def _raised(test: Compared) -> tuple[str, dict[str, Any]]:
    return "raises", {"type": test.got.raised, "message": test.got.message, "line": test.got.line}


def _of_numbers(tests: Sequence[Compared], failing: Sequence[Compared]) -> tuple[str, dict[str, Any]]:
    """What the numbers tell, from the most telling sign to the least."""
    values = [test for test in failing if test.difference is not None and not _of_gradient(test)]
    if not values:  # only then are the numbers right
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
    if first.spoilt:
        return "mutates-input", {"names": _names(first.spoilt)}
    if places := _rounded_to(values):
        return "rounded", {"places": places}
    if all(equal(*settled(test.expected.value, test.got.value), LOW) for test in values):
        return ("low-precision", {}) if all(map(_in_half_precision, values)) else ("near", {"most": _distance(values)})
    if (total := _wrong_total(values)) is not None:
        return "not-shares", {"total": total}
    return "unknown", {}


def _of_gradient(test: Compared) -> bool:
    return test.difference is not None and test.difference.path[:1] == ("gradient",)


def _in_half_precision(test: Compared) -> bool:
    """Whether float16 holds every number that came: the sign of a calculation in it, or of a cast to it."""
    given = [np.asarray(leaf) for leaf in leaves(test.got.value)]
    with np.errstate(over="ignore"):
        return all(np.array_equal(leaf, leaf.astype(np.float16).astype(leaf.dtype)) for leaf in given)


def _distance(tests: Sequence[Compared]) -> str:
    """The largest distance of a number from the right one."""
    both = (settled(test.expected.value, test.got.value) for test in tests)
    pairs = [pair for right, given in both for pair in zip(leaves(right), leaves(given), strict=True)]
    finite = [np.abs(right - given)[np.isfinite(right)] for right, given in pairs]
    return f"{max(float(part.max(initial=0.0)) for part in finite):.1g}"


def _wrong_total(tests: Sequence[Compared]) -> str | None:
    """What the first wrong row sums to, where every row should sum to 1 (or be empty) and some do not."""
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


def _hard_coded(tests: Sequence[Compared]) -> bool:
    """The same answer, whatever the arguments, where different ones are right."""
    plain = [test for test in tests if not test.got.raised and not test.expected.raised]
    same = all(equal(plain[0].got.value, test.got.value, Tolerance(0.0, 0.0)) for test in plain[1:])
    return same and any(not equal(plain[0].expected.value, test.expected.value, LOW) for test in plain[1:])


def _transposed(test: Compared) -> bool:
    assert test.difference is not None
    right, given = test.difference.expected, test.difference.got
    if not isinstance(right, np.ndarray) or not isinstance(given, np.ndarray) or min(right.ndim, given.ndim) < 2:
        return False
    return equal(right, given.swapaxes(-1, -2), Tolerance(1e-4, 1e-5))


def _rounded_to(tests: Sequence[Compared]) -> int | None:
    """How many places are left when every number is the right one rounded, or cut off; None when that is not it."""
    both = (settled(test.expected.value, test.got.value) for test in tests)
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
