"""`check("softmax", softmax)` in a notebook: the source of the given function, sent to the same grader."""

import ast
import builtins
import dis
import functools
import linecache
import operator
import sys
import textwrap
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from regard.course.catalogue import exercise
from regard.course.exercise import Exercise
from regard.course.grading.grader import grade
from regard.course.grading.serialisation import name_of, type_name
from regard.course.grading.verdict import Verdict
from regard.errors import ArgumentError
from regard.messages import Listed

MOST = 10_000
"""Numbers and texts that a constant may hold."""
LONGEST = 100_000
"""Characters of one text or number."""

_KINDS = "biufcU"
"""Arrays of truth values, numbers and texts."""


def as_constant(value: Any) -> str | None:
    """An expression that gives the value back, `numpy` imported; None where there is none.

    >>> as_constant([1, -float("inf"), "a"]), as_constant(np.float32(0.5)), as_constant(object())
    ("[1, float('-inf'), 'a']", "numpy.dtype('float32').type(0.5)", None)
    """
    try:
        return _written(value, iter(range(MOST)), 0)
    except _UnfitError:
        return None


class _UnfitError(Exception):
    pass


_BRACKETS: tuple[tuple[type, str, str], ...] = (
    (list, "[", "]"),
    (tuple, "(", ",)"),
    (set, "{*(", ",)}"),
    (frozenset, "frozenset((", ",))"),
)


def _written(value: Any, left: Iterator[int], depth: int) -> str:
    kind = type(value)
    if next(left, None) is None or depth > 50:
        raise _UnfitError
    if value is None or value is Ellipsis or kind is bool:
        return repr(value)
    if kind is int and value.bit_length() <= 10_000:  # Python reads no number of more than 4,300 digits
        return repr(value)
    if (kind is str or kind is bytes) and len(value) <= LONGEST:
        return repr(value)
    if kind is float:
        return _float(value)
    if kind is complex:
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    for known, opening, closing in _BRACKETS:
        if kind is known:
            parts = [_written(part, left, depth + 1) for part in value]
            return f"{opening}{', '.join(parts)}{closing if parts else closing.removeprefix(',')}"
    if kind is dict:
        pairs = [(_written(key, left, depth + 1), _written(part, left, depth + 1)) for key, part in value.items()]
        return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
    is_scalar = issubclass(kind, np.generic) and is_native(kind)
    from_numpy = kind is np.ndarray or is_scalar or issubclass(kind, np.dtype)
    return _of_numpy(value, left, depth) if from_numpy else _of_torch(value, left, depth)


def is_native(kind: type) -> bool:
    """Whether a type is written in C, so that asking its values runs nothing of a notebook's.

    >>> is_native(np.float64), is_native(type("Mine", (np.float64,), {}))
    (True, False)
    """
    return not type.__dict__["__flags__"].__get__(kind) & 1 << 9  # what every class statement sets


def _float(value: float) -> str:
    """Infinities and NaN have no literal of their own."""
    return repr(value) if value - value == 0 else f"float({repr(value)!r})"


def _of_numpy(value: Any, left: Iterator[int], depth: int) -> str:
    kind: Any = type(value)
    if issubclass(kind, np.dtype):
        return f"numpy.dtype({_dtype(value)!r})"
    if kind is not np.ndarray and not issubclass(kind, np.generic):
        raise _UnfitError
    dtype = _dtype(value.dtype)
    if kind is not np.ndarray:
        return f"numpy.dtype({dtype!r}).type({_written(value.item(), left, depth + 1)})"
    if value.size > MOST:
        raise _UnfitError
    numbers = _written(value.ravel().tolist(), left, depth + 1)
    return f"numpy.array({numbers}, dtype={dtype!r}).reshape({value.shape!r})"


def _dtype(dtype: Any) -> str:
    """A dtype by name; neither objects, dates, fields, nor numbers wider than Python's."""
    native = dtype.newbyteorder("=")
    widest = {"c": 16, "U": 4 * LONGEST}.get(native.kind, 8)
    if native.kind not in _KINDS or native.itemsize > widest:
        raise _UnfitError
    return native.str if native.kind == "U" else native.name


