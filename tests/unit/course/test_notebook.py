"""The door for notebooks: the source of what is given, with what it uses, to the same grader."""

import linecache
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from regard.course import check
from regard.course.catalogue import exercise
from regard.course.exercise import Exercise
from regard.course.grading.judging import grade
from regard.course.grading.sandbox import in_process
from regard.course.notebook import program
from regard.errors import ArgumentError, UnknownNameError

Cell = Callable[[str], None]


@pytest.fixture
def space() -> dict[str, Any]:
    """The names of a notebook."""
    return {"__name__": "__main__"}


@pytest.fixture
def cell(space: dict[str, Any]) -> Cell:
    """Runs a cell as a notebook does: compiled under a name of its own, whose lines Python can find."""
    count = 0

    def run(text: str) -> None:
        nonlocal count
        count += 1
        name = f"<cell {id(space)}-{count}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), space)

    return run


RIGHT = """
def shift(x, by=1.0):
    refuse(x)
    return centred(x) + by * ONE
"""


def test_a_function_is_sent_with_what_it_uses(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("import numpy as np\nfrom numpy import mean as average\nONE = 1.0\nUNUSED = object()\nTABLE = np.array([1.0])")
    cell(
        "def refuse(x):\n    assert x.ndim == 2\n\ndef centred(x):\n    return x - average(x, axis=-1)[:, None] * TABLE"
    )
    cell(RIGHT)
    text = program(shift, space["shift"])
    assert "UNUSED" not in text
    assert grade(shift, text, run=in_process).passed


def test_another_name_is_taken_for_the_one_that_is_asked(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("def mine(x, by=1.0):\n    if x.ndim < 2:\n        raise ValueError\n    return mine_too(x) + by")
    cell("mine_too = lambda x: x - x.mean(-1, keepdims=True)")
    assert grade(shift, program(shift, space["mine"]), run=in_process).passed


def test_functions_that_call_each_other_and_themselves(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)")
    cell("def shift(x, by=1.0):\n    assert x.ndim == 2 and even(4)\n    return x - x.mean(-1, keepdims=True) + by")
    assert grade(shift, program(shift, space["shift"]), run=in_process).passed


NESTED = """
import functools

def kept(f):
    @functools.wraps(f)
    def g(*args, **kwargs):
        return f(*args, **kwargs)
    return g

def centred(x):
    return x - x.mean(-1, keepdims=True)

def make(ndim):
    @kept
    def shift(x, by=1.0):
        assert x.ndim == ndim
        return centred(x) + by
    return shift

made = make(2)
"""


def test_decorated_and_nested_functions(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell(NESTED)
    assert grade(shift, program(shift, space["made"]), run=in_process).passed


def test_in_a_notebook_of_its_own(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    """There its names are those of __main__, from which the sandbox could not import them."""
    home = ModuleType("a_notebook")
    space["__name__"] = home.__name__
    home.__dict__.update(space)
    cell(NESTED)
    home.__dict__.update(space)
    sys.modules["a_notebook"] = home
    try:
        text = program(shift, space["made"])
    finally:
        del sys.modules["a_notebook"]
    assert "a_notebook" not in text
    assert grade(shift, text, run=in_process).passed


def test_a_class_is_found_in_a_notebook(cell: Cell, space: dict[str, Any]) -> None:
    """inspect.getsource does not find one there: it looks for the file of __main__."""
    tried = exercise("scaled-dot-product-module")
    cell(tried.solution)
    text = program(tried, space["ScaledDotProductAttention"])
    assert "import math as math" in text
    assert "from torch import" in text or "import torch" in text
    assert grade(tried, text, run=in_process).passed


def test_two_functions(cell: Cell, space: dict[str, Any]) -> None:
    tried = exercise("self-attention")
    cell(tried.solution)
    both = space["compute_qkv"], space["self_attention"]
    assert grade(tried, program(tried, *both), run=in_process).passed
    alone = grade(tried, program(tried, both[1]), run=in_process)
    assert alone.slip == "missing-name"


def test_the_one_that_bears_the_name_of_the_exercise_is_meant(cell: Cell, space: dict[str, Any]) -> None:
    tried = exercise("self-attention")
    cell(tried.solution.replace("def self_attention", "def attention"))
    assert program(tried, space["attention"]).rstrip().endswith("self_attention = attention")


def test_a_slip_in_a_notebook_is_the_same_slip(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell(shift.solution.replace("axis=-1", "axis=0"))
    assert grade(shift, program(shift, space["shift"]), run=in_process).slip == "over-rows"


@pytest.mark.parametrize("what", [len, np.exp, 3, "text", np.zeros(2)])
def test_what_has_no_source_says_so(shift: Exercise, what: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        program(shift, what)
    assert caught.value.key == "check-no-source"


def test_a_function_made_by_exec_has_no_source(shift: Exercise) -> None:
    space: dict[str, Any] = {}
    exec("def shift(x): return x", space)
    with pytest.raises(ArgumentError, match="shift has no source"):
        program(shift, space["shift"])


def test_a_value_that_cannot_travel_is_named(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("class Box:\n    def get(self): return 1\nbox = Box()\ndef shift(x, by=1.0): return x + box.get()")
    with pytest.raises(ArgumentError, match=r"uses box of the notebook \(Box\)"):
        program(shift, space["shift"])


# --- the whole way ----------------------------------------------------------------------------------------


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def test_check_prints_the_verdict_and_returns_it(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = check("softmax", softmax, seed=3)
    assert verdict.passed
    assert capsys.readouterr().out == f"{verdict}\n"


def test_a_sheet_is_given_as_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("by-hand", "seed = 1").slip == "not-written"
    with pytest.raises(ArgumentError, match="give its text"):
        check("by-hand", softmax)


def test_nothing_given() -> None:
    with pytest.raises(ArgumentError, match=r'check\("self-attention", compute_qkv, self_attention\)'):
        check("self-attention")
    with pytest.raises(UnknownNameError):
        check("nonsense", softmax)
