"""What is wrong, told by what came back: known slips by equal numbers, two at once, and what any program may do."""

from collections.abc import Sequence

import pytest

from regard.course.exercise import Call, Exercise, Track
from regard.course.grading import diagnosis
from regard.course.grading.answers import Answer, Outcome
from regard.course.grading.diagnosis import GENERAL
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.messages import catalogue, speaking

HEAD = "import numpy as np\ndef shift(x, by=1.0):\n    "
RIGHT = "x - x.mean(axis=-1, keepdims=True) + by"
REFUSE = "assert x.ndim == 2\n    "


def slip(tried: Exercise, body: str) -> str | None:
    verdict = grade(tried, HEAD + body, seed=3, run=in_process)
    assert verdict.passed == (verdict.slip is None)
    return verdict.slip


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (f"{REFUSE}return {RIGHT}", None),
        (f"{REFUSE}return x - x.mean(axis=0, keepdims=True) + by", "over-rows"),
        (f"{REFUSE}return np.array([row - sum(row) / len(row) for row in x])", "not-shifted"),
        (f"{REFUSE}return x", "not-shifted+not-centred"),
        (f"return {RIGHT}", "no-error"),
        ("pass", "not-written"),
        ("raise NotImplementedError('later')", "not-written"),
        ("if len(x) == 2: raise NotImplementedError('no such kernel')\n    return x + by", "raises"),
        (f"{REFUSE}return y", "raises"),
        (f"{REFUSE}x -= x.mean(axis=-1, keepdims=True); return x + by", "mutates-input"),
        (f"{REFUSE}return ({RIGHT}).tolist()", "wrong-type"),
        (f"{REFUSE}return (n for n in x)", "wrong-type"),
        (f"{REFUSE}return {RIGHT}, 1", "wrong-type"),
        (f"{REFUSE}return ({RIGHT}).ravel()", "wrong-shape"),
        (f"{REFUSE}return ({RIGHT}).T", "transposed"),
        (f"{REFUSE}return ({RIGHT}).astype(int)", "wrong-dtype"),
        (f"{REFUSE}return ({RIGHT}) * (1 + 0j)", "wrong-dtype"),
        (f"{REFUSE}return ({RIGHT}) / 0 * 0", "not-finite"),
        (f"{REFUSE}y = np.round({RIGHT}, 2); x += 1; return y", "mutates-input"),
        (f"{REFUSE}return np.round({RIGHT}, 2)", "rounded"),
        (f"{REFUSE}return np.trunc(({RIGHT}) * 1000) / 1000", "rounded"),
        (f"{REFUSE}return ({RIGHT}).astype(np.float16)", "low-precision"),
        (f"{REFUSE}return ({RIGHT}) * 1.0005", "near"),
        (f"{REFUSE}return np.array([[0.1, 0.2, 0.3]])", "hard-coded"),
        (f"{REFUSE}return 0.0", "hard-coded"),
        (f"{REFUSE}return ({RIGHT}) * 3 - x ** 2", "unknown"),
        (f"{REFUSE}return np.zeros_like(x)", "unknown"),
    ],
)
def test_every_fault_has_its_name(shift: Exercise, body: str, name: str | None) -> None:
    assert slip(shift, body) == name


def test_a_name_that_is_missing_is_told_with_the_nearest(shift: Exercise) -> None:
    verdict = grade(shift, "def shft(x):\n    return x\n", seed=3, run=in_process)
    assert verdict.slip == "missing-name"
    assert verdict.diagnosis is not None
    assert "shift" in verdict.diagnosis
    assert "shft" in verdict.diagnosis


def test_what_is_raised_is_told_with_its_line(shift: Exercise) -> None:
    verdict = grade(shift, HEAD + "raise RuntimeError('no luck')", seed=3, run=in_process)
    assert verdict.diagnosis == "your code stops in line 3 with RuntimeError: no luck"


def test_a_name_that_nobody_gave_is_told_with_its_line(shift: Exercise) -> None:
    verdict = grade(shift, HEAD + "return x + shfit", seed=3, run=in_process)
    assert str(verdict.diagnosis).startswith("line 3: the name shfit is used, but nothing is called that")


@pytest.mark.parametrize(
    ("source", "en", "zh"),
    [
        (
            "def shift(x, by=1.0):\n    return np.exp(x)",
            "line 2 uses np, which is not imported; add `import numpy as np` at the top of your file",
            "第 2 行用到了 np，但还没有导入；请在文件开头加上 `import numpy as np`",
        ),
        (
            "x = math.pi",
            "line 1 uses math, which is not imported; add `import math`",
            "第 1 行用到了 math，但还没有导入",
        ),
        ("import nosuchpackage", "there is no package nosuchpackage here;", "这里没有 nosuchpackage 这个包；"),
    ],
)
def test_a_missing_import_or_package_is_told_in_plain_words(shift: Exercise, source: str, en: str, zh: str) -> None:
    verdict = grade(shift, source, seed=3, run=in_process)
    assert verdict.slip == "raises"
    assert str(verdict.diagnosis).startswith(en)
    with speaking("zh"):
        assert str(grade(shift, source, seed=3, run=in_process).diagnosis).startswith(zh)


