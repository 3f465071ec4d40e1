"""The list of exercises, and each exercise loaded from its folder on request, with the calls of its example as tests.

The list also gives the lesson of each exercise; the text of a lesson names exactly those (`tests/docs`).
Independent of grading and of progress.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from regard.course.exercise import Call, Entry, Exercise, Grader
from regard.errors import UnknownNameError
from regard.messages import LANGUAGES, Message

if TYPE_CHECKING:
    import numpy as np

HOME = Path(__file__).parent
ABOUT = "example"
_LINE = re.compile(r"^ {4}(?:>>>|\.\.\.)(?: (.*))?$", re.MULTILINE)
"""The lines after the prompt in the example of a task."""


@cache
def entries() -> tuple[Entry, ...]:
    """Every exercise as an entry, in the order of the list.

    >>> entries()[0].id
    'softmax'
    """
    return tuple(Entry(**{**row, "title": Message(**row["title"])}) for row in _table()["exercise"])


def _table() -> dict[str, Any]:
    return tomllib.loads((HOME / "catalogue.toml").read_text(encoding="utf-8"))


def entry(name: str) -> Entry:
    """The entry with this id, written with - or _. The error for an unknown id suggests the closest one, if any."""
    known = {row.id: row for row in entries()}
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        if not near:
            raise UnknownNameError("exercise-unknown", asked=name, count=len(known))
        raise UnknownNameError("exercise-unknown-near", asked=name, nearest=near[0], count=len(known))
    return known[wanted]


def exercise(name: str) -> Exercise:
    """The exercise with this id, with the contents of its folder.

    >>> exercise("softmax").track
    'numpy'
    """
    return _loaded(entry(name))


def folder(row: Entry) -> Path:
    """The folder of an exercise."""
    return HOME / "exercises" / row.id.replace("-", "_")


@cache
def _loaded(row: Entry) -> Exercise:
    home = folder(row)
    content = tomllib.loads((home / "task.toml").read_text(encoding="utf-8"))
    grading = import_module(f"regard.course.exercises.{home.name}.grader")
    return assembled(row, content, _text(home / "stub.py"), _text(home / "solution.py"), grading)


def assembled(
    row: Entry, content: Mapping[str, Any], stub: str, solution: str, grading: ModuleType, folder: str | None = None
) -> Exercise:
    """An exercise from the files of its folder: `content` is task.toml, `grading` the module grader.py."""
    grader = getattr(grading, "GRADER", None)
    ids = {mistake.id for mistake in grader.mistakes} if grader else set()
    mistakes = {id: both for id, both in _shared().items() if id in ids} | content.get("mistakes", {})
    return Exercise(
        **vars(row),
        task=Message(**content["task"]),
        hints={language: tuple(content["hints"][language]) for language in LANGUAGES},
        cases=_words(content.get("cases", {})),
        mistakes=_words(mistakes),
        stub=stub,
        solution=solution,
        grader=with_examples(grader, content["task"]["en"], solution) if grader else None,
        sheet=getattr(grading, "SHEET", None),
        exclusive=frozenset(id for id, both in mistakes.items() if both.get("alone")),
        folder=folder,
    )


@cache
def _shared() -> dict[str, dict[str, Any]]:
    """Messages for mistakes that several exercises share."""
    return tomllib.loads((HOME / "exercises" / "shared_mistakes.toml").read_text(encoding="utf-8"))


def _words(table: Mapping[str, Any]) -> dict[str, Message]:
    return {key: Message(both["en"], both["zh"]) for key, both in table.items()}


def _text(path: Path) -> str:
    """The text of a file, or "": an answer sheet has neither stub nor solution."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def example_calls(task: str, solution: str, targets: Sequence[str]) -> tuple[Call, ...]:
    """The calls of `targets` in the example, in order.

    >>> example_calls(f"    {'>' * 3} f(2)", "def f(x): return x * x", ["f"])[0].args
    (2,)
    """
    import numpy as np  # which the list does not need

    lines = "\n".join(_LINE.findall(task))
    found: list[Call] = []
    running: list[str] = []

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not running:  # a call by another tested function is not part of the example
                found.append(Call(name, deepcopy(args), deepcopy(kwargs), ABOUT))
            running.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                running.pop()

        return call

    space: dict[str, Any] = {"np": np}
    if lines:
        exec(compile(solution, "<solution>", "exec", dont_inherit=True), space)
        space |= {name: recorded(name, space[name]) for name in targets}
        exec(compile(lines, "<example>", "exec", dont_inherit=True), space)
    return tuple(found)


def with_examples(grader: Grader, task: str, solution: str) -> Grader:
    """The grader with the calls of the task's example before its own. They are collected on first use."""
    import numpy as np

    own = grader.cases

    @cache
    def printed() -> tuple[Call, ...]:
        targets = dict.fromkeys(call.target for call in own(np.random.default_rng(0)) if call.instance is None)
        return example_calls(task, solution, list(targets))

    def cases(rng: "np.random.Generator") -> Sequence[Call]:
        return [*deepcopy(printed()), *own(rng)]

    return replace(grader, cases=cases)
