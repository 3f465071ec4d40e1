"""explain: correct numbers, the same in text, in code and in both languages."""

import json
import re
import unicodedata
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import Call, calls
from tolerances import assert_close, assert_same_bits

from regard import Mask, explain
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError, TooLargeError, UnknownNameError
from regard.hand_calculation import Steps
from regard.hand_calculation.steps import grid, spell
from regard.reference import scaled_dot_product_attention

HAND = ([[1, 0]], [[1, 0], [0, 1], [1, 0]], [[10, 0], [0, 20], [30, 0]])
MASK = [[True, False, True], [False, False, False]]


def run(code: str) -> dict[str, Any]:
    """The variables that the pasted code defines; it must not use regard."""
    assert "regard" not in code
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()) as printed, np.errstate():
        exec(compile(code, "pasted", "exec"), names)
    assert printed.getvalue().startswith("weights\n")
    return names


def numbers(text: str) -> list[str]:
    return re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?|-?inf|nan", text)


# --- the correct numbers of seeds.md ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "k", "v", "weights", "output"),
    [
        (*HAND, [0.40111, 0.19778, 0.40111], [16.0445, 3.9555]),
        ([[1]], [[1], [2], [0.5]], [[10], [20], [5]], [0.23122, 0.62853, 0.14024], [15.5841]),
        ([[1, 0]], [[1, 0], [0, 1]], [[5, 0], [0, 10]], [0.66976, 0.33024], [3.3488, 3.3024]),
    ],
    ids=["by hand", "exercise 1", "exercise 2"],
)
def test_correct_numbers(q: Any, k: Any, v: Any, weights: list[float], output: list[float]) -> None:
    steps = explain(q, k, v)
    assert steps.weights[0].round(5).tolist() == weights
    assert steps.output[0].round(4).tolist() == output
    assert_same_bits(run(steps.code())["output"], steps.output)


def test_every_step_of_the_tutorial() -> None:
    steps = explain(*HAND)
    assert [step.key for step in steps] == [
        "queries", "keys", "values", "scores", "scaled", "shifted", "powers", "sums", "weights", "output",
    ]  # fmt: skip
    assert steps["scores"].values.tolist() == [[1, 0, 1]]
    assert steps["scaled"].values.round(3).tolist() == [[0.707, 0, 0.707]]
    assert steps["scores"].details("en")[0] == "q0·k0 = 1·1 + 0·0 = 1"
    assert steps["output"].shape == (1, 2)
    assert steps[-1] is steps["output"]
    assert [step.key for step in steps[:2]] == ["queries", "keys"]


def test_score_of_zero_is_explained() -> None:
    found = "\n".join(explain(*HAND)["weights"].details("en"))
    assert "A score of 0 is not a weight of 0" in found
    assert "q0 and k1" in found
    assert "0.1978" in found
    # Without a score of 0 there is no such sentence: 2·1 and 2·2 are not 0.
    assert "score of 0" not in explain([[2.0]], [[1.0], [2.0]], [[1.0], [1.0]]).text("en")


def test_weight_that_underflows_is_not_called_masked() -> None:
    found = explain([[1.0]], [[0.0], [-2000.0]], [[1.0], [1.0]])["weights"].details("en")
    assert "stored as 0" in found[-1]


# --- masks --------------------------------------------------------------------------------------------------


def test_fully_masked_query() -> None:
    q, k, v = np.ones((2, 2)), np.ones((3, 2)), np.ones((3, 1))
    steps = explain(q, k, v, MASK)
    assert steps.output.tolist() == [[1.0], [0.0]]
    assert steps["masked"].values[1].tolist() == [-np.inf] * 3
    assert "no key is visible to this query: its output is zero" in steps.text("en")
    assert "这个查询没有可见的键：输出为零" in steps.text("zh")
    assert_same_bits(run(steps.code())["weights"], steps.weights)


def test_scores_that_overflow_are_not_called_masked() -> None:
    steps = explain([[1e200]], [[-1e200]], [[5.0]])
    assert steps.output.tolist() == [[0.0]]
    assert "no key is visible" not in steps.text("en")
    assert_same_bits(run(steps.code())["output"], steps.output)


@pytest.mark.parametrize(
    "mask",
    [
        Mask.of(np.array(MASK)),
        np.array(MASK),
        torch.tensor(MASK),
        MASK,
    ],
    ids=["Mask", "numpy", "torch", "list"],
)
def test_mask_of_any_type(mask: Any) -> None:
    expected = explain(np.ones((2, 2)), np.ones((3, 2)), np.ones((3, 1)), np.array(MASK))
    assert_same_bits(explain(np.ones((2, 2)), np.ones((3, 2)), np.ones((3, 1)), mask).weights, expected.weights)


