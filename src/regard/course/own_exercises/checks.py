"""Checks for teachers: verifies an exercise of one's own, and grades the answers of a class.

Verification does what the tests of regard do with the course: the solution and the other right answers must pass, the
initial file and every known mistake must fail, each mistake with its own diagnosis, and every text must be there.
Programs run in the sandbox. In a class, every file of a folder is graded with the same data; one bad, endless or
hostile program has its own row and does not stop the others.
"""

import csv
import doctest
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.course.exercise import Call, Exercise, filled_sheet
from regard.course.grading.diagnosis import GENERAL, UNTOUCHED
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process, run
from regard.course.grading.verdict import Verdict
from regard.course.own_exercises.loading import right_answers
from regard.errors import FileError, RegardError, TooLargeError
from regard.files.safe_open import read_file
from regard.messages import LANGUAGES, Listed, catalogue, one_line, say

SEED = 1
MORE_SEEDS = range(2, 6)
"""Other data on which the same must hold, in this process, which is faster."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked; `problem` is a sentence, or "" if it is right."""

    what: str
    problem: str = ""

    @property
    def is_right(self) -> bool:
        return not self.problem


def verify(exercise: Exercise) -> Iterator[Finding]:
    """Everything that is checked, in order. A check that cannot run ends the list."""
    try:
        yield from _texts(exercise)
        yield from _sheet(exercise) if exercise.sheet is not None else _program(exercise)
    except RegardError as error:
        yield Finding(say("verify-stopped"), error.text())
    except Exception as error:  # of grader.py: its functions are the teacher's
        yield Finding(say("verify-stopped"), say("verify-raised", kind=type(error).__name__, message=str(error)[:300]))


# --- texts -------------------------------------------------------------------------------------------------


def _texts(exercise: Exercise) -> Iterator[Finding]:
    if exercise.grader is not None:
        used = {call.about for seed in MORE_SEEDS for call in _calls(exercise, seed)} - {""}
        mistakes = {mistake.id for mistake in exercise.grader.mistakes}
    else:
        assert exercise.sheet is not None
        used = {field.step for seed in MORE_SEEDS for field in exercise.sheet.fields(seed)} - {""}
        mistakes = {mistake.id for mistake in exercise.sheet.mistakes}
    general = {key.removeprefix("case-") for key in catalogue() if key.startswith("case-")}
    lacking = [f"[cases] {name}" for name in sorted(used - general - set(exercise.cases))]
    lacking += [f"[mistakes] {name}" for name in sorted(mistakes - set(GENERAL) - set(exercise.mistakes))]
    unused = [f"[cases] {name}" for name in sorted(set(exercise.cases) - used)]
    unused += [f"[mistakes] {name}" for name in sorted(set(exercise.mistakes) - mistakes)]
    problems = [say("verify-lacking", names=Listed(lacking))] if lacking else []
    problems += [say("verify-unused", names=Listed(unused))] if unused else []
    if not all(exercise.hints[lang] and all(hint.strip() for hint in exercise.hints[lang]) for lang in LANGUAGES):
        problems.append(say("verify-hints"))
    yield Finding(say("verify-texts"), " ".join(problems))
    if not mistakes:
        yield Finding(say("verify-mistakes"), say("verify-no-mistakes"))


def _examples(exercise: Exercise) -> Iterator[Finding]:
    """The examples of the task, run with the solution."""
    for lang in LANGUAGES:
        text = getattr(exercise.task, lang)
        if ">>>" not in text or (lang == LANGUAGES[1] and text == getattr(exercise.task, LANGUAGES[0])):
            continue
        space: dict[str, Any] = {"np": np}
        exec(compile(exercise.solution, "solution.py", "exec", dont_inherit=True), space)
        said: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(doctest.DocTestParser().get_doctest(text, space, f"task.{lang}", None, None), out=said.append)
        yield Finding(say("verify-example", language=lang), " ".join("".join(said).split())[-400:])


