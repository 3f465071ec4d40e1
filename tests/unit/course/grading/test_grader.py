"""The grader: fresh data, no pass without answers, same results in the sandbox and in this process."""

from collections.abc import Sequence

import numpy as np
import pytest

from regard.course.exercise import Call, CallResult, Exercise, RunResult, Track
from regard.course.grading.grader import fresh_seed, grade
from regard.course.grading.sandbox import in_process
from regard.messages import use_language


def test_the_data_are_fresh_unless_a_seed_is_given(shift: Exercise) -> None:
    seen = [grade(shift, shift.solution, seed=seed, run=in_process) for seed in (None, None, 7, 7)]
    assert all(verdict.passed for verdict in seen)
    assert seen[0].seed != seen[1].seed
    assert seen[0].tests != seen[1].tests
    assert seen[2].tests == seen[3].tests
    assert len({fresh_seed() for _ in range(20)}) > 15


def test_the_program_receives_only_the_calls(shift: Exercise) -> None:
    def spying(source: str, calls: Sequence[Call], track: Track) -> RunResult:
        assert source == "def f(): ...\n"
        assert {call.target for call in calls} == {"shift"}
        assert track == "numpy"
        return RunResult(ended="killed")

    assert grade(shift, "def f(): ...\n", run=spying).slip == "killed"


@pytest.mark.parametrize("ended", ["too-slow", "too-much-memory", "too-much-output", "killed", "garbled"])
def test_a_run_that_ended_early_never_passes(shift: Exercise, ended: str) -> None:
    right = in_process(shift.solution, [], "numpy")

    def ending(source: str, calls: Sequence[Call], track: Track) -> RunResult:
        return RunResult(in_process(shift.solution, calls, track).answers, ended=ended)

    verdict = grade(shift, shift.solution, run=ending)
    assert (verdict.passed, verdict.slip) == (False, ended)
    assert verdict.diagnosis
    assert right.answers == ()


@pytest.mark.parametrize("count", [0, 3])
def test_missing_answers_never_pass(shift: Exercise, count: int) -> None:
    def short(source: str, calls: Sequence[Call], track: Track) -> RunResult:
        return RunResult(in_process(shift.solution, calls, track).answers[:count], ended="killed")

    verdict = grade(shift, shift.solution, run=short)
    assert not verdict.passed
    assert [test.passed for test in verdict.tests] == [place < count for place in range(4)]


def test_an_answer_with_a_forged_eq_is_wrong(shift: Exercise) -> None:
    class Liar:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    def lying(source: str, calls: Sequence[Call], track: Track) -> RunResult:
        return RunResult(tuple(CallResult(Liar()) for _ in calls))

    assert not grade(shift, shift.solution, run=lying).passed


def test_programs_do_not_share_arguments(shift: Exercise) -> None:
    def spoiling(source: str, calls: Sequence[Call], track: Track) -> RunResult:
        outcome = in_process(shift.solution, calls, track)
        for call in calls:
            np.asarray(call.args[0])[...] = 0
        return outcome

    assert grade(shift, shift.solution, run=spoiling).passed


@pytest.mark.parametrize("source", [b"\xef\xbb\xbf", "", "   \n", b"\xff\xfe\x00", "x = 1\0"])
def test_an_unreadable_source_is_reported(shift: Exercise, source: str | bytes) -> None:
    verdict = grade(shift, source)
    assert (verdict.passed, verdict.slip) == (False, "syntax")
    assert verdict.diagnosis


def test_both_languages(shift: Exercise) -> None:
    wrong = shift.solution.replace("axis=-1", "axis=0")
    with use_language("zh"):
        verdict = grade(shift, wrong, seed=1, run=in_process)
    assert verdict.diagnosis == "错误 over-rows"
    assert "第一处不同在" in str(verdict)
    assert "平移" in str(verdict)


def test_the_sandbox_gives_the_same_verdict(shift: Exercise) -> None:
    for source in (shift.solution, shift.stub, shift.solution.replace("axis=-1", "axis=0"), "def shift(:\n"):
        here, apart = grade(shift, source, seed=5, run=in_process), grade(shift, source, seed=5)
        assert here.as_json() == apart.as_json()
