"""Grades a learner's source, or an answer sheet, against an exercise and returns the verdict.

A learner's program receives only the calls and runs in a separate process; the expected answers are computed here
from the solution at the same time. The command line, the notebook and the tests all use `grade`. An answer sheet is
hand-typed TOML, read leniently (full-width characters of input methods are accepted) and graded step by step; the
verdict names the first wrong step and the matching known mistake, but not the right answer, which could be copied.
"""

import os
import re
import time
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from regard.course.exercise import Call, CallResult, Exercise, Field, Grader, Runner, RunResult, Sheet
from regard.course.grading.comparison import CallComparison, answer_difference, compare
from regard.course.grading.diagnosis import diagnosed, trusted_answers
from regard.course.grading.process import cancelled_on_error
from regard.course.grading.python_source import read_source, shown
from regard.course.grading.result_texts import as_test, printed, unanswered
from regard.course.grading.sandbox import in_process
from regard.course.grading.sandbox import run as sandboxed
from regard.course.grading.verdict import Test, Verdict, plain
from regard.errors import require_package
from regard.messages import language, say

_ASCII = str.maketrans(
    "０１２３４５６７８９．，、；：＝－−–—＋［］【】（）()“”„＂‘’＇＃　", '0123456789.,,;:=----+[][][][]""""\'\'\'# '
)
_QUOTED_OR_NOT = re.compile(r"""("[^"]*"|'[^']*'|\#.*)""")
_BARE_WORDS = re.compile(r"""([\w.\-]+\s*=[\s\[]*)(?!(?:true|false|inf|nan)\b)([^\W\d_][^\d_"'\[\]]*)\]?$""")
"""winner = B, or order = [D, A, C]: letters without quotes."""


class UnreadableError(Exception):
    """A line that cannot be read, and why."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(line, text)
        self.line, self.text = line, text


# --- reading -----------------------------------------------------------------------------------------------


def read(text: str) -> dict[str, Any]:
    """The typed answers, by field.

    >>> read("weights ＝ 【.5， 0 .5】")
    {'weights': [0.5, 0, 0.5]}
    """
    lines = [_clean_line(line) for line in text.removeprefix("\ufeff").splitlines()]
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError) as error:  # invalid TOML, a number of 5,000 digits, 1,000 nested brackets
        found = re.search(r"line (\d+)", str(error))
        number = min(int(found[1]) if found else len(lines), len(lines))
        raise UnreadableError(number, text.splitlines()[number - 1].strip() if lines else "") from None


def _clean_line(line: str) -> str:
    parts = _QUOTED_OR_NOT.split(_to_ascii(line))
    parts[::2] = [_numbers(part) for part in parts[::2]]
    line = "".join(part for part in parts if not part.startswith("#"))
    if words := _BARE_WORDS.match(line.strip()):
        line = f'{words[1].rstrip(" [")} "{words[2]}"'
    return f"{line} []" if re.fullmatch(r"\s*[\w.\-]+\s*=\s*", line) else line  # left empty


def _to_ascii(line: str) -> str:
    """Replace full-width characters by ASCII; text between quotes is unchanged."""
    line = line.translate({ord(mark): _ASCII[ord(mark)] for mark in "“”„＂＃"})
    parts = re.split(r"""("[^"]*")""", line)
    parts[::2] = [part.translate(_ASCII) for part in parts[::2]]
    return "".join(parts)


def _numbers(code: str) -> str:
    """Normalise hand-typed numbers: .5 and 5. , and spaces for commas."""
    code = re.sub(r"(?<![\w.])\.(?=\d)", "0.", code)
    code = re.sub(r"(?<=\d)\.(?![\w.])", ".0", code)
    return re.sub(r"(?<=[\d\]])[ \t]+(?=[-+\d\[])", ", ", code)


def answer(sheet: Mapping[str, Any], name: str) -> Any:
    """The answer under a name, with dots for tables; None if it is empty.

    >>> answer({"first": {"scores": [1, 0]}}, "first.scores"), answer({}, "first.scores")
    ([1, 0], None)
    """
    found: Any = sheet
    for key in name.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return None if found in ([], "", {}) else found


# --- grading -----------------------------------------------------------------------------------------------


