"""Everything public says what it is, and every example in the source runs and prints what it says."""

import ast
import doctest
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PACKAGES = (
    "regard",
    "regard.reference",
    "regard.functional",
    "regard.config",
    "regard.layers",
    "regard.models",
    "regard.checkpoints",
    "regard.generation",
    "regard.trace",
    "deep_learning.activations",
    "deep_learning.attention",
    "deep_learning.nn",
)


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if any(path.match(f"course/exercises/*/{name}") for name in ("stub.py", "solution.py", "right/*.py")):
            continue  # texts for learners, which are never imported
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()
WITH_EXAMPLES = [name for name, path in MODULES.items() if ">>> " in path.read_text(encoding="utf-8")]


def public() -> list[tuple[str, str]]:
    named = [
        (package, name) for package in PACKAGES for name in import_module(package).__all__ if not name.startswith("__")
    ]
    assert len(named) > 60
    return named


@pytest.mark.parametrize(("package", "name"), public())
def test_a_public_name_says_what_it_is(package: str, name: str) -> None:
    thing = getattr(import_module(package), name)
    # Not inherited, and not what NamedTuple and dataclass write by themselves.
    own = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
    assert own, f"{package}.{name}"
    assert not own.startswith(f"{name}("), f"{package}.{name}"
    if inspect.isclass(thing):
        undocumented = [
            f"{name}.{method}"
            for method, function in vars(thing).items()
            if not method.startswith("_") and _is_written_here(function, thing) and not inspect.getdoc(function)
        ]
        assert not undocumented


def _is_written_here(function: object, owner: type) -> bool:
    """A method or property of the class itself; `forward` of a module is documented by its class."""
    if isinstance(function, property | classmethod):
        return True
    return inspect.isfunction(function) and function.__module__ == owner.__module__ and function.__name__ != "forward"


@pytest.mark.parametrize("name", MODULES)
def test_a_file_says_what_it_holds(name: str) -> None:
    assert ast.get_docstring(ast.parse(MODULES[name].read_text(encoding="utf-8"))), name


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name: str) -> None:
    module = import_module(name)
    runner = doctest.DocTestRunner()
    examples = found_in(module)
    for example in examples:
        said: list[str] = []
        assert not runner.run(example, out=said.append).failed, "".join(said)
    assert len(examples) == written_in(MODULES[name]), "an example that doctest does not find is never run"


def found_in(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


def written_in(path: Path) -> int:
    """How many docstrings hold an example."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]
    return sum(">>> " in (ast.get_docstring(node) or "") for node in nodes)