@pytest.mark.parametrize(
    ("source", "en", "zh"),
    [
        (
            "def shift():\n    return 1",
            "the number of arguments that shift takes is 0, but it is called with 1; define it with the arguments that",
            "调用 shift 时给了 1 个参数，但它只接受 0 个；请按题目写的参数来定义它",
        ),
        (
            "def shift(x, by=1.0, *, axis, how):\n    return x",
            "shift is called without axis, how, which it needs; define",
            "调用 shift 时没有给 axis、how，但它需要这个参数；请",
        ),
        (
            "class A:\n    def f(self, x):\n        return x\n\n\ndef shift(x, by=1.0):\n    return A().f(x, by)",
            "line 7: the number of arguments that f takes is 1, but it is called with 2",
            "第 7 行：调用 f 时给了 2 个参数，但它只接受 1 个",
        ),
        (
            "def f(x):\n    return x\n\n\ndef shift(x, by=1.0):\n    return f(x, by=by)",
            "line 6: f is called with by=, which it does not know",
            "第 6 行：调用 f 时给了 by=，但它没有这个参数",
        ),
        (
            "def shift(x, by=1.0):\n    return shift(x, by)",
            "line 2: a function calls itself without end",
            "第 2 行：函数一直在调用自己",
        ),
        (
            "def shift(x, by=1.0):\n    raise EOFError('EOF when reading a line')",
            "line 2: your code waits for the keyboard, as input() does",
            "第 2 行：你的代码在等键盘输入",
        ),
    ],
)
def test_the_common_exceptions_are_told_in_plain_words(shift: Exercise, source: str, en: str, zh: str) -> None:
    assert str(grade(shift, source, seed=3, run=in_process).diagnosis).startswith(en)
    with speaking("zh"):
        assert str(grade(shift, source, seed=3, run=in_process).diagnosis).startswith(zh)


def test_a_warning_is_told_with_its_line(shift: Exercise) -> None:
    source = HEAD + "np.exp(np.array([1000.0]))\n    return x"
    with speaking("zh"):
        verdict = grade(shift, source, seed=3)
    assert "第 3 行：RuntimeWarning: overflow" in verdict.printed
    assert "your file" not in str(verdict)


def test_a_slip_that_only_raises_as_the_learner_does_says_nothing(shift: Exercise) -> None:
    """The same type of error for another reason is no sign of a slip."""
    assert slip(shift, "raise ValueError('something else')") == "raises"


@pytest.mark.parametrize("wrong", ["by > 2", "by < 2"])
def test_a_slip_that_would_fail_where_the_learner_is_right_is_not_told(shift: Exercise, wrong: str) -> None:
    """It explains every call that failed, but another mistake was made."""
    body = f"{REFUSE}return x - x.mean(axis=-1, keepdims=True) + (by if {wrong} else 0)"
    assert slip(shift, body) == "unknown"


def test_an_exception_is_told_where_the_numbers_before_it_tell_nothing(shift: Exercise) -> None:
    verdict = grade(shift, f"{HEAD}{REFUSE}return x ** 3 if len(x) == 2 else x @ x", seed=3, run=in_process)
    assert verdict.slip == "raises"
    assert str(verdict.diagnosis).startswith("line 4: in a matrix product")


def test_looking_for_two_slips_ends_in_time(shift: Exercise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "LONGEST", -1.0)
    assert slip(shift, f"{REFUSE}return x") == "unknown"


def test_every_general_diagnosis_has_a_sentence() -> None:
    said = {key.removeprefix("slip-") for key in catalogue() if key.startswith("slip-")}
    assert set(GENERAL) - {"syntax"} <= said  # a text that Python cannot read is told by `source`


@pytest.mark.parametrize("fault", ["missing-name", "wrong-parameter", "refused", "too-much-memory", "not-a-module"])
def test_a_fault_without_its_details_is_told_all_the_same(shift: Exercise, fault: str) -> None:
    """They come from the learner's process, which may have made them up."""

    def lying(source: str, calls: Sequence[Call], track: Track) -> Outcome:
        return Outcome(tuple(Answer(fault=fault, details={"what": "{0}", "nearest": "{x}"}) for _ in calls))

    verdict = grade(shift, shift.solution, run=lying)
    assert (verdict.passed, verdict.slip) == (False, fault)
    assert verdict.diagnosis
    assert str(verdict)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (f"({RIGHT}).tolist()", "the result should be np.ndarray, not list"),
        ("(n for n in x)", "the result should be np.ndarray, not generator"),
        (f"({RIGHT}).ravel()", "the shape should be (2, 3), not (6,)"),
        (f"({RIGHT}).astype(int)", "the numbers should be float64, not int64"),
        (f"np.round({RIGHT}, 2)", "your numbers are the right ones rounded to 2 places; do not round"),
    ],
)
def test_what_is_said(shift: Exercise, returned: str, said: str) -> None:
    assert grade(shift, f"{HEAD}{REFUSE}return {returned}", seed=3, run=in_process).diagnosis == said
