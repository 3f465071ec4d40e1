"""`check("softmax", softmax)` in a notebook: builds a program from the function and all it uses, and grades it."""

import ast
import builtins
import dis
import functools
import linecache
import operator
import sys
import textwrap
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, GenericAlias, ModuleType, NoneType, UnionType
from typing import Any

import numpy as np

from regard.course.exercise import Exercise
from regard.course.grading.grader import grade
from regard.course.grading.serialisation import name_of, type_name
from regard.course.grading.verdict import Verdict
from regard.course.own_exercises.loading import find_exercise
from regard.course.passed_answers import record
from regard.errors import ArgumentError
from regard.messages import Listed, say

MOST = 10_000
"""Largest number of elements in a constant."""
LONGEST = 100_000
"""Largest length of one string, in characters."""

_KINDS = "biufcU"
"""NumPy dtype kinds that can be written as constants: booleans, numbers and strings."""


def as_constant(value: Any) -> str | None:
    """A Python expression that evaluates to the value, given `import numpy`; None if there is none.

    >>> as_constant([1, -float("inf"), "a"]), as_constant(np.float32(0.5)), as_constant(object())
    ("[1, float('-inf'), 'a']", "numpy.dtype('float32').type(0.5)", None)
    """
    try:
        return _expression(value, iter(range(MOST)), 0)
    except _NotConstantError:
        return None


class _NotConstantError(Exception):
    pass


_BRACKETS: tuple[tuple[type, str, str], ...] = (
    (list, "[", "]"),
    (tuple, "(", ",)"),
    (set, "{*(", ",)}"),
    (frozenset, "frozenset((", ",))"),
)


def _expression(value: Any, left: Iterator[int], depth: int) -> str:
    kind = type(value)
    if next(left, None) is None or depth > 50:
        raise _NotConstantError
    if value is None or value is Ellipsis or kind is bool:
        return repr(value)
    if kind is int and value.bit_length() <= 10_000:  # Python parses no integer of more than 4,300 digits
        return repr(value)
    if (kind is str or kind is bytes) and len(value) <= LONGEST:
        return repr(value)
    if kind is float:
        return _float(value)
    if kind is complex:
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    for known, opening, closing in _BRACKETS:
        if kind is known:
            parts = [_expression(part, left, depth + 1) for part in value]
            return f"{opening}{', '.join(parts)}{closing if parts else closing.removeprefix(',')}"
    if kind is dict:
        pairs = [(_expression(key, left, depth + 1), _expression(part, left, depth + 1)) for key, part in value.items()]
        return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
    if kind is GenericAlias or kind is UnionType:
        return _alias(value, left, depth)
    is_scalar = issubclass(kind, np.generic) and is_native(kind)
    from_numpy = kind is np.ndarray or is_scalar or issubclass(kind, np.dtype)
    return _of_numpy(value, left, depth) if from_numpy else _of_torch(value, left, depth)


def _alias(value: GenericAlias | UnionType, left: Iterator[int], depth: int) -> str:
    """The type behind a name such as `Weights = dict[str, np.ndarray]` or `Number = int | float`."""
    args = [_type(arg, left, depth) for arg in value.__args__]
    if isinstance(value, UnionType):
        return f"({' | '.join(args)})"
    return f"{_type(value.__origin__, left, depth)}[{', '.join(args) or '()'}]"


def _type(value: Any, left: Iterator[int], depth: int) -> str:
    """A part of a type: a class of a library, or a constant such as None and `...`."""
    if value is NoneType:
        return "None"
    if not issubclass(type(value), type):
        return _expression(value, left, depth + 1)
    home = _import_source(value, None)
    if home is None:
        raise _NotConstantError
    return _display_name(value) if home == "builtins" else f"__import__({home!r}, fromlist=['']).{_display_name(value)}"


def is_native(kind: type) -> bool:
    """Whether a type is implemented in C, so that inspecting its values runs no code of the notebook.

    >>> is_native(np.float64), is_native(type("Mine", (np.float64,), {}))
    (True, False)
    """
    return not type.__dict__["__flags__"].__get__(kind) & 1 << 9  # Py_TPFLAGS_HEAPTYPE, set by every class statement


def _float(value: float) -> str:
    """A float as an expression; infinities and NaN have no literal."""
    return repr(value) if value - value == 0 else f"float({repr(value)!r})"


def _of_numpy(value: Any, left: Iterator[int], depth: int) -> str:
    kind: Any = type(value)
    if issubclass(kind, np.dtype):
        return f"numpy.dtype({_dtype(value)!r})"
    if kind is not np.ndarray and not issubclass(kind, np.generic):
        raise _NotConstantError
    dtype = _dtype(value.dtype)
    if kind is not np.ndarray:
        return f"numpy.dtype({dtype!r}).type({_expression(value.item(), left, depth + 1)})"
    if value.size > MOST:
        raise _NotConstantError
    numbers = _expression(value.ravel().tolist(), left, depth + 1)
    return f"numpy.array({numbers}, dtype={dtype!r}).reshape({value.shape!r})"


