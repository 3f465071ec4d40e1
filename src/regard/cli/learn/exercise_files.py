"""Shared by the commands: the requested exercise, and the file of its answer."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import ArgumentError

if TYPE_CHECKING:
    from regard.course.exercise import Entry, Exercise

LARGEST_ANSWER = 2**24
"""Limit for a file or stdin, in bytes. The grader has its own limit for programs."""


def requested_exercise(id: str | None, command: str) -> "Exercise":
    """The exercise with this id or in this folder; without either, an error with an example."""
    from regard.course.own_exercises.loading import find_exercise

    if id is None:
        raise ArgumentError("learn-which", command=command)
    return find_exercise(id)


def answer_file(row: "Entry") -> str:
    """The file name that `start` uses for an answer.

    >>> from regard.course.catalogue import entry
    >>> answer_file(entry("softmax")), answer_file(entry("by-hand"))
    ('softmax.py', 'by-hand.toml')
    """
    return f"{row.id}.toml" if row.kind == "sheet" else f"{row.id}.py"


def lacks_torch(row: "Entry") -> bool:
    """Whether the exercise needs PyTorch and PyTorch is not installed."""
    return row.track == "torch" and row.kind != "sheet" and find_spec("torch") is None


def is_untouched(exercise: "Exercise", path: Path) -> bool:
    """Whether a file is unchanged since `start`, in either language and with any seed."""
    import tomllib

    from regard.files.input import read_file
    from regard.messages import LANGUAGES

    try:
        text = read_file(path, most=LARGEST_ANSWER).decode().replace("\r\n", "\n")
        if exercise.sheet is None:
            return text == exercise.stub
        seed = tomllib.loads(text).get("seed")
        return isinstance(seed, int) and any(text == exercise.sheet.make(seed, lang) for lang in LANGUAGES)
    except (ValueError, RecursionError):  # not there, not to be read, no UTF-8, no TOML
        return False
