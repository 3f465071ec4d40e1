"""Verdicts as text and as JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.course.catalogue import exercise
from regard.course.exercise import Call, Exercise, Instance
from regard.course.grading.grader import grade
from regard.course.grading.python_source import pair, written, written_call
from regard.course.grading.sandbox import in_process
from regard.course.grading.verdict import Test, Verdict, plain


def test_a_failure_shows_call_results_place_and_mistake(shift: Exercise) -> None:
    verdict = grade(shift, shift.solution.replace("axis=-1", "axis=0"), seed=1, run=in_process)
    assert str(verdict) == (
        "✗ Shift: 1 of 4 tests pass\n"
        "  ✗ a plain call\n"
        "  ✗ another shift\n"
        "  ✗ a plain call\n"
        "  ✓ one axis\n"
        "\n"
        "The first test that fails: a plain call\n"
        "  call\n"
        "    shift(\n"
        "        np.array([[0.35, 0.82, 0.33],\n"
        "                  [-1.3, 0.91, 0.45]]),\n"
        "    )\n"
        "  expected\n"
        "    np.array([[0.85, 1.32, 0.83],\n"
        "              [-0.32, 1.89, 1.43]])\n"
        "  got\n"
        "    np.array([[1.825, 0.955, 0.94],\n"
        "              [0.175, 1.045, 1.06]])\n"
        "  first difference at result[0, 0]: expected 0.85, got 1.825; 6 of 6 numbers differ\n"
        "  allowed: |got - expected| ≤ 1e-08 + 1e-06 · |expected|\n"
        "\n"
        "Diagnosis: mistake over-rows\n"
        "\n"
        "A hint: regard learn hint shift\n"
        'The same data once more: check("shift", …, seed=1)'
    )


def test_json_contains_the_documented_fields(shift: Exercise) -> None:
    read = json.loads(json.dumps(grade(shift, shift.stub, seed=1, run=in_process).as_json()))
    assert list(read) == ["id", "passed", "diagnosis", "mistake", "tests", "seed", "printed"]
    assert (read["id"], read["passed"], read["mistake"], read["seed"]) == ("shift", False, "not-written", 1)
    assert list(read["tests"][0]) == ["name", "passed", "call", "expected", "got", "where", "message", "allowed"]


@pytest.mark.parametrize(("end", "is_shown"), [("[0]", False), (".tolist()", False), (" * 2", True)])
def test_the_tolerance_is_shown_for_wrong_numbers(shift: Exercise, end: str, is_shown: bool) -> None:
    wrong = shift.solution.replace("centred + by", f"(centred + by){end}")
    assert ("allowed: " in str(grade(shift, wrong, seed=1, run=in_process))) is is_shown


def test_the_repeat_command_names_the_checked_file(shift: Exercise) -> None:
    verdict = grade(shift, shift.stub, seed=1, run=in_process)
    assert verdict.text("mine.py").endswith("regard learn check shift mine.py --seed 1")
    assert str(verdict).endswith('check("shift", …, seed=1)')


def test_output_and_warnings_share_one_heading() -> None:
    verdict = Verdict("a", False, diagnosis="x", printed="RuntimeWarning: overflow", title="A")
    assert "Output and warnings of your program:\n  RuntimeWarning" in str(verdict)
    assert "程序的输出和警告：\n  RuntimeWarning" in str(replace(verdict, language="zh"))


def test_a_passing_verdict_is_short() -> None:
    assert str(Verdict("a", True, tests=(Test("one", True),), title="A")) == "✓ A: all 1 tests pass\n  ✓ one"


def test_no_test_is_listed_if_none_could_run(shift: Exercise) -> None:
    verdict = grade(shift, "def shift(:\n", run=in_process)
    assert len(verdict.tests) == 4
    assert str(verdict).startswith("✗ Shift: no test could be run\n\nDiagnosis: ")


# --- what came from a learner's program -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07after", "␛]0;title␇after"),
        ("a\x08b\x7f\x9bc", "a␈b␡⟨9B⟩c"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree"),
        ("\u202egnp.exe", "⟨202E⟩gnp.exe"),
        ("他说：“好”", "他说：“好”"),
        ("\ud800", "⟨D800⟩"),
    ],
)
def test_no_terminal_control_character_is_left(typed: str, shown: str) -> None:
    assert plain(typed) == shown


@given(st.text(st.characters(max_codepoint=0x2100), max_size=30))
def test_printed_output_has_no_control_characters(text: str) -> None:
    assert all(mark.isprintable() or mark in "\n\t" or mark.isspace() or mark > "\x9f" for mark in plain(text))


def test_long_output_is_cut() -> None:
    verdict = Verdict("a", False, diagnosis="x", printed="y" * 5000, title="A")
    assert "... and 3000 more characters" in str(verdict)


# --- values as Python -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        np.array([[0.5, -1.25], [1e-9, 3e8]]),
        np.array([np.nan, np.inf, -np.inf]),
        np.array([[True, False]]),
        np.arange(6).reshape(2, 3),
        np.array([1.5], dtype=np.float32),
        np.array(2.5),
        np.zeros((0, 3)),
        np.array([0.35], dtype=np.float32),
        (np.zeros((2, 2)), None, "a"),
        [1, 2.5, (3,)],
        {"K": np.zeros(2)},
        float("inf"),
    ],
)
def test_shown_values_can_be_pasted(value: object) -> None:
    again = eval(written(value), {"np": np, "inf": np.inf, "nan": np.nan})
    assert repr(again) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([[0.35, -1.25], [1e-9, 3e8]], dtype=np.float32),
        np.array([np.nan, np.inf, -np.inf], dtype=np.float32),
        np.array([[True, False]]),
        np.arange(6).reshape(2, 3),
        np.array([1.5, 0.1], dtype=np.float16),
        np.zeros((0, 2), dtype=np.bool_),
        np.array(0.1, dtype=np.float32),
    ],
)
def test_tensors_are_shown_as_tensors(value: np.ndarray) -> None:
    (again,) = eval(written([value], track="torch"), {"torch": torch})
    assert repr(again) == repr(torch.from_numpy(value))


def test_a_torch_exercise_mentions_only_tensors() -> None:
    tried = exercise("scaled-dot-product-module")
    assert tried.grader is not None
    for wrong in (tried.stub, tried.grader.mistakes[0].text(tried.solution)):
        text = str(grade(tried, wrong, seed=1, run=in_process))
        assert "torch.tensor([" in text
        assert "np." not in text


def test_a_call_is_shown_as_python_source() -> None:
    made = Call("Layer", (np.zeros(2),), {"mask": None}, instance=Instance((4,), {"n_heads": 2}))
    assert written_call(made, "numpy") == "Layer(4, n_heads=2)(np.array([0.0, 0.0]), mask=None)"
    assert written_call(made, "torch") == "Layer(4, n_heads=2)(torch.tensor([0.0, 0.0]), mask=None)"


def test_large_arrays_are_shown_by_their_shape() -> None:
    assert written(np.zeros((20, 30))) == "<array (20, 30), float64>"


@pytest.mark.parametrize(
    ("left", "right", "shown"),
    [
        (0.5, 0.25, ("0.5", "0.25")),
        (0.12341, 0.12342, ("0.12341", "0.12342")),
        (1.0, 1.0 + 1e-15, ("1.0", "1.000000000000001")),
        (float("nan"), 1.0, ("nan", "1.0")),
    ],
)
def test_enough_digits_are_shown(left: float, right: float, shown: tuple[str, str]) -> None:
    assert pair(left, right) == shown
