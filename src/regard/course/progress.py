"""What a learner has done, and the file that keeps it: `progress.json` in $REGARD_HOME, else in ~/.regard.

Whoever reads finds the old progress or the new one, whole, however a writer died; writers wait for each other. A file
that makes no sense is kept under another name, and the backup taken. Which exercises and questions there are is not
known here, nor when a question is due.
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
from regard.files.input import read_file
from regard.files.output import open_lock, refusal, try_lock, write_aside
from regard.messages import say

VERSION = 1
NAME, BACKUP, LOCK = "progress.json", "progress.backup.json", "progress.lock"
LARGEST = 2**22
"""In bytes; a learner of a thousand exercises needs a tenth of it."""
PATIENCE = 10.0
"""Seconds to wait for another writer, each of whom needs a few milliseconds."""

Rating = Literal["again", "unsure", "good"]
RATINGS: tuple[Rating, ...] = get_args(Rating)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What was done about one exercise."""

    passed_at: str | None = None
    attempts: int = 0
    hints: int = 0
    gave_up: bool = False

    def checked(self, passed: bool) -> "Work":
        """After one more check; the day of the first pass stays."""
        return replace(self, attempts=self.attempts + 1, passed_at=self.passed_at or (moment() if passed else None))


@dataclass(frozen=True, kw_only=True)
class Card:
    """How well one question is known: its box, the day it is asked again, the last rating and its moment."""

    box: int
    due: str
    rated: Rating
    at: str


@dataclass(frozen=True)
class Progress:
    """All of it, by the ids of exercises and questions."""

    exercises: Mapping[str, Work] = field(default_factory=dict)
    questions: Mapping[str, Card] = field(default_factory=dict)

    def work(self, exercise: str) -> Work:
        """What was done about an exercise, if anything.

        >>> Progress().work("softmax").attempts
        0
        """
        return self.exercises.get(exercise, Work())

    def passed(self, exercise: str) -> bool:
        """Whether it was ever passed."""
        return self.work(exercise).passed_at is not None

    def with_work(self, exercise: str, work: Work) -> "Progress":
        """The same with one exercise's work in place of what was there."""
        return replace(self, exercises={**self.exercises, exercise: work})

    def with_card(self, question: str, card: Card) -> "Progress":
        """The same with one question's card in place of what was there."""
        return replace(self, questions={**self.questions, question: card})

    def without(self, exercise: str) -> "Progress":
        """The same with one exercise forgotten."""
        return replace(self, exercises={one: work for one, work in self.exercises.items() if one != exercise})


