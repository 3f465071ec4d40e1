"""`check` in notebooks: the source of an answer with its dependencies goes to the same grader."""

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from regard.course import check
from regard.course.catalogue import exercise
from regard.course.exercise import Exercise
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.course.notebook import program
from regard.course.progress import ProgressFile
from regard.errors import ArgumentError, UnknownNameError

Cell = Callable[[str], None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that passes is kept there."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))


@pytest.fixture
def space() -> dict[str, Any]:
    """The names of a notebook."""
    return {"__name__": "__main__"}


@pytest.fixture
def cell(space: dict[str, Any]) -> Cell:
    """Run a cell like a notebook: compiled under its own file name, with its lines in linecache."""
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


def test_a_function_is_sent_with_its_dependencies(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("import numpy as np\nfrom numpy import mean as average\nONE = 1.0\nUNUSED = object()\nTABLE = np.array([1.0])")
    cell(
        "def refuse(x):\n    assert x.ndim == 2\n\ndef centred(x):\n    return x - average(x, axis=-1)[:, None] * TABLE"
    )
    cell(RIGHT)
    text = program(shift, space["shift"])
    assert "UNUSED" not in text
    assert grade(shift, text, run=in_process).passed


def test_names_of_types_are_sent_too(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("from typing import Any\nimport numpy as np\nWeights = dict[str, np.ndarray]\nSizes = tuple[int, ...] | None")
    cell(
        "Tree = dict[str, list[Any]]\nBoth = dict[str, Weights]\nNone_ = tuple[()]\nclass Mine: pass\nOwn = list[Mine]"
    )
    body = "\n    if x.ndim < 2:\n        raise ValueError\n    return x - x.mean(-1, keepdims=True) + by"
    cell(f"def shift(x: Weights, by: Sizes | Tree | Both | None_ = 1.0):{body}")
    assert grade(shift, program(shift, space["shift"]), run=in_process).passed
    cell(f"def shift(x: Own, by=1.0):{body}")
    with pytest.raises(ArgumentError, match="variable Own"):
        program(shift, space["shift"])


def test_a_function_with_another_name_is_accepted(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
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
    """Names of the notebook's __main__ cannot be imported in the sandbox."""
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
    assert alone.mistake == "missing-name"


def test_the_function_named_like_the_exercise_is_used(cell: Cell, space: dict[str, Any]) -> None:
    tried = exercise("self-attention")
    cell(tried.solution.replace("def self_attention", "def attention"))
    assert program(tried, space["attention"]).rstrip().endswith("self_attention = attention")


def test_a_mistake_in_a_notebook_gets_the_same_diagnosis(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell(shift.solution.replace("axis=-1", "axis=0"))
    assert grade(shift, program(shift, space["shift"]), run=in_process).mistake == "over-rows"


@pytest.mark.parametrize("what", [len, np.exp])
def test_a_function_without_source_is_reported(shift: Exercise, what: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        program(shift, what)
    assert caught.value.key == "check-no-source"


def test_a_function_made_by_exec_has_no_source(shift: Exercise) -> None:
    space: dict[str, Any] = {}
    exec("def shift(x): return x", space)
    with pytest.raises(ArgumentError, match="source of shift is not available"):
        program(shift, space["shift"])


def test_a_value_that_cannot_be_sent_is_named(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("class Box:\n    def get(self): return 1\nbox = Box()\ndef shift(x, by=1.0): return x + box.get()")
    with pytest.raises(ArgumentError, match=r"uses the notebook variable box \(Box\)"):
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
    assert check("by-hand", "seed = 1").mistake == "not-written"
    with pytest.raises(ArgumentError, match="pass its text"):
        check("by-hand", softmax)


@pytest.mark.parametrize("what", [3, "text", np.zeros(2)])
def test_the_result_of_a_call_is_no_answer(shift: Exercise, what: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        program(shift, what)
    assert caught.value.key == "check-not-a-function"
    assert type(what).__name__ in str(caught.value)


def test_one_function_of_two_gets_the_call_with_both(
    cell: Cell, space: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    cell("def self_attention(Q, K, V):\n    return V\n")
    assert check("self-attention", space["self_attention"], seed=0).mistake == "missing-name"
    assert 'check("self-attention", compute_qkv, self_attention)' in capsys.readouterr().out


def test_check_without_an_answer() -> None:
    with pytest.raises(ArgumentError, match=r'check\("self-attention", compute_qkv, self_attention\)'):
        check("self-attention")
    with pytest.raises(UnknownNameError):
        check("nonsense", softmax)


# --- constants, and what asks nothing of them -----------------------------------------------------------------

CONSTANTS = {
    "float('-inf')": "float('-inf')",
    "nan": "float('nan')",
    "np.float64": "np.float64(0.25)",
    "np.float32 inf": "np.float32('inf')",
    "np.int8": "np.int8(-3)",
    "np.bool_": "np.bool_(True)",
    "array with inf": "np.array([[0.0, -np.inf], [np.nan, 1.5]], dtype=np.float32)",
    "no axis": "np.array(-np.inf)",
    "empty": "np.zeros((0, 3))",
    "transposed": "np.arange(6).reshape(2, 3).T",
    "other byte order": "np.array([1, 2], dtype='>i4')",
    "texts": "np.array(['a', 'bcd'])",
    "complex": "complex(float('inf'), -0.0)",
    "complex array": "np.array([1j, np.inf])",
    "inside": "{'mask': (-np.inf, [float('inf'), None]), 2: {1.5, 'a'}, (1,): frozenset({b'x'})}",
    "empty ones": "[(), [], {}, set(), frozenset(), '', ...]",
    "a dtype": "np.dtype('float32')",
    "a kind": "np.float32",
    "minus zero": "-0.0",
    "large": "2**4000",
    "a tensor": "torch.tensor([[0.0, -torch.inf]], dtype=torch.float64)",
    "a dtype of torch": "torch.float16",
    "a function of torch": "torch.softmax",
    "a function of C": "math.sqrt",
    "a ufunc": "np.exp",
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_arrive_unchanged(shift: Exercise, cell: Cell, space: dict[str, Any], name: str) -> None:
    cell(f"import math\nimport numpy as np\nimport torch\nCONSTANT = {CONSTANTS[name]}\ndef shift(): return CONSTANT")
    text = program(shift, space["shift"])
    there: dict[str, Any] = {}
    exec(text, there)
    got, value = there["shift"](), space["CONSTANT"]
    assert type(got) is type(value)
    assert repr(got) == repr(value) or name == "other byte order"
    if isinstance(value, np.ndarray):
        assert (got.shape, got.dtype) == (value.shape, value.dtype.newbyteorder("="))
        assert got.tolist() == value.tolist() or np.isnan(value).any()


WATCHED = """
ran = []

class Meta(type):
    def __getattribute__(cls, name): ran.append(name); return super().__getattribute__(name)
    def __eq__(cls, other): ran.append("meta eq"); return True
    def __hash__(cls): ran.append("meta hash"); return 1
    def __instancecheck__(cls, other): ran.append("instance"); return True

def watched(name):
    def method(self, *args):
        ran.append(name)
        raise RuntimeError
    return method

NAMES = ["__repr__", "__str__", "__eq__", "__ne__", "__hash__", "__len__", "__iter__", "__bool__", "__getattr__",
         "__getattribute__", "__call__", "__reduce_ex__", "__array__", "__index__", "__float__", "__format__"]
METHODS = {name: watched(name) for name in NAMES}
FEWER = {name: method for name, method in METHODS.items() if name != "__getattribute__"}
"""
HOSTILE = {
    "an object": "Meta('Odd', (), METHODS)()",
    "a float": "Meta('Odd', (float,), METHODS)(1)",
    "an int": "Meta('Odd', (int,), METHODS)(1)",
    "a str": "Meta('Odd', (str,), METHODS)('a')",
    "a list": "Meta('Odd', (list,), METHODS)()",
    "a dict": "Meta('Odd', (dict,), METHODS)()",
    "an array": "np.zeros(2).view(type('Odd', (np.ndarray,), METHODS))",
    "a scalar of NumPy": "type('Odd', (np.float64,), METHODS)(1)",
    "a module": "type('Odd', (types.ModuleType,), FEWER)('odd')",
    "inside a list": "[1, Meta('Odd', (), METHODS)()]",
    "inside a dict": "{1: Meta('Odd', (), METHODS)()}",
    "inside an array": "np.frompyfunc(lambda _: type('Odd', (), METHODS)(), 1, 1)(np.zeros(2))",
    "a class": "Meta('Odd', (), METHODS)",
    "one that lies about its class": "type('Odd', (), {**METHODS, '__class__': property(watched('class'))})()",
    "one that lies about its module": "type('Odd', (np.float64,), {**METHODS, '__module__': 'numpy'})(1)",
    "a circle": "circle",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_code_of_a_value_is_run(shift: Exercise, cell: Cell, space: dict[str, Any], name: str) -> None:
    cell("import types\nimport numpy as np\ncircle = []\ncircle.append(circle)")
    cell(WATCHED)
    cell(f"value = {HOSTILE[name]}\ndef shift(x): return value")
    space["ran"].clear()
    if name == "a module":  # it is imported by name in the sandbox, where it does not exist
        program(shift, space["shift"])
    else:
        with pytest.raises(ArgumentError):
            program(shift, space["shift"])
    assert space["ran"] == []


def test_no_code_of_an_answer_is_run(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("import numpy as np")
    cell(WATCHED)
    cell("odd = Meta('Odd', (), METHODS)()")
    space["ran"].clear()
    odd: tuple[Any, ...] = (space["odd"], [space["odd"]])
    for what in odd:
        with pytest.raises(ArgumentError):
            program(shift, what)
        with pytest.raises(ArgumentError):
            check("by-hand", what)
        with pytest.raises(ArgumentError):
            check(what, softmax)
        with pytest.raises(ArgumentError):
            check("softmax", softmax, seed=what)
    assert space["ran"] == []


def test_a_large_constant_is_refused(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("LARGE = list(range(100_000))\ndef shift(x): return LARGE")
    with pytest.raises(ArgumentError, match="LARGE"):
        program(shift, space["shift"])


@pytest.mark.parametrize("seed", [-1, 1.5, "3", True, np.float64(2), np.int64(-4), [1]])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="seed must be a whole number of at least 0"):
        check("softmax", softmax, seed=seed)


def test_a_seed_of_numpy_is_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("softmax", softmax, seed=np.int64(3)).seed == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [3, None, softmax, ["softmax"], b"softmax", 1.5])
def test_an_id_is_text(given: Any) -> None:
    with pytest.raises(ArgumentError, match=r'check\("softmax", softmax\)'):
        check(given, softmax)


def test_a_name_without_a_value_is_named(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    """An empty closure cell."""
    cell(
        "def make():\n    def shift(x): return x + later\n    given = shift\n    if False:\n        later = 1\n"
        "    return given"
    )
    cell("made = make()")
    with pytest.raises(ArgumentError, match="later, which has no value yet"):
        program(shift, space["made"])


@pytest.mark.parametrize("text", ["", " \n", "\n\n"])
def test_an_empty_cell_is_reported(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "empty" in str(check("by-hand", text))
    with pytest.raises(ArgumentError, match="is a value"):
        check("softmax", text)


def test_a_file_that_is_no_longer_python(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("def shift(x): return x")
    name = space["shift"].__code__.co_filename
    linecache.cache[name] = (3, None, ["%magic (\n"], name)
    with pytest.raises(ArgumentError, match="is not available"):
        program(shift, space["shift"])


def test_imported_methods_are_not_the_source_of_a_class(shift: Exercise, cell: Cell, space: dict[str, Any]) -> None:
    cell("import functools\n@functools.lru_cache\ndef shift(x, by=1.0): return helper(x) + by")
    cell("@functools.cache\ndef helper(x): return x")
    assert "def helper" in program(shift, space["shift"])


# --- progress ----------------------------------------------------------------------------------------------


def test_progress_is_kept_as_by_the_command(cell: Cell, space: dict[str, Any]) -> None:
    cell("def create_causal_mask(n):\n    return None")
    assert not check("causal-mask", space["create_causal_mask"]).passed
    work = ProgressFile().read().work("causal-mask")
    assert (work.attempts, work.passed_at) == (1, None)
    cell(exercise("causal-mask").solution)
    assert check("causal-mask", space["create_causal_mask"]).passed
    work = ProgressFile().read().work("causal-mask")
    assert work.attempts == 2
    assert work.passed_at is not None


def test_a_sheet_that_passes_is_kept(tmp_path: Path) -> None:
    sheet = exercise("order-the-flow").sheet
    assert sheet is not None
    answers = [f"{field.name} = {list(field.expected)!r}" for field in sheet.fields(3)]
    assert check("order-the-flow", "\n".join(["seed = 3", *answers])).passed
    assert ProgressFile().read().passed("order-the-flow")
    assert b"seed = 3" in (tmp_path / "home" / "passed" / "order-the-flow.toml").read_bytes()


def test_a_failed_write_is_printed_and_the_verdict_returned(
    cell: Cell, space: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    cell(exercise("causal-mask").solution)
    assert check("causal-mask", space["create_causal_mask"]).passed
    assert capsys.readouterr().out.count("progress is not saved") == 1
