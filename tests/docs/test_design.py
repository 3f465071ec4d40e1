"""DESIGN.md is the repository as it is: files, ranks, rules and dependencies. And one page lists every skip."""

import ast
import importlib.util
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")


def part(heading: str) -> str:
    """The text under a heading of the second level."""
    (found,) = re.findall(rf"^## {heading}.*?$(.*?)(?=^## |\Z)", DESIGN, flags=re.DOTALL | re.MULTILINE)
    return found


# --- the map ----------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A file on the map: under which rank it stands, its path, and what is said of it."""

    rank: int
    path: str
    words: str


def mapped() -> list[Line]:
    found, rank, room = [], -1, ""
    for line in part("Rooms and files").splitlines():
        if heading := re.match(r"### Rank (\d+)", line):
            rank = int(heading[1])
        elif folder := re.match(r"\*\*`(src/.*/)`\*\* ", line):
            room = folder[1]
        elif file := re.match(r"- `(\w+\.py)` (.*)", line):
            found.append(Line(rank, room + file[1], file[2]))
    return found


EXERCISES = "src/regard/course/exercises/"


def test_every_file_stands_on_the_map_once() -> None:
    files = [path.relative_to(ROOT) for path in (ROOT / "src").rglob("*.py")]
    # The catalogue lists the exercises; their folders are all alike, and the map says once what is in them.
    there = {path.as_posix() for path in files if not path.match("course/exercises/*/*.py")}
    listed = Counter(line.path for line in mapped())
    assert not sorted(there - listed.keys()), "not on the map of DESIGN.md"
    assert not sorted(listed.keys() - there), "on the map of DESIGN.md, but nowhere else"
    assert not [path for path, times in listed.items() if times > 1]
    assert all(len(line.words) > 4 for line in mapped())


def test_what_the_map_says_of_an_exercise_holds_for_each() -> None:
    (line,) = re.findall(rf"^\*\*`{EXERCISES}`\*\* (.*?)$", DESIGN, flags=re.MULTILINE)
    known = set(re.findall(r"`(\w+\.\w+)`", line))
    for folder in (ROOT / EXERCISES).iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            files = {path.name for path in folder.iterdir() if path.suffix != ".pyc" and path.name != "__pycache__"}
            assert files in (known, known - {"stub.py", "solution.py"}), folder.name


def test_every_file_stands_under_its_rank() -> None:
    spec = importlib.util.spec_from_file_location("ranks", ROOT / "tests/unit/test_ranks.py")
    assert spec is not None
    assert spec.loader is not None
    ranks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ranks)
    for line in mapped():
        module = line.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert line.rank == (10 if module == "regard" else int(ranks.rank(module))), line.path


def test_what_needs_torch_is_marked() -> None:
    """With a star, on the room or on the file."""
    marked = re.findall(r"^\*\*`(src/.*/)`\*\* \* ", DESIGN, flags=re.MULTILINE)
    for line in mapped():
        if re.search(r"^(import|from) torch\b", (ROOT / line.path).read_text(encoding="utf-8"), flags=re.MULTILINE):
            assert line.words.startswith("* ") or line.path.rpartition("/")[0] + "/" in marked, line.path


def test_what_comes_next_has_no_file_yet() -> None:
    (paragraph,) = re.findall(r"^Comes next.*?(?=\n\n)", DESIGN, flags=re.DOTALL | re.MULTILINE)
    for room in re.findall(r"`(\w+)`", paragraph):
        assert not list((ROOT / "src/regard").glob(f"{room}*")), f"{room} is here: give it its lines on the map"


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