def _dtype(dtype: Any) -> str:
    """The name of a dtype; not supported: objects, dates, structured dtypes, numbers wider than Python's."""
    native = dtype.newbyteorder("=")
    widest = {"c": 16, "U": 4 * LONGEST}.get(native.kind, 8)
    if native.kind not in _KINDS or native.itemsize > widest:
        raise _NotConstantError
    return native.str if native.kind == "U" else native.name


def _of_torch(value: Any, left: Iterator[int], depth: int) -> str:
    """A dtype, or a dense CPU tensor that does not require gradients."""
    torch = sys.modules.get("torch")
    if torch is not None and type(value) is torch.dtype:
        return f"__import__('torch').{str(value).removeprefix('torch.')}"
    if torch is None or type(value) is not torch.Tensor or value.requires_grad or value.layout != torch.strided:
        raise _NotConstantError
    if value.device.type != "cpu" or value.is_quantized or value.numel() > MOST:
        raise _NotConstantError
    numbers, dtype = _expression(value.flatten().tolist(), left, depth + 1), _of_torch(value.dtype, left, depth)
    return f"__import__('torch').tensor({numbers}, dtype={dtype}).reshape({tuple(value.shape)!r})"


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def check(id: str, *answers: Any, seed: int | None = None) -> Verdict:
    """Grade functions or classes as `regard learn check` grades a file: print the verdict and return it.

    A function may have another name than in the task. An answer sheet is given as its text. Progress is kept as by the
    command; what cannot be written is printed, not raised.
    """
    if not issubclass(type(id), str):
        raise ArgumentError("check-id", type=type_name(id))
    task, seed = find_exercise(id), _seed(seed)
    if not answers:
        raise ArgumentError("check-nothing", id=task.id, names=Listed(required_names(task)) or "text")
    if task.sheet is not None:
        if not issubclass(type(answers[0]), str):
            raise ArgumentError("check-sheet", id=task.id)
        text = answers[0]
    else:
        text = program(task, *answers)
    verdict = grade(task, text, seed=seed)
    print(verdict)
    if verdict.mistake == "missing-name" and len(answers) < len(names := required_names(task)):
        print(say("check-nothing", id=task.id, names=Listed(names)))
    record(task, verdict, text, report=print)
    return verdict


def _seed(seed: Any) -> int | None:
    """A seed as on the command line: an integer, 0 or more."""
    if seed is None:
        return None
    is_whole = issubclass(type(seed), int | np.integer) and type(seed) is not bool
    if not is_whole or operator.index(seed) < 0:
        found = str(operator.index(seed)) if is_whole else type_name(seed)
        raise ArgumentError("count-wanted", name="seed", least=0, value=found)
    return operator.index(seed)


def program(task: Exercise, *answers: Any) -> str:
    """A program that defines the given answers and everything they use, under the names of the task."""
    parts: dict[str, str] = {}
    names = [_add_definition(answer, parts) for answer in answers]
    free = [target for target in required_names(task) if target not in names]
    if len(names) < len(free):  # an exercise's own name takes precedence
        free.sort(key=lambda target: target != task.id.replace("-", "_"))
    others = [name for name in names if name not in required_names(task)]
    aliases = [f"{target} = {name}" for target, name in zip(free, others, strict=False)]
    return "\n\n".join([*parts.values(), *aliases]) + "\n"


def required_names(task: Exercise) -> list[str]:
    """The names that the task requires, in the order of its tests."""
    calls = task.grader.cases(np.random.default_rng(0)) if task.grader else ()
    return list(dict.fromkeys(call.target for call in calls))


# --- dependencies of a definition ---------------------------------------------------------------------------


def _add_definition(answer: Any, parts: dict[str, str]) -> str:
    """Add the source of a function or class after its dependencies; return its name."""
    found = _definition(answer)
    if found is None and not callable(answer):
        raise ArgumentError("check-not-a-function", what=_display_name(answer))
    if found is None:
        raise ArgumentError("check-no-source", what=_display_name(answer))
    name, text = found
    if name in parts:
        return name
    parts[name] = ""  # in progress: functions may be recursive, also mutually
    names_around = _visible_names(answer)
    for used in dict.fromkeys(_used(compile(text, "<source>", "exec"))):
        if used in names_around and used not in parts:
            _add(used, names_around[used], names_around, parts)
    del parts[name]
    parts[name] = text
    return name


def _display_name(value: Any) -> str:
    """The name of a value for a message: its own if it has a reliable one, otherwise the name of its type."""
    if issubclass(type(value), type):
        return str(type.__dict__["__qualname__"].__get__(value))
    named = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) if is_native(type(value)) else None
    return named if type(named) is str else type_name(value)


