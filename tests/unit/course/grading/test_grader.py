"""Hand-typed answer sheets: lenient reading, grading in order.

The grader: fresh data, no pass without answers, same results in the sandbox and in this process.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regard.course.exercise import Call, CallResult, Exercise, Field, Repeat, RunResult, Sheet, SheetMistake, Track
from regard.course.grading.grader import UnreadableError, agrees, fresh_seed, grade, read
from regard.course.grading.sandbox import in_process
from regard.messages import Message, use_language


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("a = [1, 2.5]", [1, 2.5]),
        ("a＝［１，２．５］", [1, 2.5]),
        ("a = 【1、2.5】", [1, 2.5]),
        ("a = （1，2.5）", [1, 2.5]),
        ("a = (1, 2.5)", [1, 2.5]),
        ("a = [.5 -.5, 1.]", [0.5, -0.5, 1.0]),
        ("a = [[1 0] [0 1]]", [[1, 0], [0, 1]]),
        ("a = [−1, －2, –3]", [-1, -2, -3]),
        ("a = “BCA”", "BCA"),
        ("a = 'BCA'", "BCA"),
        ("a = ‘BCA’", "BCA"),
        ("a = BCA", "BCA"),
        ("a = [B, C, A]", "B, C, A"),
        ("a = “第一，第二”", "第一，第二"),
        ("a = 1e-3", 1e-3),
        ("a = -inf", float("-inf")),
        ("a = 3  # 说明：“引号”，don't read", 3),
        ("a = 3 ＃ 说明", 3),
        ("a = [\n 1, # one\n 2\n]", [1, 2]),
        ("\ufeffa = 3\r\n", 3),
        ("a =", []),
        ("a =   # fill me in", []),
    ],
)
def test_hand_typed_answers_are_read(typed: str, value: Any) -> None:
    assert read(typed) == {"a": value}


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("x = 1\na = [1, 2", 2),
        ("a = 1/2", 1),
        ("a = " + "[" * 5000, 1),
        ("a = " + "9" * 5000, 1),
        ("x = 1\n\nhello", 3),
        ("[", 1),
    ],
)
def test_an_unreadable_line_is_reported(typed: str, line: int) -> None:
    with pytest.raises(UnreadableError) as caught:
        read(typed)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("expected", "typed", "right"),
    [
        ([0.401, 0.198], [0.4, 0.2], True),
        ([0.401, 0.198], [0.4, 0.19], False),
        ([0.4], 0.4, True),
        ([[1.0], [2.0]], [1, 2], True),
        ([1.0, 2.0], [[1, 2], [3]], False),
        ([1.0, 2.0], [1, 2, 3], False),
        (1.0, "1.0", True),
        (10, "1.0", False),
        (1.0, "one", False),
        (1.0, 10**400, False),
        ("BCA", "b c a", True),
        ("BCA", ["B", "C", "A"], True),
        ("BCA", "BAC", False),
        ("BCA", 3, False),
        ("BCA", " bca ", True),
        (["I", "love"], ["i", "Love"], True),
        (1.0, True, False),
        (1.0, None, False),
        (1.0, {"a": 1}, False),
        (float("-inf"), float("-inf"), True),
        (1.0, float("nan"), False),
    ],
)
def test_answers_that_agree(expected: Any, typed: Any, right: bool) -> None:
    assert agrees(Field("a", expected, 0.005), expected, typed) == right


@pytest.fixture
def sums(shift: Exercise) -> Exercise:
    """Two steps whose expected answers depend on the seed."""

    def answers(seed: int, offset: float = 0) -> dict[str, Any]:
        return {"sum": seed + 1.0, "first.mean": [(seed + 1.0) / 2 + offset]}

    sheet = Sheet(
        make=lambda seed, lang: f"seed = {seed}\nsum = \n[first]\nmean = []\n",
        fields=lambda seed: [Field(name, value, 0.01, "by") for name, value in answers(seed).items()],
        mistakes=(
            SheetMistake("over-rows", lambda seed: {"sum": seed * 1.0, "first.mean": [seed / 2]}),
            SheetMistake("not-shifted", lambda seed: {"sum": seed * 1.0, "first.mean": [7.0]}),
            SheetMistake("not-centred", lambda seed: {"first.mean": [seed + 1.0]}),
        ),
    )
    words = Message(en="a step", zh="一步")
    return replace(shift, kind="sheet", grader=None, sheet=sheet, cases={"by": words})


@pytest.mark.parametrize(
    ("typed", "mistake"),
    [
        ("seed = 4\nsum = 5\n[first]\nmean = [2.5]", None),
        ("seed = 4\nsum = 5\nfirst.mean = 2.5", None),
        ("seed = 4\nsum = \n[first]\nmean = []", "not-written"),
        ("seed = 4\nsum = 5", "not-written"),
        ("seed = 4\nsum = 9\nfirst.mean = 2.5", "unknown"),
        ("seed = 4\nsum = 4\nfirst.mean = 2", "over-rows"),
        ("seed = 4\nsum = 4\nfirst.mean = 7", "not-shifted"),
        ("seed = 4\nsum = 4", "over-rows"),
        ("seed = 4\nsum = 5\nfirst.mean = 5", "not-centred"),
        ("seed = 4\nsum = [", "syntax"),
        ("sum = 5\nfirst.mean = 2.5", "no-seed"),
        ("seed = true\nsum = 5", "no-seed"),
        ("seed = -1\nsum = 5", "no-seed"),
    ],
)
def test_the_first_wrong_step_is_named(sums: Exercise, typed: str, mistake: str | None) -> None:
    verdict = grade(sums, typed)
    assert (verdict.passed, verdict.mistake) == (mistake is None, mistake)
    assert bool(verdict.diagnosis) == (mistake is not None)
    if mistake == "no-seed":
        assert f"regard learn reset {sums.id}" in str(verdict.diagnosis), "`start` would find the file already there"
    with use_language("zh"):
        assert grade(sums, typed).mistake == mistake


def test_the_right_answer_is_not_shown(sums: Exercise) -> None:
    verdict = grade(sums, "seed = 4\nsum = 9\nfirst.mean = 9.1234567")
    assert [(test.expected, test.got) for test in verdict.tests] == [("", "9"), ("", "9.1234567")]
    assert "The first wrong answer: sum" in str(verdict)
    assert "  you typed\n    9\n  allowed: ± 0.01\n" in str(verdict)
    assert "5" not in str(verdict)
    assert "--seed" not in str(verdict), "the sheet carries it"
    assert verdict.seed == 4
    with use_language("zh"):
        assert "  你填的是\n    9\n  允许的误差：± 0.01\n" in str(grade(sums, "seed = 4\nsum = 9"))


@pytest.mark.parametrize(
    ("typed", "en", "zh"),
    [
        (
            "first.mean = [1, 2]",
            "the number of values in first.mean should be 1, not 2",
            "first.mean 需要 1 个数；实际有 2 个",
        ),
        ("first.mean = 'two'", "first.mean is wrong", "first.mean 不正确"),
        ("first.mean = [[1], [2, 3]]", "first.mean is wrong", "first.mean 不正确"),
    ],
)
def test_wrong_numbers_of_values_are_reported(sums: Exercise, typed: str, en: str, zh: str) -> None:
    assert str(grade(sums, f"seed = 4\nsum = 5\n{typed}").diagnosis).startswith(en)
    with use_language("zh"):
        assert str(grade(sums, f"seed = 4\nsum = 5\n{typed}").diagnosis).startswith(zh)


def test_the_data_are_fresh_unless_a_seed_is_given(shift: Exercise) -> None:
    seen = [grade(shift, shift.solution, seed=seed, run=in_process) for seed in (None, None, 7, 7)]
    assert all(verdict.passed for verdict in seen)
    assert seen[0].seed != seen[1].seed
    assert seen[0].tests != seen[1].tests
    assert seen[2].tests == seen[3].tests
    assert len({fresh_seed() for _ in range(20)}) > 15


def test_the_program_receives_only_the_calls(shift: Exercise) -> None:
    def spying(source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
        assert source == "def f(): ...\n"
        assert {call.target for call in calls} == {"shift"}
        assert track == "numpy"
        return RunResult(ended="killed")

    assert grade(shift, "def f(): ...\n", run=spying).mistake == "killed"


@pytest.mark.parametrize("ended", ["too-slow", "too-much-memory", "too-much-output", "killed", "garbled"])
def test_a_run_that_ended_early_never_passes(shift: Exercise, ended: str) -> None:
    right = in_process(shift.solution, [], "numpy")

    def ending(source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
        return RunResult(in_process(shift.solution, calls, track).answers, ended=ended)

    verdict = grade(shift, shift.solution, run=ending)
    assert (verdict.passed, verdict.mistake) == (False, ended)
    assert verdict.diagnosis
    assert right.answers == ()


@pytest.mark.parametrize("count", [0, 3])
def test_missing_answers_never_pass(shift: Exercise, count: int) -> None:
    def short(source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
        return RunResult(in_process(shift.solution, calls, track).answers[:count], ended="killed")

    verdict = grade(shift, shift.solution, run=short)
    assert not verdict.passed
    assert [test.passed for test in verdict.tests] == [place < count for place in range(4)]


def test_an_answer_with_a_forged_eq_is_wrong(shift: Exercise) -> None:
    class Liar:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    def lying(source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
        return RunResult(tuple(CallResult(Liar()) for _ in calls))

    assert not grade(shift, shift.solution, run=lying).passed


def test_programs_do_not_share_arguments(shift: Exercise) -> None:
    def spoiling(source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
        outcome = in_process(shift.solution, calls, track)
        for call in calls:
            np.asarray(call.args[0])[...] = 0
        return outcome

    assert grade(shift, shift.solution, run=spoiling).passed


@pytest.mark.parametrize("source", [b"\xef\xbb\xbf", "", "   \n", b"\xff\xfe\x00", "x = 1\0"])
def test_an_unreadable_source_is_reported(shift: Exercise, source: str | bytes) -> None:
    verdict = grade(shift, source)
    assert (verdict.passed, verdict.mistake) == (False, "syntax")
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