def grade_sheet(exercise: Exercise, text: str) -> Verdict:
    """Grade the typed answers with the seed on the sheet."""
    started = time.perf_counter()
    assert exercise.sheet is not None
    try:
        typed = read(text)
    except UnreadableError as error:
        return _verdict(exercise, started, "syntax", say("sheet-line", line=error.line, text=plain(error.text)[:200]))
    seed = typed.get("seed")
    if type(seed) is not int or not 0 <= seed < 2**63:
        return _verdict(exercise, started, "no-seed", say("sheet-seed", id=exercise.argument))
    fields = exercise.sheet.fields(seed)
    wrong = [field for field in fields if not is_right(field, answer(typed, field.name))]
    mistake, diagnosis = _diagnosed(exercise, wrong[0], typed, seed, fields) if wrong else (None, None)
    verdict = _verdict(exercise, started, mistake, diagnosis, _step_tests(exercise, fields, typed, wrong), seed)
    if exercise.sheet.reveal is None or wrong:  # otherwise it could be copied into the next attempt
        return verdict
    return replace(verdict, revealed=exercise.sheet.reveal(seed, language()))


def is_right(field: Field, typed: Any) -> bool:
    """Whether an answer is the expected one or an accepted alternative."""
    return any(agrees(field, each, typed) for each in (field.expected, *field.alternatives))


def agrees(field: Field, expected: Any, typed: Any) -> bool:
    """Whether an answer equals the expected one: numbers within the tolerance, words without regard to case.

    >>> agrees(Field("a", [0.5], 0.01), [0.5], 0.504)
    True
    """
    if typed is None:
        return False
    if _is_text(expected):
        return _letters(expected) == _letters(typed)
    try:
        right, given = np.asarray(expected, dtype=float).squeeze(), np.asarray(typed, dtype=float).squeeze()
    except (ValueError, TypeError, OverflowError):  # words, rows of different lengths, a table, a date
        return False
    if right.shape != given.shape or (np.asarray(typed).dtype == bool) != (np.asarray(expected).dtype == bool):
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.all((right == given) | (np.abs(right - given) <= field.tolerance + 1e-9)))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and any(map(_is_text, value)))


def _letters(value: Any) -> str:
    """Only the letters, without case, width and separators: "D, b" equals ["D", "B"]."""
    text = "".join(map(_letters, value)) if isinstance(value, list | tuple) else str(value)
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def _diagnosed(
    exercise: Exercise, first: Field, typed: Mapping[str, Any], seed: int, fields: Sequence[Field]
) -> tuple[str, str]:
    assert exercise.sheet is not None
    if answer(typed, first.name) is None:
        return "not-written", say("sheet-empty", name=first.name)
    mistake = _matching(exercise.sheet, first, typed, seed, fields)
    if mistake is not None:
        return mistake, getattr(exercise.mistakes[mistake], language())
    wanted, found = _count(first.expected), _count(answer(typed, first.name), _is_text(first.expected))
    if found not in (None, wanted):
        key = "sheet-letters" if _is_text(first.expected) else "sheet-numbers"
        return "wrong-count", say(key, name=first.name, wanted=wanted, found=found)
    if (total := _wrong_total(first, answer(typed, first.name))) is not None:
        return "wrong-total", say("sheet-total", name=first.name, total=f"{first.total:g}", found=f"{total:.4g}")
    return "unknown", _remark(exercise.sheet, first, typed, seed) or say("sheet-unknown", name=first.name)


def _wrong_total(field: Field, typed: Any) -> float | None:
    """The sum of the numbers if it is wrong; rounding within the tolerance is accepted."""
    if field.total is None:
        return None
    try:
        numbers = np.asarray(typed, dtype=float)
    except (ValueError, TypeError, OverflowError):
        return None
    found = float(numbers.sum())
    return None if abs(found - field.total) <= field.tolerance * numbers.size else found


def _remark(sheet: Sheet, first: Field, typed: Mapping[str, Any], seed: int) -> str | None:
    given = answer(typed, first.name)
    if _is_text(first.expected):
        given = _letters(given).upper()
    return None if sheet.remark is None else sheet.remark(seed, first.name, given, language())


def _count(value: Any, is_text: bool | None = None) -> int | None:
    """The number of letters or of numbers; None for words where numbers are expected."""
    if _is_text(value) if is_text is None else is_text:
        return len(_letters(value))
    try:
        return np.asarray(value, dtype=float).size
    except (ValueError, TypeError, OverflowError):
        return None


def _matching(sheet: Sheet, first: Field, typed: Mapping[str, Any], seed: int, fields: Sequence[Field]) -> str | None:
    """The mistake that explains the first wrong answer; of several, the one that most other answers agree with."""
    best: tuple[int, str] | None = None
    for mistake in sheet.mistakes:
        answers = mistake.answers(seed)
        agreed = [f.name for f in fields if f.name in answers and agrees(f, answers[f.name], answer(typed, f.name))]
        if first.name in agreed and (best is None or 2 * len(agreed) - len(answers) > best[0]):
            best = 2 * len(agreed) - len(answers), mistake.id
    return best[1] if best else None