def _of_torch(value: Any, left: Iterator[int], depth: int) -> str:
    """A dtype, or a tensor of numbers on the CPU that nothing is to be learnt of."""
    torch = sys.modules.get("torch")
    if torch is not None and type(value) is torch.dtype:
        return f"__import__('torch').{str(value).removeprefix('torch.')}"
    if torch is None or type(value) is not torch.Tensor or value.requires_grad or value.layout != torch.strided:
        raise _UnfitError
    if value.device.type != "cpu" or value.is_quantized or value.numel() > MOST:
        raise _UnfitError
    numbers, dtype = _written(value.flatten().tolist(), left, depth + 1), _of_torch(value.dtype, left, depth)
    return f"__import__('torch').tensor({numbers}, dtype={dtype}).reshape({tuple(value.shape)!r})"


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def check(id: str, *answers: Any, seed: int | None = None) -> Verdict:
    """Judge functions or classes as `regard learn check` judges a file: prints the verdict and returns it.

    A function under another name than the task's is taken for the one that is asked. A sheet is given as its text.
    """
    if not issubclass(type(id), str):
        raise ArgumentError("check-id", type=type_name(id))
    asked, seed = exercise(id), _seed(seed)
    if not answers:
        raise ArgumentError("check-nothing", id=asked.id, names=Listed(_targets(asked)) or "text")
    if asked.sheet is not None:
        if not issubclass(type(answers[0]), str):
            raise ArgumentError("check-sheet", id=asked.id)
        text = answers[0]
    else:
        text = program(asked, *answers)
    verdict = grade(asked, text, seed=seed)
    print(verdict)
    return verdict


def _seed(seed: Any) -> int | None:
    """A seed as the command line takes it: a whole number, 0 or more."""
    if seed is None:
        return None
    is_whole = issubclass(type(seed), int | np.integer) and type(seed) is not bool
    if not is_whole or operator.index(seed) < 0:
        found = str(operator.index(seed)) if is_whole else type_name(seed)
        raise ArgumentError("count-wanted", name="seed", least=0, value=found)
    return operator.index(seed)


def program(asked: Exercise, *answers: Any) -> str:
    """One text that defines all that is given, with what it uses, under the names of the task."""
    parts: dict[str, str] = {}
    names = [_gathered(answer, parts) for answer in answers]
    free = [target for target in _targets(asked) if target not in names]
    if len(names) < len(free):  # the one that bears the exercise's name was meant
        free.sort(key=lambda target: target != asked.id.replace("-", "_"))
    others = [name for name in names if name not in _targets(asked)]
    aliases = [f"{target} = {name}" for target, name in zip(free, others, strict=False)]
    return "\n\n".join([*parts.values(), *aliases]) + "\n"


def _targets(asked: Exercise) -> list[str]:
    """The names that a task asks for, in the order in which they are tried."""
    calls = asked.grader.cases(np.random.default_rng(0)) if asked.grader else ()
    return list(dict.fromkeys(call.target for call in calls))


# --- what a definition needs --------------------------------------------------------------------------------


def _gathered(answer: Any, parts: dict[str, str]) -> str:
    """Add the source of a function or class after what it uses; its name."""
    found = _definition(answer)
    if found is None:
        raise ArgumentError("check-no-source", what=_called(answer))
    name, text = found
    if name in parts:
        return name
    parts[name] = ""  # on its way: a function may call itself, or one that calls it
    around = _surroundings(answer)
    for used in dict.fromkeys(_used(compile(text, "<source>", "exec"))):
        if used in around and used not in parts:
            _add(used, around[used], around, parts)
    del parts[name]
    parts[name] = text
    return name


def _called(value: Any) -> str:
    """A name for a value in a sentence: its own, where it has one for sure, else that of its type."""
    if issubclass(type(value), type):
        return str(type.__dict__["__qualname__"].__get__(value))
    named = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) if is_native(type(value)) else None
    return named if type(named) is str else type_name(value)


