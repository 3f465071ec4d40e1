"""Every error carries its values, has text in both languages, can be pickled, and is also a built-in exception."""

import ast
import copy
import pickle
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from regard import errors
from regard.errors import RegardError
from regard.messages import catalogue, use_language

SOURCE = Path(__file__).parents[2] / "src"
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RegardError)]
SHAPES = {"q": (2, 3), "k": (2, 4), "v": (2, 4)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_error_survives_pickle_and_copy(kind: type[RegardError]) -> None:
    """A worker process sends errors to its parent."""
    error = kind("axes-differ", **SHAPES)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is kind
        assert (other.key, other.values) == (error.key, error.values)
        assert str(other) == str(error)
        assert other.exit_code == error.exit_code


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_error_has_text_in_both_languages(kind: type[RegardError]) -> None:
    error = kind("axes-differ", **SHAPES)
    assert error.text("en") != error.text("zh")
    for lang in ("en", "zh"):
        assert all(str(shape) in error.text(lang) for shape in SHAPES.values())
        with use_language(lang):
            assert str(error) == error.text(lang)


def test_language_is_chosen_when_the_text_is_read() -> None:
    error = errors.ShapeError("axes-differ", **SHAPES)
    with use_language("zh"):
        assert str(error) == error.text("zh")
    assert str(error) == error.text("en")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ShapeError, ValueError),
        (errors.IndivisibleError, ValueError),
        (errors.IndivisibleError, AssertionError),
        (errors.DtypeError, TypeError),
        (errors.ArgumentError, ValueError),
        (errors.UnknownNameError, LookupError),
        (errors.BackendError, RuntimeError),
        (errors.NotKeptError, LookupError),
        (errors.FileError, ValueError),
        (errors.MissingPackageError, ImportError),
        (errors.TooLargeError, MemoryError),
    ],
)
def test_error_is_also_a_built_in_exception(kind: type[RegardError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        raise kind("mask-truth")
    with pytest.raises(RegardError):
        raise kind("mask-truth")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_exit_codes_are_from_1_to_5(kind: type[RegardError]) -> None:
    assert kind.exit_code in (1, 2, 3, 4, 5)


def test_value_with_braces_is_not_a_placeholder() -> None:
    assert "{x}" in errors.ArgumentError("scale-value", value="{x}").text("en")


# --- every raise in the source ---------------------------------------------------------------------------

NAMES: dict[str, set[str]] = {kind.__name__: set() for kind in KINDS} | {"BadLineError": {"path", "line"}}
"""Classes that take a key, and the values that are added later: a BadLineError becomes a FileError."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Call(NamedTuple):
    """A call in the source, the function around it, and the file."""

    path: Path
    node: ast.Call
    within: Function | None

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.node.lineno}"

    @property
    def values(self) -> set[str] | None:
        """The names of the values of an error; None where they are passed with **."""
        names = {keyword.arg for keyword in self.node.keywords}
        return None if None in names else {str(name) for name in names}


def calls_in(path: Path, node: ast.AST, within: Function | None = None) -> Iterator[tuple[str, Call]]:
    """Every call in a file, with the called name, or the last part of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            called = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
            yield called, Call(path, child, within)
        yield from calls_in(path, child, child if isinstance(child, Function) else within)


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def calls() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for path, tree in trees().items():
        for called, call in calls_in(path, tree):
            found.setdefault(called, []).append(call)
    return found


def keys(written: ast.expr | None, call: Call) -> Iterator[tuple[Call, str | None]]:
    """The keys that the expression `written` in `call` may have: a pattern for an f-string, None where it is unknown.

    A name has the values assigned in its function or file; an argument has the values that the callers pass.
    """
    match written:
        case ast.Constant(value=str(key)):
            yield call, re.escape(key)
        case ast.JoinedStr(values=parts):
            yield call, "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[a-z0-9-]+" for p in parts)
        case ast.IfExp(body=body, orelse=orelse):
            yield from keys(body, call)
            yield from keys(orelse, call)
        case ast.Call(func=ast.Attribute(value=ast.Dict(values=values), attr="get"), args=[_, *default]):
            for value in (*values, *default):
                yield from keys(value, call)
        case ast.Attribute(attr="key"):  # the key of another error, checked where that error is created
            pass
        case ast.Name(id=name):
            scopes = [scope for scope in (call.within, trees()[call.path]) if scope is not None]
            if written_there := next(filter(None, (_assigned(scope, name) for scope in scopes)), []):
                for value in written_there:
                    yield from keys(value, call)
            else:
                yield from _given(name, call)
        case _:
            yield call, None


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    return [
        node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets)
    ]


