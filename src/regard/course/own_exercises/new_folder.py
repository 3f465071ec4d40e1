"""Writes the folder of a new exercise from the template, which is a worked example that passes verification."""

import os
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from regard.course.own_exercises.loading import own_id
from regard.errors import ArgumentError
from regard.files.output import write_error, write_new

FILES = ("task.toml", "stub.py", "solution.py", "grader.py", "right/loop.py")


def write_folder(folder: Path) -> tuple[Path, ...]:
    """Write the files of a new exercise and return their paths. Nothing that exists is overwritten.

    Raises ArgumentError if the name is invalid or the folder is not empty, FileError if it cannot be written.
    """
    own_id(folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise ArgumentError("new-not-empty", path=str(folder))
    template, written = files("regard.course.own_exercises") / "template", []
    for name in FILES:
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(error, path, 0) from error
        write_new(path, _content(template, name))
        written.append(path)
    return tuple(written)


def _content(template: Traversable, name: str) -> bytes:
    return template.joinpath(*name.split("/")).read_bytes().replace(os.linesep.encode(), b"\n")
