"""What the commands share about names: the exercise that was asked for, and the file its answer is written in."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import ArgumentError

if TYPE_CHECKING:
    from regard.course.exercise import Entry, Exercise

LARGEST_ANSWER = 2**24
"""In bytes, of a file or of stdin. How long a program may be is for the grader to tell."""


def asked_for(id: str | None, command: str) -> "Exercise":
    """The exercise of that id; without one, how to ask."""
    from regard.course.catalogue import exercise

    if id is None:
        raise ArgumentError("learn-which", command=command)
    return exercise(id)


def answer_file(row: "Entry") -> str:
    """The name `start` gives to an answer.

    >>> from regard.course.catalogue import entry
    >>> answer_file(entry("softmax")), answer_file(entry("by-hand"))
    ('softmax.py', 'by-hand.toml')
    """
    return f"{row.id}.toml" if row.kind == "sheet" else f"{row.id}.py"


def lacks_torch(row: "Entry") -> bool:
    """Whether the exercise is written with PyTorch, which is not installed."""
    return row.track == "torch" and row.kind != "sheet" and find_spec("torch") is None


def is_untouched(exercise: "Exercise", path: Path) -> bool:
    """Whether a file is still as `start` wrote it, in either language, and with whatever seed."""
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
