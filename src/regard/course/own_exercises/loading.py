"""Exercises by their id in the catalogue, or loaded from a teacher's folder; and new folders, from the template.

A folder has the form of those under `exercises/`, and `[exercise]` in its task.toml holds what the catalogue says about
the others. Its grader.py is a program: it runs here, in this process, and only because the user named the folder.
"""

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from regard.course.catalogue import assembled, entries, exercise
from regard.course.exercise import Entry, Exercise, Grader, Kind, Sheet, Track
from regard.errors import ArgumentError, FileError, UnknownNameError
from regard.files.json_and_toml import parse_toml
from regard.files.output import write_error, write_new
from regard.files.safe_open import read_file
from regard.messages import LANGUAGES, Listed, Message

LARGEST = 2**20
"""In bytes, of one file of the folder."""
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
TASK, GRADER, STUB, SOLUTION = "task.toml", "grader.py", "stub.py", "solution.py"
FILES = (TASK, STUB, SOLUTION, GRADER, "right/loop.py")
"""Of the template: a worked example that passes verification."""


def find_exercise(name: str) -> Exercise:
    """The exercise with this id, or in this folder: a name with a separator is a path (./mean-pooling)."""
    if is_path(name):
        return load_folder(name)
    try:
        return exercise(name)
    except UnknownNameError as error:
        if (Path(name) / TASK).is_file():
            raise ArgumentError("own-by-path", name=name, path=os.path.join(".", name)) from error
        raise


def is_path(name: str) -> bool:
    """Whether a name is that of a folder, not of an exercise.

    >>> is_path("./softmax"), is_path("softmax/"), is_path("softmax")
    (True, True, False)
    """
    return name in (".", "..") or "/" in name or os.sep in name


def own_id(folder: Path) -> str:
    """The id of the exercise in a folder: its name. Raises ArgumentError if it is invalid, or in the course."""
    id = folder.resolve().name.lower().replace("_", "-").replace(" ", "-")
    if not NAME.fullmatch(id):
        raise ArgumentError("own-name", name=folder.resolve().name)
    if id in {row.id for row in entries()}:
        raise ArgumentError("own-name-taken", name=id)
    return id


def load_folder(folder: str) -> Exercise:
    """The exercise in a folder. Raises FileError that names the file and what is wrong in it."""
    home = Path(folder)
    if not home.is_dir():
        raise FileError("own-no-folder", path=folder)
    id, content = own_id(home), _content(home)
    about = _table(content, "exercise", home)
    kind, track = _choice(about, "kind", get_args(Kind), home), _choice(about, "track", get_args(Track), home)
    title = _words(_table(about, "title", home), "title", home)
    row = Entry(id, kind, track, 0, title)  # type: ignore[arg-type]
    texts = {
        "task": _words(_table(content, "task", home), "task", home)._asdict(),
        "hints": _hints(_table(content, "hints", home), home),
        "cases": _all_words(content.get("cases", {}), "cases", home),
        "mistakes": _all_words(content.get("mistakes", {}), "mistakes", home),
    }
    grading = _run_grader(home)
    if kind == "sheet":
        stub = solution = ""
        _require(isinstance(getattr(grading, "SHEET", None), Sheet), home / GRADER, "SHEET = Sheet(…)")
    else:
        stub, solution = _text(home / STUB, home), _text(home / SOLUTION, home)
        _require(isinstance(getattr(grading, "GRADER", None), Grader), home / GRADER, "GRADER = Grader(…)")
    return assembled(row, texts, stub, solution, grading, folder=folder)


def right_answers(folder: str) -> dict[str, bytes]:
    """The other right answers of a folder, by file name."""
    home = Path(folder)
    paths = sorted((home / "right").glob("*")) if (home / "right").is_dir() else []
    return {path.name: read_file(path, most=LARGEST, within=home) for path in paths if path.suffix in (".py", ".toml")}


# --- task.toml ---------------------------------------------------------------------------------------------


