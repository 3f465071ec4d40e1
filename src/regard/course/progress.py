"""A learner's progress and its file: `progress.json` in $REGARD_HOME, otherwise in ~/.regard.

Writes are atomic: a reader finds the old progress or the new one, complete, even if a writer was killed. Writers wait
for each other. An invalid file is kept under another name and replaced by the backup. Independent of the list of
exercises and of the schedule of questions.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from regard.errors import AbsentFileError, FileError, TooLargeError
from regard.files.output import open_lock, try_lock, write_atomically, write_error
from regard.files.safe_open import read_file
from regard.memory import format_bytes
from regard.messages import say

VERSION = 1
NAME, BACKUP, LOCK = "progress.json", "progress.backup.json", "progress.lock"
LARGEST = 2**22
"""In bytes; progress on a thousand exercises needs a tenth of it."""
MOST = 10**9
"""The largest count that is valid in a file."""
LOCK_TIMEOUT = 10.0
"""Seconds to wait for another writer; one write takes a few milliseconds."""

Rating = Literal["again", "unsure", "good"]
RATINGS: tuple[Rating, ...] = get_args(Rating)


@dataclass(frozen=True, kw_only=True)
class ExerciseProgress:
    """Progress on one exercise."""

    passed_at: str | None = None
    attempts: int = 0
    hints: int = 0
    gave_up: bool = False
    worked_at: str | None = None
    """The time of the last check, hint or look at the solution."""

    def checked(self, passed: bool) -> "ExerciseProgress":
        """The progress after one more check; the time of the first pass is kept."""
        now = timestamp()
        return replace(
            self, attempts=self.attempts + 1, passed_at=self.passed_at or (now if passed else None), worked_at=now
        )

    def hinted(self, step: int) -> "ExerciseProgress":
        """The progress after this hint was shown."""
        return replace(self, hints=max(self.hints, step), worked_at=timestamp())

    def given_up(self) -> "ExerciseProgress":
        """The progress after the solution was shown without a pass."""
        return replace(self, gave_up=True, worked_at=timestamp())


@dataclass(frozen=True, kw_only=True)
class Card:
    """The review state of one question: its box, the day it is due, the last rating and its time."""

    box: int
    due: str
    rated: Rating
    at: str


@dataclass(frozen=True)
class Progress:
    """All progress, by ids of exercises and questions and names of lessons."""

    exercises: Mapping[str, ExerciseProgress] = field(default_factory=dict)
    questions: Mapping[str, Card] = field(default_factory=dict)
    lessons: Mapping[str, str] = field(default_factory=dict)
    """The time at which each lesson was last opened."""

    def work(self, exercise: str) -> ExerciseProgress:
        """Progress on one exercise; empty if it was never started.

        >>> Progress().work("softmax").attempts
        0
        """
        return self.exercises.get(exercise, ExerciseProgress())

    def passed(self, exercise: str) -> bool:
        """Whether the exercise was ever passed."""
        return self.work(exercise).passed_at is not None

    def with_work(self, exercise: str, work: ExerciseProgress) -> "Progress":
        """A copy with new progress on one exercise."""
        return replace(self, exercises={**self.exercises, exercise: work})

    def with_card(self, question: str, card: Card) -> "Progress":
        """A copy with a new card for one question."""
        return replace(self, questions={**self.questions, question: card})

    def with_lesson(self, lesson: str) -> "Progress":
        """A copy in which the lesson was opened just now."""
        return replace(self, lessons={**self.lessons, lesson: timestamp()})

    def without(self, exercise: str) -> "Progress":
        """A copy without one exercise."""
        return replace(self, exercises={one: work for one, work in self.exercises.items() if one != exercise})


def timestamp() -> str:
    """The current time in the format of the file."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def home() -> Path:
    """The folder of the progress file; it may not exist yet."""
    return Path(os.path.expanduser(os.environ.get("REGARD_HOME") or "~/.regard"))