def moment() -> str:
    """Now, as it is written down."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def home() -> Path:
    """The folder that progress is kept in; it need not be there yet."""
    return Path(os.path.expanduser(os.environ.get("REGARD_HOME") or "~/.regard"))


class ProgressFile:
    """Progress on the disk. `tell` hears the sentence that is due when something is not as it should be."""

    def __init__(self, folder: Path | None = None, tell: Callable[[str], object] = lambda sentence: None) -> None:
        self.folder = home() if folder is None else folder
        self.path, self.backup = self.folder / NAME, self.folder / BACKUP
        self._tell, self._told = tell, False

    def read(self) -> Progress:
        """What is there; nothing yet is no progress. Never raises: what cannot be read is told."""
        try:
            return _parsed(self.path)
        except AbsentFileError:
            return Progress()
        except (FileError, _SenselessError):
            return self._do(self._rescued, self._backed_up)

    def change(self, edit: Callable[[Progress], Progress]) -> Progress:
        """Read, edit and write as one step, and give what came out. Where it cannot be written, that is told once."""

        def write() -> Progress:
            before = self._rescued()
            after = edit(before)
            if after != before:
                self._write(after)
            return after

        return self._do(write, lambda: edit(self.read()))

    @property
    def is_kept(self) -> bool:
        """Whether the folder took everything so far."""
        return not self._told

    def checked(self, exercise: str, passed: bool) -> Progress:
        """Remember one more check of an exercise."""
        return self.change(lambda now: now.with_work(exercise, now.work(exercise).checked(passed)))

    def forget_all(self) -> Path | None:
        """Begin anew; the old progress stays under the name that is given back, None where there was none."""
        with self._alone():
            return _moved_aside(self.path, "before-reset") if self.path.exists() else None

    def _do(self, act: Callable[[], Progress], instead: Callable[[], Progress]) -> Progress:
        """`act` while no other writer does; where the folder does not let us, say so once, and do it `instead`."""
        try:
            with self._alone():
                return act()
        except (FileError, TooLargeError) as error:
            if not self._told:
                self._told = True
                self._tell(say("progress-not-kept", reason=error.text()))
            return instead()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only writer. Where a drive has no locks, do without. FileError where the folder refuses."""
        path = self.folder / LOCK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refusal(error, path, 0) from error
        descriptor = open_lock(path)
        try:
            _wait_for(descriptor, path)
            for left in self.folder.glob(f".{Path(NAME).stem}*"):  # by writers that were killed
                left.unlink(missing_ok=True)
            yield
        except OSError as error:
            raise refusal(error, self.path, 0) from error
        finally:
            os.close(descriptor)  # and with it the lock

    def _rescued(self) -> Progress:
        """What is there; where it makes no sense, it is moved aside, and the backup takes its place."""
        try:
            return _parsed(self.path)
        except AbsentFileError:
            return Progress()
        except _SenselessError as error:
            aside = _moved_aside(self.path, error.kind)
            kept = self._backed_up()
            self._write(kept)
            then = say("progress-then-backup" if kept != Progress() else "progress-then-anew")
            self._tell(say(f"progress-{error.kind}", path=str(self.path), aside=aside.name, then=then))
            return kept

    def _backed_up(self) -> Progress:
        try:
            return _parsed(self.backup)
        except (FileError, _SenselessError):
            return Progress()

    def _write(self, progress: Progress) -> None:
        """First what is there as the backup, then the new: at every moment one of them is whole."""
        with suppress(AbsentFileError):
            _write_synced(self.backup, read_file(self.path, most=LARGEST))
        content = json.dumps({"version": VERSION, **asdict(progress)}, ensure_ascii=False, indent=1) + "\n"
        _write_synced(self.path, content.encode())


# --- the file's content ------------------------------------------------------------------------------------


class _SenselessError(Exception):
    """A file that holds no progress: `broken`, or written by a `newer` regard."""

    def __init__(self, kind: Literal["broken", "newer"]) -> None:
        super().__init__(kind)
        self.kind = kind


def _parsed(path: Path) -> Progress:
    """The progress in a file. Raises FileError, or _SenselessError."""
    try:
        content = read_file(path, most=LARGEST)
    except FileError as error:
        if error.key == "file-too-large":
            raise _SenselessError("broken") from error
        raise
    try:
        told = json.loads(content)
        if type(told["version"]) is int and told["version"] > VERSION:
            raise _SenselessError("newer")
        _require(told["version"] == VERSION)
        works = {one: _work(value) for one, value in told["exercises"].items()}
        return Progress(works, {one: _card(value) for one, value in told["questions"].items()})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _SenselessError("broken") from None


def _work(value: Any) -> Work:
    work = Work(**{name: value[name] for name in Work.__dataclass_fields__})
    if work.passed_at is not None:
        datetime.fromisoformat(work.passed_at)
    _require(all(type(count) is int and count >= 0 for count in (work.attempts, work.hints)))
    _require(type(work.gave_up) is bool)
    return work


def _card(value: Any) -> Card:
    card = Card(**{name: value[name] for name in Card.__dataclass_fields__})
    _require(type(card.box) is int and card.box >= 0 and card.rated in RATINGS)
    date.fromisoformat(card.due)
    datetime.fromisoformat(card.at)
    return card


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


# --- on the disk -------------------------------------------------------------------------------------------


def _wait_for(descriptor: int, path: Path) -> None:
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            return try_lock(descriptor)
        except BlockingIOError as error:
            if time.monotonic() > patience:
                raise FileError("progress-busy", path=str(path), seconds=PATIENCE) from error
            time.sleep(0.02)
        except OSError:  # a drive without locks
            return None


def _write_synced(path: Path, content: bytes) -> None:
    def write(aside: Path) -> None:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    write_aside(path, write, need=len(content))


def _moved_aside(path: Path, why: str) -> Path:
    """Another name for a file, which nothing has yet."""
    day = datetime.now().strftime("%Y-%m-%d")
    for n in range(1, 1000):
        aside = path.with_name(f"{path.stem}.{why}-{day}-{n}.json")
        if not aside.exists():
            break
    os.replace(path, aside)
    return aside