def _content(home: Path) -> dict[str, Any]:
    try:
        return parse_toml(_text(home / TASK, home))
    except tomllib.TOMLDecodeError as error:
        raise FileError("own-toml", path=str(home / TASK), reason=str(error)) from error


def _text(path: Path, home: Path) -> str:
    try:
        return read_file(path, most=LARGEST, within=home).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError("own-not-utf8", path=str(path), position=error.start) from error


def _table(content: Mapping[str, Any], name: str, home: Path) -> dict[str, Any]:
    found = content.get(name)
    if not isinstance(found, dict):
        raise FileError("own-lacks", path=str(home / TASK), what=name)
    return found


def _choice(about: Mapping[str, Any], name: str, known: tuple[str, ...], home: Path) -> str:
    found = about.get(name)
    if found not in known:
        raise FileError("own-choice", path=str(home / TASK), name=name, found=str(found), known=Listed(known))
    return str(found)


def _words(table: Mapping[str, Any], name: str, home: Path) -> Message:
    """A text in both languages; one that is missing is that of the other."""
    given = [table[lang] for lang in LANGUAGES if isinstance(table.get(lang), str) and table[lang].strip()]
    if not given:
        raise FileError("own-lacks", path=str(home / TASK), what=f"{name}.en / {name}.zh")
    return Message(*(str(table.get(lang) or given[0]) for lang in LANGUAGES))


def _all_words(table: Any, name: str, home: Path) -> dict[str, dict[str, Any]]:
    if not isinstance(table, dict) or not all(isinstance(both, dict) for both in table.values()):
        raise FileError("own-lacks", path=str(home / TASK), what=f"{name}.….en / {name}.….zh")
    return {
        key: _words(both, f"{name}.{key}", home)._asdict() | {"alone": both.get("alone") is True}
        for key, both in table.items()
    }


def _hints(table: Mapping[str, Any], home: Path) -> dict[str, list[str]]:
    given = [table[lang] for lang in LANGUAGES if table.get(lang)]
    if not given or not all(isinstance(hints, list) and all(isinstance(one, str) for one in hints) for hints in given):
        raise FileError("own-lacks", path=str(home / TASK), what="hints.en / hints.zh")
    return {lang: table.get(lang) or given[0] for lang in LANGUAGES}


# --- grader.py ---------------------------------------------------------------------------------------------


def _run_grader(home: Path) -> ModuleType:
    """grader.py as a module. What it raises becomes a FileError with its line."""
    path = home / GRADER
    module = ModuleType(f"regard_own_exercise_{home.resolve().name}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # as an import does, for dataclasses defined in it
    try:
        exec(compile(_text(path, home), str(path), "exec", dont_inherit=True), vars(module))
    except FileError:
        raise
    except (Exception, SystemExit) as error:
        values = {"kind": type(error).__name__, "message": str(error)[:300], "line": _line_of(error, str(path))}
        raise FileError("own-grader", path=str(path), **values) from error
    return module


def _line_of(error: BaseException, path: str) -> int:
    """The last line of the file in the traceback, or of a syntax error."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    line, frame = 0, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == path:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


def _require(condition: bool, path: Path, what: str) -> None:
    if not condition:
        raise FileError("own-lacks", path=str(path), what=what)


# --- a new folder ------------------------------------------------------------------------------------------


def write_folder(folder: Path) -> tuple[Path, ...]:
    """Write the files of a new exercise and return their paths. Nothing that exists is overwritten.

    Raises ArgumentError if the name is invalid or the folder is not empty, FileError if it cannot be written.
    """
    own_id(folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise ArgumentError("new-not-empty", path=str(folder))
    template, written = files("regard.course.exercises") / "template", []
    for name in FILES:
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(error, path, 0) from error
        write_new(path, _template_file(template, name))
        written.append(path)
    return tuple(written)


def _template_file(template: Traversable, name: str) -> bytes:
    return template.joinpath(*name.split("/")).read_bytes().replace(os.linesep.encode(), b"\n")
