"""python docs/count_calls.py: which files a `regard` command runs through, and how many calls cross packages.

Counts the functions that run after the imports, in all threads. DESIGN.md states the result for `regard see`.
"""

import contextlib
import io
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import regard.cli

ROOT = str(Path(regard.cli.__file__).parents[1]) + "/"
IS_FUNCTION = 2  # CO_OPTIMIZED: unlike the body of a class or a module


class Walk(NamedTuple):
    """The files that ran, and the number of calls from each package to each other one."""

    files: set[str]
    crossings: Counter[tuple[str, str]]

    @property
    def packages(self) -> set[str]:
        return {package(file) for file in self.files}


def package(file: str) -> str:
    return file.rpartition("/")[0]


def caller(frame: FrameType) -> FrameType | None:
    """The nearest frame of regard's own code below this one."""
    below = frame.f_back
    while below is not None and not below.f_code.co_filename.startswith(ROOT):
        below = below.f_back
    return below


def is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(ROOT):
            return True
        frame = frame.f_back
    return False


def walk(*arguments: str) -> Walk:
    """Run one command and record where it goes."""
    found = Walk(set(), Counter())

    def record(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or not code.co_flags & IS_FUNCTION:
            return
        if is_importing(frame):
            return
        file, below = code.co_filename.removeprefix(ROOT), caller(frame)
        found.files.add(file)
        origin = file if below is None else below.f_code.co_filename.removeprefix(ROOT)
        if package(origin) != package(file):
            found.crossings[package(origin), package(file)] += 1

    sys.argv = ["regard", *arguments]
    threading.setprofile(record)
    sys.setprofile(record)
    try:
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            regard.cli.main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


if __name__ == "__main__":
    found = walk(*sys.argv[1:] or ("see", "I love you"))
    for file in sorted(found.files):
        print(file)
    print(f"{len(found.files)} files of {len(found.packages)} packages; calls between packages:")
    for (origin, target), count in found.crossings.most_common():
        print(f"{count:>6}  {origin or '.'} → {target or '.'}")
    print(f"{found.crossings.total():>6}  in all")