# --- the verdict -------------------------------------------------------------------------------------------


def _step_tests(
    exercise: Exercise, fields: Sequence[Field], typed: Mapping[str, Any], wrong: Sequence[Field]
) -> tuple[Test, ...]:
    """One test per field, with the typed answer but without the right one."""
    names = [field.name for field in wrong]
    return tuple(_test(exercise, field, answer(typed, field.name), field.name not in names) for field in fields)


def _test(exercise: Exercise, field: Field, typed: Any, passed: bool) -> Test:
    about = exercise.cases.get(field.step)
    name = f"{field.name}  {getattr(about, language())}" if about else field.name
    if typed is None:
        return Test(name, passed, call=field.name)
    allowed = "" if passed or not field.tolerance else say("sheet-tolerance", tolerance=f"{field.tolerance:g}")
    where = "" if passed else field.name
    return Test(name, passed, call=field.name, got=shown(typed), where=where, allowed=allowed)


def _verdict(
    exercise: Exercise,
    started: float,
    mistake: str | None = None,
    diagnosis: str | None = None,
    tests: tuple[Test, ...] = (),
    seed: int = 0,
) -> Verdict:
    return Verdict(
        id=exercise.id,
        passed=mistake is None,
        mistake=mistake,
        diagnosis=diagnosis,
        tests=tests,
        seed=seed,
        seconds=time.perf_counter() - started,
        title=getattr(exercise.title, language()),
        language=language(),
        is_sheet=True,
        argument=exercise.argument,
    )


OF_NUMBERS = ("unknown", "near", "low-precision", "not-shares")
"""General diagnoses of wrong numbers: none of these if the same call, made again, gives another result."""


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
        return grade_sheet(exercise, source)
    assert exercise.grader is not None
    require_package(exercise.track, say("sandbox-exercise"))
    seed = fresh_seed() if seed is None else seed
    requested = _calls(exercise.grader, seed)
    expected, outcome = _expected_and_given(exercise, source, seed, run)
    tests = _compare_all(exercise, requested, expected, outcome)
    passed = not outcome.ended and len(tests) == len(requested) and all(test.right for test in tests)
    mistake, diagnosis = (None, None) if passed else diagnosed(exercise, seed, tests, outcome)
    if mistake in OF_NUMBERS and not _is_repeatable(exercise, expected, outcome):
        mistake, diagnosis = "not-repeatable", say("mistake-not-repeatable")
    return Verdict(
        id=exercise.id,
        passed=passed,
        mistake=mistake,
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


def _expected_and_given(
    exercise: Exercise, source: str, seed: int, run: Runner
) -> tuple[Sequence[CallResult], RunResult]:
    """The expected answers, computed while the program runs, and what the program did."""
    assert exercise.grader is not None
    trusted = partial(trusted_answers, exercise.solution, exercise.grader.cases, seed, exercise.track)
    requested, expected = _calls(exercise.grader, seed), Future[Sequence[CallResult]]()

    def repeat(answers: Sequence[CallResult]) -> int | None:
        return _first_wrong(exercise, expected.result(), answers)

    with ThreadPoolExecutor(1) as executor, cancelled_on_error():
        if run is in_process:  # two programs at once in one process would share the random state
            expected.set_result(trusted())
        start = partial(copy_context().run, run, source, requested, exercise.track, repeat=repeat)  # in this language
        running = executor.submit(start)
        try:
            if not expected.done():
                expected.set_result(trusted())
        except BaseException as error:
            expected.set_exception(error)  # otherwise the other thread would wait for ever
            raise
        return expected.result(), running.result()


def _first_wrong(exercise: Exercise, expected: Sequence[CallResult], answers: Sequence[CallResult]) -> int | None:
    """The place of the first wrong answer, if it is a value."""
    assert exercise.grader is not None
    for place, (right, got) in enumerate(zip(expected, answers, strict=False)):
        if not compare("", right, got, exercise.tolerance, exercise.grader.weights_optional).same:
            return None if got.raised or got.fault else place
    return None


def _is_repeatable(exercise: Exercise, expected: Sequence[CallResult], outcome: RunResult) -> bool:
    """Whether the first wrong call gives the same answer each time. A draw may repeat by chance."""
    place = _first_wrong(exercise, expected, outcome.answers)
    if place is None:
        return True
    first = outcome.answers[place]
    return all(
        not one.raised and not one.fault and answer_difference(first, one, exercise.tolerance) is None
        for one in outcome.repeated
    )


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