def _add(name: str, value: Any, around: Mapping[str, Any], parts: dict[str, str]) -> None:
    """What stands for one name that a definition uses."""
    if value is _EMPTY:
        raise ArgumentError("check-no-value", name=name)
    if issubclass(type(value), ModuleType):
        parts[name] = f"import {_of_module(value, '__name__')} as {name}"
    elif home := _home(value, around.get("__name__")):
        parts[name] = f"from {home} import {_called(value).rpartition('.')[2]} as {name}"
    elif _definition(value) is not None:
        own = _gathered(value, parts)
        if own != name:
            parts[name] = f"{name} = {own}"
    elif (text := as_constant(value)) is not None:
        parts[name] = f"import numpy\n{name} = {text}" if "numpy." in text else f"{name} = {text}"
    else:
        raise ArgumentError("check-value", name=name, type=type_name(value))


def _of_module(module: ModuleType, name: str) -> Any:
    """A name of a module, as it stands there: a module may answer for names that it does not have."""
    names: dict[str, Any] = ModuleType.__getattribute__(module, "__dict__")
    return names.get(name)


def _home(value: Any, own: Any) -> str | None:
    """The module that a function or class can be imported from, where that is not the notebook itself."""
    name = _called(value).rpartition(".")[2]
    if issubclass(type(value), type):
        named = type.__dict__["__module__"].__get__(value)
    elif is_native(type(value)) and type(getattr(value, "__name__", None)) is str:
        named = getattr(value, "__module__", None)
    else:
        return None
    for candidate in (named, *_LIBRARIES):  # PyTorch's own functions do not say where they are from
        home = sys.modules.get(candidate) if type(candidate) is str else None
        if home is not None and candidate not in (own, "__main__") and _of_module(home, name) is value:
            return candidate
    return None


_LIBRARIES = ("numpy", "torch", "torch.nn.functional")


def _used(code: CodeType) -> Iterator[str]:
    """Names that a program looks up outside of its functions."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not hasattr(builtins, step.argval):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _used(constant)


_EMPTY = object()
"""Stands for a name of a function around, which has no value yet."""


def _surroundings(answer: Any) -> dict[str, Any]:
    """The names around a definition: its notebook's, and those of a function that it was made in."""
    function = next(_functions(answer))
    around = {name: value for name, value in function.__globals__.items() if type(name) is str}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            try:
                around[name] = cell.cell_contents
            except ValueError:
                around[name] = _EMPTY
    return around


# --- where a definition stands ------------------------------------------------------------------------------


def _functions(answer: Any) -> Iterator[FunctionType]:
    """The function itself, or those of a class: they know the file they came from."""
    is_class = issubclass(type(answer), type)
    found = tuple(type.__dict__["__dict__"].__get__(answer).values()) if is_class else (_unwrapped(answer),)
    for value in found:
        is_bound = type(value) is staticmethod or type(value) is classmethod
        value = _unwrapped(value.__func__ if is_bound else value)
        if type(value) is FunctionType and linecache.getlines(value.__code__.co_filename):
            yield value


def _unwrapped(value: Any) -> Any:
    """What functools.wraps or a cache was put around; of other objects nothing is asked."""
    for _ in range(100):
        is_function = type(value) is FunctionType or type(value) is functools._lru_cache_wrapper
        if not is_function or "__wrapped__" not in vars(value):
            break
        value = vars(value)["__wrapped__"]
    return value


def _definition(answer: Any) -> tuple[str, str] | None:
    """The name and text of a definition, as it stands in its file or cell; None where there is none.

    Not by inspect.getsource, which finds no classes in notebooks.
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
        except (SyntaxError, ValueError):  # the file has changed since, or was none of Python's
            continue
        return node.name if isinstance(node, _Definition) else ast.unparse(node.targets[0]), text
    return None


def _node(tree: ast.Module, kind: type | None, code: CodeType) -> _Definition | ast.Assign | None:
    """The statement that defines the class, or the function of that code; for a lambda, its assignment."""
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