def _add(name: str, value: Any, names_around: Mapping[str, Any], parts: dict[str, str]) -> None:
    """Add the code that defines one name used by a definition."""
    if value is _EMPTY:
        raise ArgumentError("check-no-value", name=name)
    if issubclass(type(value), ModuleType):
        parts[name] = f"import {_of_module(value, '__name__')} as {name}"
    elif home := _import_source(value, names_around.get("__name__")):
        parts[name] = f"from {home} import {_display_name(value).rpartition('.')[2]} as {name}"
    elif _definition(value) is not None:
        own = _add_definition(value, parts)
        if own != name:
            parts[name] = f"{name} = {own}"
    elif (text := as_constant(value)) is not None:
        parts[name] = f"import numpy\n{name} = {text}" if "numpy." in text else f"{name} = {text}"
    else:
        raise ArgumentError("check-value", name=name, type=type_name(value))


def _of_module(module: ModuleType, name: str) -> Any:
    """An attribute from a module's own dict: a module's `__getattr__` may invent names."""
    names: dict[str, Any] = ModuleType.__getattribute__(module, "__dict__")
    return names.get(name)


def _import_source(value: Any, own: Any) -> str | None:
    """The module from which a function or class can be imported; None for the notebook itself."""
    name = _display_name(value).rpartition(".")[2]
    if issubclass(type(value), type):
        named = type.__dict__["__module__"].__get__(value)
    elif is_native(type(value)) and type(getattr(value, "__name__", None)) is str:
        named = getattr(value, "__module__", None)
    else:
        return None
    for candidate in (named, *_LIBRARIES):  # PyTorch's built-in functions have no __module__
        home = sys.modules.get(candidate) if type(candidate) is str else None
        if home is not None and candidate not in (own, "__main__") and _of_module(home, name) is value:
            return candidate
    return None


_LIBRARIES = ("numpy", "torch", "torch.nn.functional")


def _used(code: CodeType) -> Iterator[str]:
    """Global names that the code uses."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not hasattr(builtins, step.argval):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _used(constant)


_EMPTY = object()
"""The value of a closure variable that is not assigned yet."""


def _visible_names(answer: Any) -> dict[str, Any]:
    """The names that a definition can use: globals of the notebook, and variables of the enclosing function."""
    function = next(_functions(answer))
    names_around = {name: value for name, value in function.__globals__.items() if type(name) is str}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            try:
                names_around[name] = cell.cell_contents
            except ValueError:
                names_around[name] = _EMPTY
    return names_around


# --- the source of a definition -----------------------------------------------------------------------------


def _functions(answer: Any) -> Iterator[FunctionType]:
    """The function itself, or the functions of a class: their code objects name their file."""
    is_class = issubclass(type(answer), type)
    found = tuple(type.__dict__["__dict__"].__get__(answer).values()) if is_class else (_unwrapped(answer),)
    for value in found:
        is_bound = type(value) is staticmethod or type(value) is classmethod
        value = _unwrapped(value.__func__ if is_bound else value)
        if type(value) is FunctionType and linecache.getlines(value.__code__.co_filename):
            yield value


def _unwrapped(value: Any) -> Any:
    """The function inside functools.wraps or a cache. Other objects are returned unchanged."""
    for _ in range(100):
        is_function = type(value) is FunctionType or type(value) is functools._lru_cache_wrapper
        if not is_function or "__wrapped__" not in vars(value):
            break
        value = vars(value)["__wrapped__"]
    return value


def _definition(answer: Any) -> tuple[str, str] | None:
    """The name and source text of a definition in its file or cell; None if there is none.

    inspect.getsource does not find classes in notebooks.
    """
    for function in _functions(answer):
        code = function.__code__
        lines = linecache.getlines(code.co_filename)
        try:
            node = _node(ast.parse("".join(lines)), answer if issubclass(type(answer), type) else None, code)
            if node is None:
                continue
            text = textwrap.dedent("".join(lines[_start(node) - 1 : node.end_lineno]))
            compile(text, "<source>", "exec")
        except (SyntaxError, ValueError):  # the file has changed since, or is not Python
            continue
        return node.name if isinstance(node, _Definition) else ast.unparse(node.targets[0]), text
    return None


def _node(tree: ast.Module, kind: type | None, code: CodeType) -> _Definition | ast.Assign | None:
    """The statement that defines the class or the function with this code; for a lambda, its assignment."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) if kind is not None and name == name_of(kind):
                if _start(node) <= code.co_firstlineno <= (node.end_lineno or 0):
                    return node
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if kind is None and name == code.co_name:
                if _start(node) == code.co_firstlineno:
                    return node
            case ast.Assign(value=ast.Lambda(lineno=line)) if kind is None and code.co_name == "<lambda>":
                if line == code.co_firstlineno:
                    return node
    return None


def _start(node: _Definition | ast.Assign) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
