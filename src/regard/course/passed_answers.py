"""The answers that passed a check, kept beside the progress file; and both as one JSON file for another computer.

Answers are `passed/ID.py`, or `passed/ID.toml` for a sheet. The newest pass replaces the others. Writes are atomic.
`record` records one check, in both places. A JSON file from elsewhere is untrusted: its size is bounded, names never
become paths unless the catalogue knows them, and what is unknown here is kept in a file of its own. Nothing is run.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from regard.course.catalogue import entries
from regard.course.exercise import OWN, Exercise
from regard.course.grading.python_source import read_source
from regard.course.grading.verdict import Verdict
from regard.course.lessons import lessons
from regard.course.progress import (
    Card,
    ExerciseProgress,
    Progress,
    ProgressFile,
    as_data,
    from_data,
    home,
    moved_away,
    timestamp,
)
from regard.course.questions import questions
from regard.errors import AbsentFileError, FileError, TooLargeError
from regard.files.json_and_toml import JsonError, parse_json
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
LARGEST_ANSWER = 2**22
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
                return read_file(self.path(exercise, ending), most=LARGEST_ANSWER)
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
                found[name] = read_file(self.folder / name, most=LARGEST_ANSWER)
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
            if read_file(target, most=LARGEST_ANSWER) == content:
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


FORMAT, VERSION = "regard-progress", 1
LARGEST_TRANSFER = 2**25
"""In bytes. All answers of the course together have a thousandth of it."""
MOST = 10_000
"""Entries of one kind."""

_OWN = re.compile(rf"{re.escape(OWN)}[a-z0-9][a-z0-9-]{{0,74}}")
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Transfer:
    """Progress, and the passed answers by file name."""

    progress: Progress = field(default_factory=Progress)
    answers: Mapping[str, str] = field(default_factory=dict)

    def is_empty(self) -> bool:
        return self == Transfer()

    def content(self) -> bytes:
        """The file."""
        data = {"format": FORMAT, "version": VERSION, "written_at": timestamp(), "progress": as_data(self.progress)}
        return (json.dumps({**data, "answers": self.answers}, ensure_ascii=False, indent=1) + "\n").encode()


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    known: Transfer
    unknown: Transfer
    answers_written: int
    backup: Path | None
    """The progress before the import; None if it did not change."""
    unknown_file: Path | None
    """The file of what is unknown here."""


def collect(report: Callable[[str], object]) -> Transfer:
    """All progress and passed answers of this computer. What cannot be read is reported."""
    answers = {}
    for name, content in PassedAnswers(report=report).kept().items():
        try:
            answers[name] = content.decode()
        except UnicodeDecodeError:
            report(FileError("export-not-utf8", name=name).text())
    return Transfer(ProgressFile(report=report).read(), answers)


def import_file(path: Path) -> Imported:
    """Merge an exported file into the progress and the passed answers. Raises FileError and TooLargeError."""
    known, unknown = _separated(read_transfer(path))
    progress_file, answers = ProgressFile(), PassedAnswers()
    unknown_file = None if unknown.is_empty() else _keep_unknown(unknown, progress_file.folder)
    written = sum(answers.keep_beside(name, text.encode()) for name, text in known.answers.items())
    backup = progress_file.merge(lambda mine: merged(mine, known.progress))
    return Imported(known, unknown, written, backup, unknown_file)


# --- reading -----------------------------------------------------------------------------------------------


def read_transfer(path: Path) -> Transfer:
    """The content of an exported file, checked. Raises FileError."""
    content = read_file(path, most=LARGEST_TRANSFER)
    try:
        data = parse_json(content)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise FileError("import-other", path=str(path))
        if type(data["version"]) is int and data["version"] > VERSION:
            raise FileError("import-newer", path=str(path))
        progress, answers = from_data(data["progress"]), data["answers"]
        _require(type(data["version"]) is int and data["version"] == VERSION and isinstance(answers, dict))
        _require(all(isinstance(text, str) and len(text.encode()) <= LARGEST_ANSWER for text in answers.values()))
        tables: list[Collection[str]] = [progress.exercises, progress.questions, progress.lessons, answers]
        _require(all(len(table) <= MOST and all(0 < len(name.encode()) <= 100 for name in table) for table in tables))
    except FileError:
        raise
    except JsonError as error:
        raise FileError("import-damaged", path=str(path), where=str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError("import-damaged", path=str(path), where="progress") from error
    return Transfer(progress, answers)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _separated(found: Transfer) -> tuple[Transfer, Transfer]:
    """What this regard knows, and the rest."""
    names = {f"{row.id}{'.toml' if row.kind == 'sheet' else '.py'}" for row in entries()}
    exercises = {row.id for row in entries()}
    asked, read = {one.id for one in questions()}, {one.name for one in lessons()}
    sides = []
    for wanted in (True, False):
        progress = Progress(
            _chosen(found.progress.exercises, lambda id: id in exercises or bool(_OWN.fullmatch(id)), wanted),
            _chosen(found.progress.questions, lambda id: id in asked, wanted),
            _chosen(found.progress.lessons, lambda name: name in read, wanted),
        )
        sides.append(Transfer(progress, _chosen(found.answers, lambda name: name in names or _is_own(name), wanted)))
    return sides[0], sides[1]


def _is_own(name: str) -> bool:
    stem, _, ending = name.rpartition(".")
    return ending in ("py", "toml") and bool(_OWN.fullmatch(stem))


def _chosen(table: Mapping[str, Entry], known: Callable[[str], bool], wanted: bool) -> dict[str, Entry]:
    return {name: entry for name, entry in table.items() if known(name) == wanted}


def _keep_unknown(unknown: Transfer, folder: Path) -> Path:
    """Write what is unknown here to a file that a newer regard can import; the same content is kept once."""
    digest = sha256(json.dumps([asdict(unknown.progress), dict(unknown.answers)]).encode()).hexdigest()[:12]
    path = folder / f"unknown-{digest}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, path, 0) from error
    write_bytes(path, unknown.content())
    return path


# --- merging -----------------------------------------------------------------------------------------------


def merged(mine: Progress, theirs: Progress) -> Progress:
    """Both together. Merging the same progress twice changes nothing.

    An exercise has the earlier pass, the later work and the larger counts; a question has the later rating.
    """
    return Progress(
        _union(mine.exercises, theirs.exercises, _merged_work),
        _union(mine.questions, theirs.questions, _later_card),
        _union(mine.lessons, theirs.lessons, lambda first, second: max(first, second, key=moment)),
    )


def _union(
    mine: Mapping[str, Entry], theirs: Mapping[str, Entry], both: Callable[[Entry, Entry], Entry]
) -> dict[str, Entry]:
    return {**mine, **{id: both(mine[id], entry) if id in mine else entry for id, entry in theirs.items()}}


def _merged_work(mine: ExerciseProgress, theirs: ExerciseProgress) -> ExerciseProgress:
    passes = [at for at in (mine.passed_at, theirs.passed_at) if at is not None]
    times = [at for at in (mine.worked_at, theirs.worked_at) if at is not None]
    return replace(
        mine,
        passed_at=min(passes, key=moment, default=None),
        attempts=max(mine.attempts, theirs.attempts),
        hints=max(mine.hints, theirs.hints),
        gave_up=mine.gave_up or theirs.gave_up,
        worked_at=max(times, key=moment, default=None),
    )


def _later_card(mine: Card, theirs: Card) -> Card:
    return theirs if moment(theirs.at) > moment(mine.at) else mine


def moment(at: str) -> datetime:
    """A time of the file; without a time zone it is UTC, so that any two can be compared."""
    found = datetime.fromisoformat(at)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def about(transfer: Transfer) -> dict[str, Any]:
    """How much a transfer holds, by kind."""
    progress = transfer.progress
    counts = {"exercises": len(progress.exercises), "questions": len(progress.questions)}
    return counts | {"lessons": len(progress.lessons), "answers": len(transfer.answers)}
