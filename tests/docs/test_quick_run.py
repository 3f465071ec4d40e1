"""`make quick` tests something of every package."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SOURCE, UNIT = ROOT / "src", ROOT / "tests" / "unit"
LEARNERS = "course/exercises"
"""The folder of programs for learners, which are not our packages."""


def selection() -> ModuleType:
    """tests/unit/conftest.py, which selects the files."""
    spec = importlib.util.spec_from_file_location("selection", UNIT / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packages() -> set[str]:
    folders = {path.parent.relative_to(SOURCE / "regard").as_posix() for path in SOURCE.glob("regard/**/*.py")}
    return {folder for folder in folders if not folder.startswith(LEARNERS)}


def imported(path: Path) -> Iterator[str]:
    """The packages of `regard` that a test imports from, as folders."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                yield "/".join(name.split(".")[1:]) if name.startswith("regard.") else ""


def test_every_package_is_tested() -> None:
    """A package counts as tested by a file in its own folder, or by one that imports from it."""
    module = selection()
    folders = {path.parent for path in UNIT.rglob("test_*.py")}
    files = [path for folder in folders for path in module.quick_files(folder)]
    touched = {path.parent.relative_to(UNIT).as_posix() for path in files}
    names = {name for path in files for name in imported(path)}
    missing = {
        package
        for package in packages() - touched
        if not any(name == package or name.startswith(f"{package}/") for name in names)
    }
    # These run `regard learn` as a command, and a file that must be read without importing its package.
    assert {"cli/test_learn_transfer.py", "kernels/test_hopper_config.py"} <= module.ALSO
    assert missing <= {"cli/learn", "kernels/triton/hopper"}


def test_every_file_that_is_added_exists() -> None:
    assert not [name for name in selection().ALSO if not (UNIT / name).is_file()]
