"""Diagnoses from results: known mistakes by equal numbers, two at once, and general diagnoses."""

from collections.abc import Sequence

import pytest

from regard.course.exercise import Call, CallResult, Exercise, Repeat, RunResult, Track
from regard.course.grading import diagnosis
from regard.course.grading.diagnosis import GENERAL
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.messages import catalogue, use_language

HEAD = "import numpy as np\ndef shift(x, by=1.0):\n    "
RIGHT = "x - x.mean(axis=-1, keepdims=True) + by"
REFUSE = "assert x.ndim == 2\n    "


def mistake(tried: Exercise, body: str) -> str | None:
    verdict = grade(tried, HEAD + body, seed=3, run=in_process)
    assert verdict.passed == (verdict.mistake is None)
    return verdict.mistake


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
    assert mistake(shift, body) == name


def test_a_missing_name_is_reported_with_the_closest(shift: Exercise) -> None:
    verdict = grade(shift, "def shft(x):\n    return x\n", seed=3, run=in_process)
    assert verdict.mistake == "missing-name"
    assert verdict.diagnosis is not None
    assert "shift" in verdict.diagnosis
    assert "shft" in verdict.diagnosis


def test_exceptions_are_reported_with_their_line(shift: Exercise) -> None:
    verdict = grade(shift, HEAD + "raise RuntimeError('no luck')", seed=3, run=in_process)
    assert verdict.diagnosis == "line 3 of your code raises RuntimeError: no luck"


def test_an_undefined_name_is_reported_with_its_line(shift: Exercise) -> None:
    verdict = grade(shift, HEAD + "return x + shfit", seed=3, run=in_process)
    assert str(verdict.diagnosis).startswith("line 3: the name shfit is not defined")


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
        ("import nosuchpackage", "there is no package nosuchpackage here;", "没有安装 nosuchpackage；"),
    ],
)
def test_a_missing_import_or_package_is_explained(shift: Exercise, source: str, en: str, zh: str) -> None:
    verdict = grade(shift, source, seed=3, run=in_process)
    assert verdict.mistake == "raises"
    assert str(verdict.diagnosis).startswith(en)
    with use_language("zh"):
        assert str(grade(shift, source, seed=3, run=in_process).diagnosis).startswith(zh)


@pytest.mark.parametrize(
    ("source", "en", "zh"),
    [
        (
            "def shift():\n    return 1",
            "wrong number of arguments for shift: it takes 0 and is called with 1; define it with the parameters given",
            "调用 shift 时传入了 1 个参数，但它只接受 0 个；请按题目给出的参数定义它",
        ),
        (
            "def shift(x, by=1.0, *, axis, how):\n    return x",
            "shift is called without axis, how, which is required; define",
            "调用 shift 时没有传入必需的参数 axis、how；请",
        ),
        (
            "class A:\n    def f(self, x):\n        return x\n\n\ndef shift(x, by=1.0):\n    return A().f(x, by)",
            "line 7: wrong number of arguments for f: it takes 1 and is called with 2",
            "第 7 行：调用 f 时传入了 2 个参数，但它只接受 1 个",
        ),
        (
            "def f(x):\n    return x\n\n\ndef shift(x, by=1.0):\n    return f(x, by=by)",
            "line 6: f is called with by=, but has no such parameter",
            "第 6 行：调用 f 时传入了 by=，但它没有这个参数",
        ),
        (
            "def shift(x, by=1.0):\n    return shift(x, by)",
            "line 2: infinite recursion",
            "第 2 行：无限递归",
        ),
        (
            "def shift(x, by=1.0):\n    raise EOFError('EOF when reading a line')",
            "line 2: your code waits for keyboard input, for example with input()",
            "第 2 行：你的代码在等待键盘输入",
        ),
    ],
)
def test_common_exceptions_are_explained(shift: Exercise, source: str, en: str, zh: str) -> None:
    assert str(grade(shift, source, seed=3, run=in_process).diagnosis).startswith(en)
    with use_language("zh"):
        assert str(grade(shift, source, seed=3, run=in_process).diagnosis).startswith(zh)


def test_a_warning_is_shown_with_its_line(shift: Exercise) -> None:
    source = HEAD + "np.exp(np.array([1000.0]))\n    return x"
    with use_language("zh"):
        verdict = grade(shift, source, seed=3)
    assert "第 3 行：RuntimeWarning: overflow" in verdict.printed
    assert "your file" not in str(verdict)


def test_a_mistake_that_only_raises_the_same_type_is_not_reported(shift: Exercise) -> None:
    """The same type of error for another reason is no sign of a mistake."""
    assert mistake(shift, "raise ValueError('something else')") == "raises"


@pytest.mark.parametrize("wrong", ["by > 2", "by < 2"])
def test_a_mistake_that_fails_in_a_passing_call_is_not_reported(shift: Exercise, wrong: str) -> None:
    """It explains every failing call, but the actual mistake is another one."""
    body = f"{REFUSE}return x - x.mean(axis=-1, keepdims=True) + (by if {wrong} else 0)"
    assert mistake(shift, body) == "unknown"


def test_an_exception_is_reported_if_the_numbers_give_no_diagnosis(shift: Exercise) -> None:
    verdict = grade(shift, f"{HEAD}{REFUSE}return x ** 3 if len(x) == 2 else x @ x", seed=3, run=in_process)
    assert verdict.mistake == "raises"
    assert str(verdict.diagnosis).startswith("line 4: in a matrix product")


def test_the_search_for_two_mistakes_ends_in_time(shift: Exercise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(diagnosis.LONGEST, "numpy", -1.0)
    assert mistake(shift, f"{REFUSE}return x") == "unknown"


def test_every_general_diagnosis_has_a_sentence() -> None:
    keys = {key.removeprefix("mistake-") for key in catalogue() if key.startswith("mistake-")}
    assert set(GENERAL) - {"syntax"} <= keys  # syntax errors have "source-…" messages


@pytest.mark.parametrize("fault", ["missing-name", "wrong-parameter", "refused", "too-much-memory", "not-a-module"])
def test_a_fault_without_details_still_has_a_message(shift: Exercise, fault: str) -> None:
    """They come from the learner's process, which may forge them."""

    def lying(source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None) -> RunResult:
        return RunResult(tuple(CallResult(fault=fault, details={"what": "{0}", "nearest": "{x}"}) for _ in calls))

    verdict = grade(shift, shift.solution, run=lying)
    assert (verdict.passed, verdict.mistake) == (False, fault)
    assert verdict.diagnosis
    assert str(verdict)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (f"({RIGHT}).tolist()", "the result should be np.ndarray, not list"),
        ("(n for n in x)", "the result should be np.ndarray, not generator"),
        (f"({RIGHT}).ravel()", "the shape should be (2, 3), not (6,)"),
        (f"({RIGHT}).astype(int)", "the numbers should be float64, not int64"),
        (f"np.round({RIGHT}, 2)", "your numbers are the right ones rounded to 2 decimals; do not round"),
    ],
)
def test_messages_of_the_verdict(shift: Exercise, returned: str, message: str) -> None:
    assert grade(shift, f"{HEAD}{REFUSE}return {returned}", seed=3, run=in_process).diagnosis == message