def _given(name: str, call: Call) -> Iterator[tuple[Call, str | None]]:
    """The values that the callers of the function around `call` pass for its argument `name`."""
    taken = None if call.within is None else call.within.args
    places = [] if taken is None else [each.arg for each in (*taken.posonlyargs, *taken.args)]
    if taken is None or call.within is None or name not in (*places, *(each.arg for each in taken.kwonlyargs)):
        yield call, None
        return
    place = places.index(name) - (places[:1] == ["self"]) if name in places else -1
    for other in calls().get(call.within.name, []):
        if not _reaches(other, call.path, call.within.name, is_method=places[:1] == ["self"]):
            continue
        by_name = [keyword.value for keyword in other.node.keywords if keyword.arg == name]
        by_place = other.node.args[place : place + 1] if place >= 0 else []
        for value in by_name or by_place:
            yield from keys(value, other)


def _reaches(other: Call, path: Path, name: str, is_method: bool) -> bool:
    """Whether `other` calls the function `name` of that file, and not another of the same name."""
    if is_method or isinstance(other.node.func, ast.Attribute):
        return is_method
    named = (node.names for node in ast.walk(trees()[other.path]) if isinstance(node, ast.ImportFrom))
    return other.path == path or any(name == each.name for names in named for each in names)


def test_every_raise_has_a_message_and_all_its_values() -> None:
    """A missing value would turn an error with a fix into a bare KeyError, and only when it is raised."""
    made = [(call, added) for name, added in NAMES.items() for call in calls().get(name, []) if call.node.args]
    assert len(made) > 20, "no raise was found in the source"
    wrong = []
    for call, added in made:
        for there, key in keys(call.node.args[0], call):
            pattern = None if key is None else re.compile(key)  # once: `re` forgets patterns after a few hundred
            fitting = [texts for known, texts in catalogue().items() if pattern and pattern.fullmatch(known)]
            if key is None:
                wrong.append(f"{there.where}: the key cannot be determined; write it out")
            elif not fitting:
                wrong.append(f"{there.where}: no message {key!r}")
            elif there is call and call.values is not None and len(fitting) == 1:
                missing = placeholders(fitting[0].en) - call.values - added
                wrong += [f"{call.where}: {key!r} lacks {sorted(missing)}"] if missing else []
    assert not wrong, "\n".join(wrong)


def test_search_finds_keys_that_are_not_literals() -> None:
    def found(source: str) -> list[str | None]:
        path = SOURCE / "made_up.py"
        trees()[path] = ast.parse(source)
        try:
            call = next(call for name, call in calls_in(path, trees()[path]) if name == "ArgumentError")
            return [key for _, key in keys(call.node.args[0], call)]
        finally:
            del trees()[path]

    assert found("ArgumentError('one' if x else f'two-{x}')") == ["one", "two\\-[a-z0-9-]+"]
    assert found("def f():\n key = {1: 'one'}.get(x, 'two')\n raise ArgumentError(key)") == ["one", "two"]
    assert found("raise ArgumentError(error.key.replace('source-', 'sources-'))") == [None]


def placeholders(sentence: str) -> set[str]:
    return {name.split(".")[0].split("[")[0] for _, name, _, _ in string.Formatter().parse(sentence) if name}
