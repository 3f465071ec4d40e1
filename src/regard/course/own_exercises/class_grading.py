"""Grades the answers of a class: every file of a folder, each in the sandbox, with the same data for all.

One bad, endless or hostile program has its own row and does not stop the others.
"""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.course.exercise import Exercise
from regard.course.grading.grader import grade
from regard.course.grading.verdict import Verdict
from regard.errors import FileError, TooLargeError
from regard.files.safe_open import read_file
from regard.messages import say
from regard.printable import one_line

LARGEST = 2**22
"""In bytes, of one answer."""
MOST = 5000
"""Answers in one folder."""
FORMULA = tuple("=+-@\t\r＝＋－＠")
"""A spreadsheet takes a cell that begins with one of these for a formula."""


@dataclass(frozen=True)
class Graded:
    """One row: the file, and its verdict or the reason why there is none."""

    file: str
    verdict: Verdict | None
    problem: str = ""

    @property
    def state(self) -> str:
        """ "passed", "failed" or "unreadable"."""
        return "unreadable" if self.verdict is None else "passed" if self.verdict.passed else "failed"

    @property
    def tests(self) -> tuple[int, int]:
        """The number of tests that pass, and of all."""
        tests = () if self.verdict is None else self.verdict.tests
        return sum(test.passed for test in tests), len(tests)

    @property
    def slip(self) -> str:
        """The id of the mistake."""
        return "" if self.verdict is None else self.verdict.slip or ""

    @property
    def diagnosis(self) -> str:
        """The sentence about the mistake, on one line."""
        return one_line(self.problem if self.verdict is None else self.verdict.diagnosis or "")


def answer_files(folder: Path, name: str) -> list[str]:
    """The answers in a folder: every file with the ending of `name`, and files named `name` in folders below.

    Hidden files and folders are left out; links to folders are not followed. Raises FileError if there are too many.
    """
    if not folder.is_dir():
        raise FileError("grade-no-folder", path=str(folder))
    found = sorted(islice(_walk(folder, name), MOST + 1))
    if len(found) > MOST:
        raise FileError("grade-too-many", path=str(folder), most=MOST)
    if not found:
        raise FileError("grade-nothing", path=str(folder), ending=Path(name).suffix, name=name)
    return found


def _walk(folder: Path, name: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith((".", "__")))
        for file in files:
            is_top = Path(place) == folder and Path(file).suffix == Path(name).suffix
            if not file.startswith((".", "__")) and (is_top or file == name):
                yield os.path.relpath(os.path.join(place, file), folder)


def grade_class(exercise: Exercise, folder: Path, files: Sequence[str], seed: int) -> Iterator[Graded]:
    """Grade each file on the data of one seed, so that all are compared on the same."""
    for file in files:
        try:
            content = read_file(folder / file, most=LARGEST, within=folder)
            yield Graded(file, grade(exercise, content, seed=seed))
        except (FileError, TooLargeError) as error:
            yield Graded(file, None, error.text())


def as_csv(rows: Sequence[Graded]) -> bytes:
    """The table as CSV in UTF-8 with a byte order mark, by which spreadsheets recognise Chinese."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(
        [say(f"grade-column-{name}") for name in ("file", "verdict", "passed", "tests", "slip", "diagnosis")]
    )
    for row in rows:
        cells = [row.file, say(f"grade-{row.state}"), *row.tests, row.slip, row.diagnosis]
        writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])
    return b"\xef\xbb\xbf" + text.getvalue().encode("utf-8", errors="replace")


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula, on one line.

    >>> harmless("=1+1"), harmless("softmax.py")
    ("'=1+1", 'softmax.py')
    """
    text = one_line(cell)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
