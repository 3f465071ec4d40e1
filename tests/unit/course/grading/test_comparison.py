"""Comparison of expected and actual results: equality, and the first difference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course.exercise import CallResult, Tolerance
from regard.course.grading.comparison import answer_difference, compare, difference, equal
from regard.course.grading.serialisation import Other

EXACT = Tolerance()
MATRIX = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (MATRIX, MATRIX * (1 + 1e-7)),
        (MATRIX, MATRIX.astype(np.float32)),
        ((MATRIX, 1), [MATRIX, 1]),
        (1.5, np.float64(1.5)),
        (1.5, np.array(1.5)),
        (np.array(1.5), 1.5),
        (2.0, 2),
        (True, np.bool_(True)),
        (3, np.int32(3)),
        (np.array([1, 2]), np.array([1, 2], dtype=np.uint8)),
        (np.array([-np.inf, 0.0]), np.array([-np.inf, 0.0])),
        (np.array([np.nan]), np.array([np.nan])),
        ({"a": 1.0}, {"a": 1.0}),
        (None, None),
        ("eos", "eos"),
        (np.zeros((0, 2)), np.zeros((0, 2))),
    ],
)
def test_results_that_are_equal(expected: object, got: object) -> None:
    assert difference(expected, got, EXACT) is None


@pytest.mark.parametrize(
    ("expected", "got", "fault"),
    [
        (MATRIX, MATRIX.tolist(), "wrong-type"),
        (MATRIX, None, "wrong-type"),
        (MATRIX, 0.1, "wrong-type"),
        (MATRIX, (MATRIX, MATRIX), "wrong-type"),
        (MATRIX, Other("generator"), "wrong-type"),
        (MATRIX, MATRIX + 0j, "wrong-dtype"),
        ((MATRIX, 1), MATRIX, "wrong-type"),
        ((MATRIX, 1), (MATRIX, 1, 2), "wrong-count"),
        ({"a": 1}, {"b": 1}, "wrong-count"),
        ("eos", 3, "wrong-type"),
        ("eos", "bos", "wrong-value"),
        (MATRIX, MATRIX.T, "wrong-shape"),
        (MATRIX, MATRIX[None], "wrong-shape"),
        (np.array([True, False]), np.array([1, 0]), "wrong-dtype"),
        (np.array([1.0, 0.0]), np.array([1, 0]), "wrong-dtype"),
        (np.array([1, 0]), np.array([1.0, 0.0]), "wrong-dtype"),
        (True, 1, "wrong-dtype"),
        (3, 3.0, "wrong-dtype"),
        (MATRIX, MATRIX * np.nan, "not-finite"),
        (np.array([-np.inf]), np.array([np.inf]), "wrong-value"),
        (np.array([-np.inf]), np.array([-1e9]), "wrong-value"),
        (np.array([0.0, -np.inf]), np.array([-np.inf, 0.0]), "wrong-value"),  # a mask: -inf is no accident there
        (np.array([0.0, -np.inf]), np.array([np.nan, -np.inf]), "not-finite"),
        (np.array([np.nan]), np.array([0.0]), "wrong-value"),
        (MATRIX, MATRIX + 1e-5, "wrong-value"),
        (MATRIX, MATRIX.astype(np.float16), "wrong-value"),
    ],
)
def test_answers_that_do_not_agree(expected: object, got: object, fault: str) -> None:
    found = difference(expected, got, EXACT)
    assert found is not None
    assert found.fault == fault


def test_the_first_difference_is_named() -> None:
    got = MATRIX.copy()
    got[1, 1:] = 9
    found = difference((1, MATRIX), (1, got), EXACT)
    assert found is not None
    assert (found.path, found.index, found.numbers, found.wrong) == ((1,), (1, 1), (0.5, 9.0), 2)


def test_nan_is_reported_before_other_wrong_numbers() -> None:
    found = difference(MATRIX, np.array([[9, 0.2, 0.3], [0.4, np.nan, 0.6]]), EXACT)
    assert found is not None
    assert (found.fault, found.index) == ("not-finite", (1, 1))


numbers = st.floats(-1e3, 1e3).map(lambda value: round(value, 6))


@given(st.lists(numbers, min_size=1, max_size=5), st.integers(0, 4), st.floats(1e-4, 10))
def test_every_wrong_number_is_detected(values: list[float], place: int, off: float) -> None:
    right = np.array(values)
    got = right.copy()
    got[place % len(values)] += off * (1 + abs(got[place % len(values)]))
    found = difference(right, got, EXACT)
    assert found is not None
    assert found.index == (place % len(values),)
    assert equal(right, right.copy(), EXACT)


# --- answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("got", [MATRIX, (MATRIX, None), (MATRIX, MATRIX), [MATRIX, MATRIX]])
def test_weights_are_optional(got: object) -> None:
    assert answer_difference(CallResult((MATRIX, MATRIX)), CallResult(got), EXACT, weights_optional=True) is None


@pytest.mark.parametrize("got", [(MATRIX, MATRIX + 1), (MATRIX, MATRIX[0]), MATRIX + 1, (MATRIX,), None])
def test_returned_weights_must_be_right(got: object) -> None:
    assert answer_difference(CallResult((MATRIX, MATRIX)), CallResult(got), EXACT, weights_optional=True) is not None
    assert answer_difference(CallResult((MATRIX, MATRIX)), CallResult(MATRIX), EXACT) is not None


def test_gradients_count_and_none_is_zero() -> None:
    right = CallResult(1.0, gradients={"args.0": np.ones(2), "args.1": None, "W": np.zeros(2)})
    same = CallResult(1.0, gradients={"args.0": np.ones(2), "args.1": np.zeros(3), "W": None})
    cut = CallResult(1.0, gradients={"args.0": None, "args.1": None, "W": None})
    assert answer_difference(right, same, EXACT) is None
    found = answer_difference(right, cut, EXACT)
    assert found is not None
    assert found.path == ("gradient", "args.0")
    assert answer_difference(right, CallResult(1.0), EXACT) is not None


def test_an_error_is_right_only_where_one_is_expected() -> None:
    bad = CallResult(raised="ValueError")
    assert compare("f", bad, CallResult(raised="AssertionError"), EXACT).right
    assert not compare("f", bad, CallResult(raised="TypeError"), EXACT).right
    assert not compare("f", bad, CallResult(1.0), EXACT).right
    assert not compare("f", CallResult(1.0), bad, EXACT).right
    assert not compare("f", CallResult(None), CallResult(fault="missing-name"), EXACT).right


def test_changed_arguments_fail_unless_the_solution_changes_them_too() -> None:
    got = CallResult(1.0, mutated=("args.0",))
    assert compare("f", CallResult(1.0), got, EXACT).same
    assert not compare("f", CallResult(1.0), got, EXACT).right
    assert compare("f", CallResult(1.0, mutated=("args.0",)), got, EXACT).right
