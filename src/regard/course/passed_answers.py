"""The answers that passed a check, kept beside the progress file: `passed/ID.py`, or `passed/ID.toml` for a sheet.

The newest pass replaces the others. Writes are atomic. `record` records one check, in both places.
"""

import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from regard.course.exercise import OWN, Exercise
from regard.course.grading.python_source import read_source
from regard.course.grading.verdict import Verdict
from regard.course.progress import ProgressFile, home, moved_away
from regard.errors import AbsentFileError, FileError, TooLargeError
from regard.files.output import write_bytes, write_error, write_new
from regard.files.safe_open import read_file
from regard.messages import say

FOLDER = "passed"
ENDINGS = (".py", ".toml")
"""Of programs, and of answer sheets."""
NAMES = re.compile(rf"(?:{re.escape(OWN)})?[a-z0-9][a-z0-9-]{{0,79}}\.(?:py|toml)")
"""The file names of kept answers; those that were moved away have other names."""
IMPORTED = "imported"
"""The folder of imported answers that differ from the kept ones."""
LARGEST = 2**22
"""In bytes: the longest program that the grader accepts."""


class PassedAnswers:
    """The folder of passed programs. `report` is called with a message when one cannot be kept."""

    def __init__(self, folder: Path | None = None, report: Callable[[str], object] = lambda sentence: None) -> None:
        self.folder = (home() if folder is None else folder) / FOLDER
        self._report = report

    def path(self, exercise: str, ending: str = ENDINGS[0]) -> Path:
        """The file of an exercise; it may not exist."""
        return self.folder / f"{exercise}{ending}"

    def keep(self, exercise: str, source: str, ending: str = ENDINGS[0]) -> None:
        """Keep an answer that passed. Never raises: a failed write is reported."""
        content = source.encode("utf-8", errors="surrogatepass")
        try:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise write_error(error, self.folder, 0) from error
            write_bytes(self.path(exercise, ending), content)
        except (FileError, TooLargeError) as error:
            self._report(say("passed-not-kept", exercise=exercise, reason=error.text()))

    def read(self, exercise: str) -> bytes | None:
        """The answer that passed; None if there is none. Raises FileError if the file cannot be read."""
        for ending in ENDINGS:
            try:
                return read_file(self.path(exercise, ending), most=LARGEST)
            except AbsentFileError:
                continue
        return None

    def kept(self) -> dict[str, bytes]:
        """Every kept answer, by its file name. One that cannot be read is reported."""
        found: dict[str, bytes] = {}
        try:
            names = sorted(path.name for path in self.folder.iterdir() if NAMES.fullmatch(path.name))
        except OSError:  # there is none
            return found
        for name in names:
            try:
                found[name] = read_file(self.folder / name, most=LARGEST)
            except FileError as error:
                self._report(error.text())
        return found

    def keep_beside(self, name: str, content: bytes) -> bool:
        """Keep an answer from elsewhere: under this name, or in `imported/` if another one is kept under it.

        Returns whether a file was written; False if the same answer is already there. Raises FileError and
        TooLargeError.
        """
        target = self.folder / name
        if os.path.lexists(target):
            if read_file(target, most=LARGEST) == content:
                return False
            stem, _, ending = name.rpartition(".")
            target = self.folder / IMPORTED / f"{stem}-{sha256(content).hexdigest()[:12]}.{ending}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(error, target.parent, 0) from error
        return write_new(target, content)

    def forget(self, exercise: str) -> None:
        """Rename the answer, so that it no longer counts."""
        for ending in ENDINGS:
            self._move_away(self.path(exercise, ending))

    def forget_all(self) -> None:
        """Rename the folder."""
        self._move_away(self.folder)

    def _move_away(self, path: Path) -> None:
        if os.path.lexists(path):
            try:
                moved_away(path, "before-reset")
            except OSError as error:
                raise write_error(error, path, 0) from error


def record(exercise: Exercise, verdict: Verdict, answer: str | bytes, report: Callable[[str], object]) -> None:
    """Record one check. Never raises: what cannot be written is reported."""
    progress_file = ProgressFile(report=report)
    progress_file.checked(exercise.key, verdict.passed)
    if verdict.passed and progress_file.is_saved:
        ending = ENDINGS[exercise.sheet is not None]
        PassedAnswers(report=report).keep(exercise.key, read_source(answer).text, ending)