# --- programs ----------------------------------------------------------------------------------------------


def _calls(exercise: Exercise, seed: int) -> list[Call]:
    assert exercise.grader is not None
    return list(exercise.grader.cases(np.random.default_rng(seed)))


def _program(exercise: Exercise) -> Iterator[Finding]:
    assert exercise.grader is not None
    assert exercise.folder is not None
    first, again, other = (repr(_calls(exercise, seed)) for seed in (SEED, SEED, 2))
    yield Finding(say("verify-data"), say("verify-data-fixed") if first == other or first != again else "")
    solution = _passes(exercise, exercise.solution, say("verify-solution"))
    yield solution
    if not solution.is_right:
        return  # what follows compares with it
    yield from _examples(exercise)
    ending, problems = _separate_endless(exercise)
    verdict = grade(ending, ending.stub, seed=SEED)
    yield Finding(say("verify-stub"), _wrong_mistake(verdict, UNTOUCHED if exercise.kind == "bug" else "not-written"))
    for place, mistake in enumerate(exercise.grader.mistakes, 1):
        problem = problems.get(place)
        if problem is None:
            problem = _wrong_diagnosis(ending, mistake.text(exercise.solution), mistake.id)
        yield Finding(say("verify-mistake", id=mistake.id, place=place), problem)
    for name, answer in right_answers(exercise.folder).items():
        yield _passes(exercise, answer, say("verify-right", name=name))


def _separate_endless(exercise: Exercise) -> tuple[Exercise, dict[int, str]]:
    """The exercise with those mistakes that can be run, and the problem of each other one, by its place from 1.

    A diagnosis runs the mistakes in this process, without limits: one that does not end would stop it.
    """
    assert exercise.grader is not None
    kept, problems = [], {}
    for place, mistake in enumerate(exercise.grader.mistakes, 1):
        try:
            ended = run(mistake.text(exercise.solution), _calls(exercise, SEED), exercise.track).ended
        except ValueError as error:
            problems[place] = str(error)
            continue
        if ended and ended != mistake.id:
            problems[place] = say("verify-ended", ended=ended)
        elif ended:
            problems[place] = ""  # it is meant to end so, and is not needed for a diagnosis
        else:
            kept.append(mistake)
    return replace(exercise, grader=replace(exercise.grader, mistakes=tuple(kept))), problems


def _passes(exercise: Exercise, source: str | bytes, what: str) -> Finding:
    """Whether a program passes in the sandbox, and then on more data in this process."""
    verdict = grade(exercise, source, seed=SEED)
    for seed in MORE_SEEDS:
        if verdict.passed:
            verdict = grade(exercise, source, seed=seed, run=in_process)
    return Finding(what, "" if verdict.passed else _failure(verdict))


def _wrong_diagnosis(exercise: Exercise, source: str, id: str) -> str:
    """The first problem of a mistake, in this process: in the sandbox it has ended; "" if there is none."""
    verdicts = (grade(exercise, source, seed=seed, run=in_process) for seed in (SEED, *MORE_SEEDS))
    return next((problem for verdict in verdicts if (problem := _wrong_mistake(verdict, id))), "")


def _wrong_mistake(verdict: Verdict, wanted: str) -> str:
    if verdict.passed:
        return say("verify-passes", seed=verdict.seed)
    return (
        ""
        if verdict.mistake == wanted
        else say("verify-other-mistake", mistake=verdict.mistake, wanted=wanted, seed=verdict.seed)
    )


def _failure(verdict: Verdict) -> str:
    failing = [test.name for test in verdict.tests if not test.passed]
    return say("verify-fails", tests=Listed.few(failing), diagnosis=verdict.diagnosis, seed=verdict.seed)


# --- sheets ------------------------------------------------------------------------------------------------


