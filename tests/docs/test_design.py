"""DESIGN.md is the repository as it is: files, ranks, rules and dependencies. And one page lists every skip."""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")


def part(heading: str) -> str:
    """The text under a heading of the second level."""
    (found,) = re.findall(rf"^## {heading}.*?$(.*?)(?=^## |\Z)", DESIGN, flags=re.DOTALL | re.MULTILINE)
    return found


# --- the map ----------------------------------------------------------------------------------------------


def design_map() -> ModuleType:
    """docs/design_map.py, which writes the map."""
    spec = importlib.util.spec_from_file_location("design_map", ROOT / "docs/design_map.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_map_is_up_to_date() -> None:
    """If this fails: `python docs/design_map.py`, then read the lines that changed."""
    start = DESIGN.index("### Rank 0")
    assert DESIGN[start : DESIGN.index("\n## ", start)] == design_map().written()


def test_every_file_has_a_docstring() -> None:
    module = design_map()
    assert not [path.relative_to(ROOT).as_posix() for path in module.files() if len(module.first_sentence(path)) < 8]


def test_every_exercise_has_the_files_that_the_map_names() -> None:
    folder = "src/regard/course/exercises/"
    known = set(re.findall(r"`(\w+\.\w+)`", design_map().NOTES[folder]))
    for exercise in (ROOT / folder).iterdir():
        if exercise.is_dir() and exercise.name != "__pycache__":
            # The template has a folder of other right answers, too.
            files = {path.name for path in exercise.iterdir() if path.name not in ("__pycache__", "right")}
            assert files in (known, known - {"stub.py", "solution.py"}), exercise.name


# --- the rules --------------------------------------------------------------------------------------------


def test_every_rule_names_a_test_that_is_there() -> None:
    rules = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", part("Rules"), flags=re.DOTALL | re.MULTILINE)
    assert [int(number) for number, _ in rules] == list(range(1, 12))
    for number, words in rules:
        files = re.findall(r"`(tests/[\w/]+\.py)`", words)
        assert files, f"rule {number}"
        for file in files:
            assert (ROOT / file).is_file(), f"rule {number}: {file}"


@pytest.mark.parametrize("name", ["DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/skips.md"])
def test_files_that_are_named_are_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / name).parent / target).exists(), target


# --- the dependencies -------------------------------------------------------------------------------------


def test_every_dependency_has_its_reason() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    wanted = {(name_of(one), "core") for one in project["dependencies"]}
    wanted |= {(name_of(one), "build") for one in settings["build-system"]["requires"]}
    for extra, packages in project["optional-dependencies"].items():
        wanted |= {(name_of(one), extra) for one in packages if name_of(one) != project["name"]}
    rows = re.findall(r"^\| `([\w-]+)` \| `?(\w+)`? \| (.+) \|$", part("Dependencies"), flags=re.MULTILINE)
    assert sorted((package, where) for package, where, _ in rows) == sorted(wanted)


def name_of(requirement: str) -> str:
    (name,) = re.findall(r"^[\w-]+", requirement)
    return name


# --- the skips --------------------------------------------------------------------------------------------


def skips() -> Counter[str]:
    """Where the tests skip or expect to fail: file and how, for each place."""
    found: Counter[str] = Counter()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.is_relative_to(ROOT / "tests/course/right") or path.is_relative_to(ROOT / "tests/course/hostile"):
            continue  # programs that are judged, not tests
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("skip", "skipif", "importorskip", "xfail"):
                found[f"{path.relative_to(ROOT).as_posix()} {node.attr}"] += 1
    return found


def test_one_page_lists_every_skip() -> None:
    page = (ROOT / "docs/skips.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/.]+)` \| `(\w+)` \| (.+) \| (.+) \|$", page, flags=re.MULTILINE)
    assert Counter(f"{file} {how}" for file, how, _, _ in rows) == skips()


def test_one_page_lists_every_file_with_long_tests() -> None:
    page = (ROOT / "docs/skips.md").read_text(encoding="utf-8").partition("`make test-long` runs before a release.")[2]
    listed = re.findall(r"^\| `([\w/.]+)` \| .+ \| .+ \|$", page, flags=re.MULTILINE)
    mark = "pytest.mark." + "long"
    files = (path for path in sorted((ROOT / "tests").rglob("*.py")) if mark in path.read_text(encoding="utf-8"))
    assert listed == [path.relative_to(ROOT).as_posix() for path in files]


def test_the_files_of_one_command_are_counted() -> None:
    command = [sys.executable, str(ROOT / "docs" / "count_calls.py"), "see", "I love you"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts = r"\d+ files of \d+ packages"
    assert re.findall(counts, printed) == re.findall(counts, part("One command"))
