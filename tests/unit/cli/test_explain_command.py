"""regard explain."""

import json
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest
from command_line import Run

from regard import explain

SMALL = ("--q", "1 0", "--k", "1 0; 0 1", "--v", "5 0; 0 10")


def test_the_default_is_the_tutorial(run: Run) -> None:
    code, out, err = run("explain")
    assert (code, err) == (0, "")
    assert "0.4011·[10, 0] + 0.1978·[0, 20] + 0.4011·[30, 0] = [16.0445, 3.9555]" in out
    assert out == explain([[1, 0]], [[1, 0], [0, 1], [1, 0]], [[10, 0], [0, 20], [30, 0]]).text("en") + "\n"


def test_matrices_and_full_width_characters(run: Run) -> None:
    result = run("explain", *SMALL).out
    assert "[3.3488, 3.3024]" in result
    assert run("explain", "--q", "１，０", "--k", "1 0；0，1", "--v", "5 0；0 10").out == result
    assert run("explain", "--q", "-1 0", "--k=1 0", "--v", "2").code == 0


def test_code_runs(run: Run) -> None:
    names: dict[str, Any] = {}
    code = run("explain", *SMALL, "--code").out
    with redirect_stdout(StringIO()):
        exec(code, names)
    assert names["output"].round(4).tolist() == [[3.3488, 3.3024]]


def test_json(run: Run) -> None:
    code, out, err = run("explain", "--json", "--causal", "--q", "1; 1", "--k", "1; 1", "--v", "2; 4")
    result = json.loads(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert result["allowed"] == [[True, False], [True, True]]
    assert result["output"] == [[2.0], [3.0]]
    assert [step["key"] for step in result["steps"]][5] == "masked"
    assert "code" not in result
    assert "import numpy" in json.loads(run("explain", "--json", "--code").out)["code"]


def test_masks(run: Run) -> None:
    rows = ("--q", "1; 1", "--k", "1; 1", "--v", "2; 4", "--json")
    assert json.loads(run("explain", *rows, "--mask", "0 0; 1 1").out)["output"] == [[0.0], [3.0]]
    both = json.loads(run("explain", *rows, "--mask", "0 1; 1 1", "--causal").out)
    assert both["allowed"] == [[False, False], [True, True]]


def test_stdin(run: Run) -> None:
    others = ("--k", "1 0; 0 1", "--v", "5 0; 0 10")
    assert run("explain", "--q", "-", *others, stdin=b"1 0\n").out == run("explain", *SMALL).out
    assert run("explain", "--q", "-", *others, stdin="１ 0\r\n0 1\n\n".encode()).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--q", "1 0"], "found --q, missing --k, --v"),
        (["--q", "1 0; 1", "--k", "1 0", "--v", "1"], "--q: row 2 has 1 numbers, but row 1 has 2"),
        (["--q", "1 0", "--k", "1 0; 1 x", "--v", "1"], "--k, row 2: 'x' is not a number"),
        (["--q", " ; ", "--k", "1", "--v", "1"], "--q holds no numbers"),
        (["--q", "", "--k", "1", "--v", "1"], "--q holds no numbers"),
        (["--q", "-", "--k", "-", "--v", "1"], "stdin can be read only once, but --q, --k all request it"),
        (["--mask", "1 2 0"], "--mask, row 1: a mask holds 1 (visible) and 0 (masked); found 2"),
        (["--mask", "1 0"], "does not fit the scores"),
        (["--q", "1 0", "--k", "1", "--v", "1"], "same width"),
    ],
)
def test_bad_matrices_are_refused(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run("explain", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("regard: ")
    assert message in err


def test_stdin_that_is_not_utf_8_is_refused(run: Run) -> None:
    code, out, err = run("explain", "--q", "-", "--k", "1", "--v", "1", stdin=b"1 \xff")
    assert (code, out) == (3, "")
    assert "byte 0xff at position 2" in err
