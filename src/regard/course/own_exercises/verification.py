"""Verifies an exercise of one's own as the tests of regard verify those of the course.

The solution and the other right answers must pass, the initial file and every known mistake must fail, each mistake
with its own diagnosis, and every text must be there. Programs run in the sandbox first.
"""

import doctest
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.course.exercise import Call, Exercise, filled_sheet
from regard.course.grading.diagnosis import GENERAL, UNTOUCHED
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process, run
from regard.course.grading.verdict import Verdict
from regard.course.own_exercises.loading import right_answers
from regard.errors import RegardError
from regard.messages import LANGUAGES, Listed, catalogue, say

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
    lacking += [f"[slips] {name}" for name in sorted(mistakes - set(GENERAL) - set(exercise.mistakes))]
    unused = [f"[cases] {name}" for name in sorted(set(exercise.cases) - used)]
    unused += [f"[slips] {name}" for name in sorted(set(exercise.mistakes) - mistakes)]
    problems = [say("verify-lacking", names=Listed(lacking))] if lacking else []
    problems += [say("verify-unused", names=Listed(unused))] if unused else []
    if not all(exercise.hints[lang] and all(hint.strip() for hint in exercise.hints[lang]) for lang in LANGUAGES):
        problems.append(say("verify-hints"))
    yield Finding(say("verify-texts"), " ".join(problems))
    if not mistakes:
        yield Finding(say("verify-slips"), say("verify-no-slips"))


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
    yield Finding(say("verify-stub"), _wrong_slip(verdict, UNTOUCHED if exercise.kind == "bug" else "not-written"))
    for place, mistake in enumerate(exercise.grader.mistakes, 1):
        problem = problems.get(place)
        if problem is None:
            problem = _wrong_diagnosis(ending, mistake.text(exercise.solution), mistake.id)
        yield Finding(say("verify-slip", id=mistake.id, place=place), problem)
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
    return next((problem for verdict in verdicts if (problem := _wrong_slip(verdict, id))), "")


def _wrong_slip(verdict: Verdict, wanted: str) -> str:
    if verdict.passed:
        return say("verify-passes", seed=verdict.seed)
    return (
        "" if verdict.slip == wanted else say("verify-other-slip", slip=verdict.slip, wanted=wanted, seed=verdict.seed)
    )


def _failure(verdict: Verdict) -> str:
    failing = [test.name for test in verdict.tests if not test.passed]
    return say("verify-fails", tests=Listed.few(failing), diagnosis=verdict.diagnosis, seed=verdict.seed)


# --- sheets ------------------------------------------------------------------------------------------------


def _sheet(exercise: Exercise) -> Iterator[Finding]:
    sheet = exercise.sheet
    assert sheet is not None
    empty = [grade(exercise, sheet.make(SEED, lang)) for lang in LANGUAGES]
    yield Finding(say("verify-sheet-empty"), next(filter(None, (_wrong_slip(one, "not-written") for one in empty)), ""))
    verdicts = [grade(exercise, filled_sheet(sheet, seed)) for seed in MORE_SEEDS]
    yield Finding(say("verify-sheet-right"), next((_failure(one) for one in verdicts if not one.passed), ""))
    for place, mistake in enumerate(sheet.mistakes, 1):
        wrong = (grade(exercise, filled_sheet(sheet, seed, mistake.answers(seed))) for seed in MORE_SEEDS)
        problem = next(filter(None, (_wrong_slip(one, mistake.id) for one in wrong)), "")
        yield Finding(say("verify-slip", id=mistake.id, place=place), problem)