def test_causal_mask_is_aligned_with_the_last_key() -> None:
    steps = explain(np.ones((2, 1)), np.ones((3, 1)), np.ones((3, 1)), Mask.causal())
    assert steps["masked"].details("en") == (
        "q0 attends to k0, k1; masked: k2",
        "every key is visible to q1",
    )


def test_only_visible_nan_reaches_the_output() -> None:
    k, v = np.array([[1.0], [np.nan], [2.0]]), np.array([[1.0], [np.inf], [2.0]])
    steps = explain([[1.0], [1.0]], k, v, [[True, False, True], [True, True, True]])
    assert np.isfinite(steps.output[0]).all()
    assert np.isnan(steps.output[1]).all()
    assert "q1, or a key visible to it, contains nan or inf" in steps.text("en")
    assert_same_bits(run(steps.code())["output"], steps.output)


# --- agreement with the definition --------------------------------------------------------------------------


@given(calls(axes=(2,), dtypes=("float64",), biased=False, softcapped=False))
def test_equals_the_reference(call: Call) -> None:
    steps = explain(call.q, call.k, call.v, call.mask, scale=call.scale)
    output, weights = scaled_dot_product_attention(call.q, call.k, call.v, mask=call.mask, scale=call.scale)
    assert_close(steps.output, output)
    assert_close(steps.weights, weights, "weights")


@given(calls(axes=(2,), dtypes=("float64",), biased=False, softcapped=False), st.integers(0, 99))
def test_equals_the_reference_for_nan_and_inf(call: Call, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bad = (np.nan, np.inf, -np.inf)
    q, k, v = (np.where(rng.random(x.shape) < 0.1, rng.choice(bad, x.shape), x) for x in (call.q, call.k, call.v))
    steps = explain(q, k, v, call.mask, scale=call.scale)
    output, weights = scaled_dot_product_attention(q, k, v, mask=call.mask, scale=call.scale)
    assert_close(steps.output, output)
    assert_close(steps.weights, weights, "weights")
    assert_same_bits(run(steps.code())["output"], steps.output)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64"])
def test_torch_tensors_and_integers(dtype: str) -> None:
    q, k, v = (torch.tensor(x).to(getattr(torch, dtype)) for x in HAND)
    assert_same_bits(explain(q, k, v).output, explain(*HAND).output)


def test_scale() -> None:
    steps = explain(*HAND, scale=0.25)
    assert steps["scaled"].values.tolist() == [[0.25, 0, 0.25]]
    assert "0.25" in steps["scaled"].sentence("en")
    assert "√" not in steps.text("en")
    assert_same_bits(run(steps.code())["output"], steps.output)


# --- the code -----------------------------------------------------------------------------------------------

SIZES = st.integers(1, 5)
ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)
FINITE = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1e-300, 5e-324, 1e9, -1e9]) | st.floats(-100, 100)


@st.composite
def explained(draw: st.DrawFn, elements: st.SearchStrategy[float]) -> Steps:
    T, S, E, Ev = (draw(SIZES) for _ in range(4))
    q, k, v = (draw(hnp.arrays(np.float64, shape, elements=elements)) for shape in ((T, E), (S, E), (S, Ev)))
    mask = draw(st.none() | st.just(Mask.causal()) | hnp.arrays(bool, (T, S)))
    return explain(q, k, v, mask, scale=draw(st.none() | st.sampled_from([0.5, -1.0, 0.1])))


@given(explained(FINITE))
def test_pasted_code_gives_the_same_bits(steps: Steps) -> None:
    names = run(steps.code())
    for step in steps:
        expected = names[step.symbol]
        assert step.values.tobytes() == expected.tobytes(), step.symbol


@given(explained(ANY))
def test_pasted_code_gives_the_same_for_any_numbers(steps: Steps) -> None:
    names = run(steps.code("zh"))
    assert_same_bits(names["weights"], steps.weights)
    assert_same_bits(names["output"], steps.output)


@pytest.mark.parametrize(("T", "S"), [(0, 2), (2, 0), (0, 0)])
@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["", "causal"])
def test_no_queries_or_no_keys(T: int, S: int, mask: Mask | None) -> None:
    steps = explain(np.ones((T, 3)), np.ones((S, 3)), np.ones((S, 2)), mask)
    assert steps.output.shape == (T, 2)
    assert not steps.output.any()
    assert_same_bits(run(steps.code())["output"], steps.output)
    assert numbers(steps.text("en")) == numbers(steps.text("zh"))