class ProgressFile:
    """Progress on disk. `report` is called with a message when something is wrong."""

    def __init__(self, folder: Path | None = None, report: Callable[[str], object] = lambda sentence: None) -> None:
        self.folder = home() if folder is None else folder
        self.path, self.backup = self.folder / NAME, self.folder / BACKUP
        self._report, self._reported = report, False

    def read(self) -> Progress:
        """The stored progress, empty if there is none. Never raises: problems go to `report`."""
        try:
            return _parsed(self.path)
        except AbsentFileError:
            return Progress()
        except (FileError, _InvalidProgressError):
            return self._run_locked(self._rescued, self._backed_up)

    def change(self, edit: Callable[[Progress], Progress]) -> Progress:
        """Read, edit and write as one step; return the new progress. A failed write is reported once."""

        def write() -> Progress:
            before = self._rescued()
            after = edit(before)
            if after != before:
                self._write(after)
            return after

        return self._run_locked(write, lambda: edit(self.read()))

    def merge(self, edit: Callable[[Progress], Progress]) -> Path | None:
        """As `change`, but the file is first copied to a new name, which is returned; None if nothing changes.

        Raises FileError and TooLargeError: nothing is merged without the copy.
        """
        with self._locked():
            before = self._rescued()
            after = edit(before)
            if after == before:
                return None
            if len(_content(after)) > LARGEST:
                raise TooLargeError("progress-too-large", path=str(self.path), most=format_bytes(LARGEST))
            kept = free_name(self.path, "before-import")
            _write(kept, _content(before))
            self._write(after)
            return kept

    @property
    def is_saved(self) -> bool:
        """Whether every write succeeded so far."""
        return not self._reported

    def checked(self, exercise: str, passed: bool) -> Progress:
        """Record one more check of an exercise."""
        return self.change(lambda now: now.with_work(exercise, now.work(exercise).checked(passed)))

    def forget_all(self) -> Path | None:
        """Delete all progress; return the name under which the old file is kept, None if there was none."""
        with self._locked():
            return moved_away(self.path, "before-reset") if self.path.exists() else None

    def _run_locked(self, act: Callable[[], Progress], instead: Callable[[], Progress]) -> Progress:
        """Run `act` under the lock; if the folder is not writable, report it once and run `instead`."""
        try:
            with self._locked():
                return act()
        except (FileError, TooLargeError) as error:
            if not self._reported:
                self._reported = True
                self._report(say("progress-not-kept", reason=error.text()))
            return instead()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the writers' lock, if the file system has locks. Raises FileError if the folder is not writable."""
        path = self.folder / LOCK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(error, path, 0) from error
        descriptor = open_lock(path)
        try:
            _wait_for(descriptor, path)
            for left in self.folder.glob(f".{Path(NAME).stem}*"):  # left by killed writers
                left.unlink(missing_ok=True)
            yield
        except OSError as error:
            raise write_error(error, self.path, 0) from error
        finally:
            os.close(descriptor)  # releases the lock

    def _rescued(self) -> Progress:
        """The stored progress; an invalid file is renamed and replaced by the backup."""
        try:
            return _parsed(self.path)
        except AbsentFileError:
            return Progress()
        except _InvalidProgressError as error:
            moved = moved_away(self.path, error.kind)
            kept = self._backed_up()
            self._write(kept)
            then = say("progress-then-backup" if kept != Progress() else "progress-then-anew")
            self._report(say(f"progress-{error.kind}", path=str(self.path), kept=moved.name, then=then))
            return kept

    def _backed_up(self) -> Progress:
        try:
            return _parsed(self.backup)
        except (FileError, _InvalidProgressError):
            return Progress()

    def _write(self, progress: Progress) -> None:
        """Write the current file as the backup, then the new one: at any time one of them is complete."""
        with suppress(AbsentFileError):
            _write(self.backup, read_file(self.path, most=LARGEST))
        _write(self.path, _content(progress))


# --- the file's content ------------------------------------------------------------------------------------


class _InvalidProgressError(Exception):
    """An invalid progress file: `broken`, or written by a `newer` regard."""

    def __init__(self, kind: Literal["broken", "newer"]) -> None:
        super().__init__(kind)
        self.kind = kind


def _parsed(path: Path) -> Progress:
    """The progress in a file. Raises FileError or _InvalidProgressError."""
    try:
        content = read_file(path, most=LARGEST)
    except FileError as error:
        if error.key == "file-too-large":
            raise _InvalidProgressError("broken") from error
        raise
    try:
        data = json.loads(content)
        if type(data["version"]) is int and data["version"] > VERSION:
            raise _InvalidProgressError("newer")
        return from_data(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _InvalidProgressError("broken") from None


def as_data(progress: Progress) -> dict[str, Any]:
    """The progress as plain values, with the version of their form."""
    return {"version": VERSION, **asdict(progress)}


def from_data(data: Any) -> Progress:
    """The progress in plain values. Raises ValueError, TypeError, KeyError or AttributeError where they are invalid.

    `lessons` and `worked_at` are optional: the first versions of regard did not write them.
    """
    _require(type(data["version"]) is int and data["version"] == VERSION)
    works = {one: _work(value) for one, value in data["exercises"].items()}
    cards = {one: _card(value) for one, value in data["questions"].items()}
    return Progress(works, cards, {one: _time(value) for one, value in data.get("lessons", {}).items()})


def _content(progress: Progress) -> bytes:
    return (json.dumps(as_data(progress), ensure_ascii=False, indent=1) + "\n").encode()


def _work(value: Any) -> ExerciseProgress:
    values = {"worked_at": None, **value}
    work = ExerciseProgress(**{name: values[name] for name in ExerciseProgress.__dataclass_fields__})
    for time_ in (work.passed_at, work.worked_at):
        if time_ is not None:
            _time(time_)
    _require(all(type(count) is int and 0 <= count <= MOST for count in (work.attempts, work.hints)))
    _require(type(work.gave_up) is bool)
    return work


def _card(value: Any) -> Card:
    card = Card(**{name: value[name] for name in Card.__dataclass_fields__})
    _require(type(card.box) is int and 0 <= card.box <= MOST and card.rated in RATINGS)
    _require(card.due.isascii() and date.fromisoformat(card.due) is not None)
    _time(card.at)
    return card


def _time(value: Any) -> str:
    _require(value.isascii() and value.isprintable() and 1970 <= datetime.fromisoformat(value).year < 9999)
    return str(value)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


# --- on disk -----------------------------------------------------------------------------------------------


def _wait_for(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            return try_lock(descriptor)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise FileError("progress-busy", path=str(path), seconds=LOCK_TIMEOUT) from error
            time.sleep(0.02)
        except OSError:  # a file system without locks
            return None


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, lambda temporary: temporary.write_bytes(content), need=len(content), sync=True)


def moved_away(path: Path, why: str) -> Path:
    """Rename a file to an unused name; return that name."""
    kept = free_name(path, why)
    os.replace(path, kept)
    return kept


def free_name(path: Path, why: str) -> Path:
    """An unused name beside a file, with the reason and today's date."""
    day = datetime.now().strftime("%Y-%m-%d")
    for n in range(1, 1000):
        kept = path.with_name(f"{path.stem}.{why}-{day}-{n}{path.suffix}")
        if not kept.exists():
            break
    return kept