def _sheet(exercise: Exercise) -> Iterator[Finding]:
    sheet = exercise.sheet
    assert sheet is not None
    empty = [grade(exercise, sheet.make(SEED, lang)) for lang in LANGUAGES]
    yield Finding(
        say("verify-sheet-empty"), next(filter(None, (_wrong_mistake(one, "not-written") for one in empty)), "")
    )
    verdicts = [grade(exercise, filled_sheet(sheet, seed)) for seed in MORE_SEEDS]
    yield Finding(say("verify-sheet-right"), next((_failure(one) for one in verdicts if not one.passed), ""))
    for place, mistake in enumerate(sheet.mistakes, 1):
        wrong = (grade(exercise, filled_sheet(sheet, seed, mistake.answers(seed))) for seed in MORE_SEEDS)
        problem = next(filter(None, (_wrong_mistake(one, mistake.id) for one in wrong)), "")
        yield Finding(say("verify-mistake", id=mistake.id, place=place), problem)


LARGEST = 2**22
"""In bytes, of one answer."""
MOST = 5000
"""Answers in one folder."""
FORMULA = tuple("=+-@\t\r＝＋－＠")
"""A spreadsheet takes a cell that begins with one of these for a formula."""


@dataclass(frozen=True)
class Graded:
    """One row: the file, and its verdict or the reason why there is none."""

    file: str
    verdict: Verdict | None
    problem: str = ""

    @property
    def state(self) -> str:
        """ "passed", "failed" or "unreadable"."""
        return "unreadable" if self.verdict is None else "passed" if self.verdict.passed else "failed"

    @property
    def tests(self) -> tuple[int, int]:
        """The number of tests that pass, and of all."""
        tests = () if self.verdict is None else self.verdict.tests
        return sum(test.passed for test in tests), len(tests)

    @property
    def mistake(self) -> str:
        """The id of the mistake."""
        return "" if self.verdict is None else self.verdict.mistake or ""

    @property
    def diagnosis(self) -> str:
        """The sentence about the mistake, on one line."""
        return one_line(self.problem if self.verdict is None else self.verdict.diagnosis or "")


def answer_files(folder: Path, name: str) -> list[str]:
    """The answers in a folder: every file with the ending of `name`, and files named `name` in folders below.

    Hidden files and folders are left out; links to folders are not followed. Raises FileError if there are too many.
    """
    if not folder.is_dir():
        raise FileError("grade-no-folder", path=str(folder))
    found = sorted(islice(_walk(folder, name), MOST + 1))
    if len(found) > MOST:
        raise FileError("grade-too-many", path=str(folder), most=MOST)
    if not found:
        raise FileError("grade-nothing", path=str(folder), ending=Path(name).suffix, name=name)
    return found


def _walk(folder: Path, name: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith((".", "__")))
        for file in files:
            is_top = Path(place) == folder and Path(file).suffix == Path(name).suffix
            if not file.startswith((".", "__")) and (is_top or file == name):
                yield os.path.relpath(os.path.join(place, file), folder)


def grade_class(exercise: Exercise, folder: Path, files: Sequence[str], seed: int) -> Iterator[Graded]:
    """Grade each file on the data of one seed, so that all are compared on the same."""
    for file in files:
        try:
            content = read_file(folder / file, most=LARGEST, within=folder)
            yield Graded(file, grade(exercise, content, seed=seed))
        except (FileError, TooLargeError) as error:
            yield Graded(file, None, error.text())


def as_csv(rows: Sequence[Graded]) -> bytes:
    """The table as CSV in UTF-8 with a byte order mark, by which spreadsheets recognise Chinese."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(
        [say(f"grade-column-{name}") for name in ("file", "verdict", "passed", "tests", "mistake", "diagnosis")]
    )
    for row in rows:
        cells = [row.file, say(f"grade-{row.state}"), *row.tests, row.mistake, row.diagnosis]
        writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])
    return b"\xef\xbb\xbf" + text.getvalue().encode("utf-8", errors="replace")


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula, on one line.

    >>> harmless("=1+1"), harmless("softmax.py")
    ("'=1+1", 'softmax.py')
    """
    text = one_line(cell)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
