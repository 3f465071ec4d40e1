"""The door for notebooks: `check("softmax", softmax)` sends the source of what is given to the same grader.

A function or class is taken with what it uses: imports, helpers and constants of its notebook. What has no source
cannot be sent, and says so. Nothing is run here.
"""

import ast
import builtins
import dis
import inspect
import linecache
import textwrap
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from regard.course.catalogue import exercise
from regard.course.exercise import Exercise
from regard.course.grading.judging import grade
from regard.course.grading.verdict import Verdict
from regard.errors import ArgumentError
from regard.words import Listed

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def check(id: str, *answers: Any, seed: int | None = None) -> Verdict:
    """Judge functions or classes as `regard learn check` judges a file: prints the verdict and returns it.

    A function under another name than the task's is taken for the one that is asked. A sheet is given as its text.
    """
    asked = exercise(id)
    if not answers:
        raise ArgumentError("check-nothing", id=asked.id, names=Listed(_targets(asked)) or "text")
    if asked.sheet is not None:
        if not isinstance(answers[0], str):
            raise ArgumentError("check-sheet", id=asked.id)
        text = answers[0]
    else:
        text = program(asked, *answers)
    verdict = grade(asked, text, seed=seed)
    print(verdict)
    return verdict


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
        raise ArgumentError("check-no-source", what=getattr(answer, "__qualname__", type(answer).__name__))
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


def _add(name: str, value: Any, around: Mapping[str, Any], parts: dict[str, str]) -> None:
    """What stands for one name that a definition uses."""
    if isinstance(value, ModuleType):
        parts[name] = f"import {value.__name__} as {name}"
    elif (home := inspect.getmodule(value)) and home.__name__ != around.get("__name__") and _at_home(home, value):
        parts[name] = f"from {home.__name__} import {value.__name__} as {name}"
    elif _definition(value) is not None:
        own = _gathered(value, parts)
        if own != name:
            parts[name] = f"{name} = {own}"
    elif _plain(value):
        parts[name] = f"{name} = {value!r}"
    elif isinstance(value, np.ndarray) and value.size <= 1000 and _plain(value.tolist()):
        parts[name] = f"import numpy\n{name} = numpy.array({value.tolist()!r}, dtype={value.dtype.name!r})"
    else:
        raise ArgumentError("check-value", name=name, type=type(value).__name__)


def _at_home(home: ModuleType, value: Any) -> bool:
    return getattr(home, getattr(value, "__name__", ""), None) is value


def _plain(value: Any) -> bool:
    """Whether its repr is a literal that gives it back."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _used(code: CodeType) -> Iterator[str]:
    """Names that a program looks up outside of its functions."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not hasattr(builtins, step.argval):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _used(constant)


def _surroundings(answer: Any) -> dict[str, Any]:
    """The names around a definition: its notebook's, and those of a function that it was made in."""
    function = next(_functions(answer))
    around = function.__globals__
    if function.__closure__ is None:
        return around
    cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
    return {**around, **{name: cell.cell_contents for name, cell in cells if name != "__class__"}}


# --- where a definition stands ------------------------------------------------------------------------------


def _functions(answer: Any) -> Iterator[FunctionType]:
    """The function itself, or those of a class: they know the file they came from."""
    answer = inspect.unwrap(answer) if callable(answer) else answer
    found = vars(answer).values() if isinstance(answer, type) else (answer,)
    for value in found:
        value = getattr(value, "__func__", value)
        if isinstance(value, FunctionType) and linecache.getlines(value.__code__.co_filename):
            yield value


def _definition(answer: Any) -> tuple[str, str] | None:
    """The name and text of a definition, as it stands in its file or cell; None where there is none.

    Not by inspect.getsource, which finds no classes in notebooks.
    """
    for function in _functions(answer):
        code = function.__code__
        lines = linecache.getlines(code.co_filename)
        node = _node(ast.parse("".join(lines)), answer if isinstance(answer, type) else None, code)
        if node is not None:
            name = node.name if isinstance(node, _Definition) else ast.unparse(node.targets[0])
            return name, textwrap.dedent("".join(lines[_start(node) - 1 : node.end_lineno]))
    return None


def _node(tree: ast.Module, kind: type | None, code: CodeType) -> _Definition | ast.Assign | None:
    """The statement that defines the class, or the function of that code; for a lambda, its assignment."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) if kind is not None and name == kind.__name__:
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