def test_code_of_a_large_calculation_stays_exact() -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((40, 16)), rng.standard_normal((30, 16)), rng.standard_normal((30, 3))
    steps = explain(q, k, v)
    assert_same_bits(run(steps.code())["output"], steps.output)
    text = steps.text("en")
    assert len(text) < 10_000
    assert "and 1194 more" in text
    assert spell(steps.output[39, 2]) in text  # the far corner is shown


# --- text ---------------------------------------------------------------------------------------------------


@given(explained(FINITE))
def test_both_languages_mention_the_same_numbers(steps: Steps) -> None:
    english, chinese = steps.text("en"), steps.text("zh")
    assert numbers(english) == numbers(chinese)
    assert not re.search("[\u4e00-\u9fff]", english)
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert not re.search(r"q\d+:", chinese)  # one kind of colon


def test_grids_are_aligned_in_chinese() -> None:
    steps = explain(np.eye(2) * -0.3, np.eye(3, 2) * 1e5, np.eye(3), MASK)
    for step in steps:
        block = step.text("zh").split("\n\n")[1].split("\n")
        widths = {sum(2 if unicodedata.east_asian_width(c) in "WFA" else 1 for c in line) for line in block}
        assert len(widths) == 1, block


def test_large_grids_show_their_corners() -> None:
    lines = grid(np.arange(400.0).reshape(20, 20), "q", "k")
    assert lines[0].split() == ["k0", "k1", "k2", "...", "k17", "k18", "k19"]
    assert lines[-1].split() == ["q19", "380", "381", "382", "...", "397", "398", "399"]
    assert len(lines) == 8


@pytest.mark.parametrize(
    ("x", "written"),
    [(0.99999, "1.0000"), (1.0, "1"), (0.25, "0.25"), (1e-9, "1.000e-09"), (-0.0, "0"), (2e7, "2.000e+07")],
)
def test_rounded_numbers_differ_from_exact_ones(x: float, written: str) -> None:
    assert spell(x) == written


def test_json() -> None:
    steps = explain(np.ones((2, 2)), np.ones((3, 2)), np.ones((3, 1)), MASK)
    found = json.loads(json.dumps(steps.to_dict("zh"), allow_nan=False))
    assert found["sizes"] == {"T": 2, "S": 3, "E": 2, "Ev": 1}
    assert found["output"] == steps.output.tolist()
    masked = next(step for step in found["steps"] if step["key"] == "masked")
    assert [float(x) for x in masked["values"][1]] == [-np.inf] * 3
    assert masked["shape"] == [2, 3]


def test_str_is_the_text() -> None:
    steps = explain(*HAND)
    assert str(steps) == steps.text()
    assert repr(steps).startswith("<Steps T=1, S=3, E=2, Ev=2: queries, keys")


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.ones((1, 8, 5, 4)),) * 3, ShapeError, "q[0, 0], k[0, 0], v[0, 0]"),
        ((np.ones((2, 5, 4)),) * 3, ShapeError, "pick one head: q[0]"),
        ((np.ones(4),) * 3, ShapeError, "[[1, 0]]"),
        (([[1, 2], [3]], [[1, 2]], [[1]]), ShapeError, "rows of q have different lengths"),
        ((np.ones((1, 2)), np.ones((1, 3)), np.ones((1, 1))), ShapeError, "same width"),
        ((np.ones((1, 2)), np.ones((2, 2)), np.ones((1, 1))), ShapeError, "each key needs its value"),
        (([[1j]], [[1]], [[1]]), DtypeError, "q must hold real numbers"),
        (([["a"]], [[1]], [[1]]), DtypeError, "q must hold real numbers"),
        (([[1]], [[1]], [[1]], [[1]]), DtypeError, "Mask.from_keep"),
        (([[1]], [[1]], [[1]], np.ones((2, 2), bool)), ShapeError, "does not fit the scores"),
    ],
)
def test_errors_name_the_fix(arguments: Any, error: type[RegardError], message: str) -> None:
    with pytest.raises(error) as caught:
        explain(*arguments)
    assert message in caught.value.text("en")


def test_scale_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ArgumentError, match="scale"):
        explain(*HAND, scale=float("nan"))


def test_unknown_step_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="there are: queries, keys"):
        explain(*HAND)["masked"]


def test_too_large_input_is_refused() -> None:
    row = np.broadcast_to(np.ones(1), (10**7, 1))
    with pytest.raises(TooLargeError, match="explain a few rows"):
        explain(row, row, row)
