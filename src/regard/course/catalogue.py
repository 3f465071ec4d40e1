"""The exercises: their list, quick to read, and each one loaded from its folder when it is asked for.

The list also says which lesson an exercise belongs to; a lesson's text names exactly those (`tests/docs`).

Knows where things stand and what shape a folder has; knows nothing about grading or about progress.
"""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.course.exercise import Entry, Exercise
from regard.errors import UnknownNameError
from regard.messages import LANGUAGES, Words

HOME = Path(__file__).parent


@cache
def entries() -> tuple[Entry, ...]:
    """Every exercise as a row, in the order of the list.

    >>> entries()[0].id
    'softmax'
    """
    return tuple(Entry(**{**row, "title": Words(**row["title"])}) for row in _table()["exercise"])


@cache
def coming() -> Mapping[int, Words]:
    """The titles of lessons that have exercises and questions, but no text yet.

    >>> min(coming())
    6
    """
    return {int(number): Words(**row["title"]) for number, row in _table()["coming"].items()}


def _table() -> dict[str, Any]:
    return tomllib.loads((HOME / "catalogue.toml").read_text(encoding="utf-8"))


def entry(asked: str) -> Entry:
    """The row of that id, written with - or _; an unknown id is told the nearest, if one is near."""
    known = {row.id: row for row in entries()}
    wanted = asked.strip().lower().replace("_", "-").replace(" ", "-")
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        if not near:
            raise UnknownNameError("exercise-unknown", asked=asked, count=len(known))
        raise UnknownNameError("exercise-unknown-near", asked=asked, nearest=near[0], count=len(known))
    return known[wanted]


def exercise(asked: str) -> Exercise:
    """The exercise of that id with all that stands in its folder.

    >>> exercise("softmax").track
    'numpy'
    """
    return _loaded(entry(asked))


def folder(row: Entry) -> Path:
    """Where the files of an exercise are."""
    return HOME / "exercises" / row.id.replace("-", "_")


@cache
def _loaded(row: Entry) -> Exercise:
    from regard.course.printed_examples import with_examples  # needs NumPy, which the list does without

    home = folder(row)
    told = tomllib.loads((home / "task.toml").read_text(encoding="utf-8"))
    grading = import_module(f"regard.course.exercises.{home.name}.grader")
    grader, solution = getattr(grading, "GRADER", None), _text(home / "solution.py")
    ids = {slip.id for slip in grader.slips} if grader else set()
    slips = {id: both for id, both in _shared().items() if id in ids} | told.get("slips", {})
    return Exercise(
        **vars(row),
        task=Words(**told["task"]),
        hints={language: tuple(told["hints"][language]) for language in LANGUAGES},
        cases=_words(told.get("cases", {})),
        slips=_words(slips),
        stub=_text(home / "stub.py"),
        solution=solution,
        grader=with_examples(grader, told["task"]["en"], solution) if grader else None,
        sheet=getattr(grading, "SHEET", None),
        alone=frozenset(id for id, both in slips.items() if both.get("alone")),
    )


@cache
def _shared() -> dict[str, dict[str, Any]]:
    """The sentences of slips that many exercises know."""
    return tomllib.loads((HOME / "exercises" / "slips.toml").read_text(encoding="utf-8"))


def _words(table: Mapping[str, Any]) -> dict[str, Words]:
    return {key: Words(both["en"], both["zh"]) for key, both in table.items()}


def _text(path: Path) -> str:
    """A sheet has neither stub nor solution."""
    return path.read_text(encoding="utf-8") if path.exists() else ""
