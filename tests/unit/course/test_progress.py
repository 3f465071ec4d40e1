"""Progress on the disk: whole at every moment, one writer at a time, and never lost without a word."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course import progress as module
from regard.course.progress import BACKUP, LARGEST, NAME, Card, Progress, ProgressFile, Work, home
from regard.messages import speaking

WORK = Work(passed_at="2026-01-02T03:04:05+00:00", attempts=3, hints=1)
CARD = Card(box=2, due="2026-01-05", rated="good", at="2026-01-02T03:04:05+00:00")


def opened(folder: Path) -> tuple[ProgressFile, list[str]]:
    told: list[str] = []
    return ProgressFile(folder, told.append), told


def one_more(progress: Progress) -> Progress:
    return progress.with_work("softmax", progress.work("softmax").checked(passed=False))


def attempts(folder: Path) -> int:
    return ProgressFile(folder).read().work("softmax").attempts


def test_what_is_written_is_read(tmp_path: Path) -> None:
    book, told = opened(tmp_path / "not" / "there yet")
    assert book.read() == Progress()
    book.change(lambda now: now.with_work("softmax", WORK).with_card("why", CARD))
    assert ProgressFile(book.folder).read() == Progress({"softmax": WORK}, {"why": CARD})
    assert json.loads(book.path.read_text())["version"] == 1
    book.change(lambda now: now.without("softmax"))
    assert ProgressFile(book.folder).read() == Progress({}, {"why": CARD})
    assert not told


def test_the_first_pass_is_the_one_that_counts() -> None:
    failed = Work().checked(passed=False)
    passed = failed.checked(passed=True)
    assert (failed.passed_at, failed.attempts) == (None, 1)
    assert passed.passed_at is not None
    later = replace(passed, passed_at="2026-01-01T00:00:00+00:00").checked(passed=False)
    assert (later.passed_at, later.attempts) == ("2026-01-01T00:00:00+00:00", 3)


def test_the_backup_is_one_step_behind(tmp_path: Path) -> None:
    book, _ = opened(tmp_path)
    for _ in range(3):
        book.change(one_more)
    assert json.loads((tmp_path / BACKUP).read_text())["exercises"]["softmax"]["attempts"] == 2
    before = book.path.stat().st_mtime_ns
    book.change(lambda now: now)  # nothing new, nothing written
    assert book.path.stat().st_mtime_ns == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [BACKUP, NAME, "progress.lock"]


GOOD = {"version": 1, "exercises": {"softmax": vars(WORK)}, "questions": {"why": vars(CARD)}}
BROKEN = {
    "nothing": b"",
    "half": json.dumps(GOOD).encode()[:40],
    "no UTF-8": b"\xff\xfe{}",
    "a list": b"[]",
    "a number": b"7",
    "no version": b'{"exercises": {}, "questions": {}}',
    "version true": b'{"version": true, "exercises": [], "questions": {}}',
    "version 0": b'{"version": 0, "exercises": {}, "questions": {}}',
    "deep": b"[" * 100_000,
    "long": b" " * (LARGEST + 1),
    "a negative count": json.dumps({**GOOD, "exercises": {"softmax": {**vars(WORK), "attempts": -1}}}).encode(),
    "a day that is none": json.dumps({**GOOD, "questions": {"why": {**vars(CARD), "due": "2026-02-30"}}}).encode(),
    "a rating that is none": json.dumps({**GOOD, "questions": {"why": {**vars(CARD), "rated": "great"}}}).encode(),
    "a field too few": json.dumps({**GOOD, "exercises": {"softmax": {}}}).encode(),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("writes", [True, False])
def test_a_broken_file_is_kept_aside_and_the_backup_taken(tmp_path: Path, content: bytes, writes: bool) -> None:
    book, told = opened(tmp_path)
    for _ in range(3):
        book.change(one_more)
    book.path.write_bytes(content)
    found = book.change(one_more) if writes else book.read()
    assert found.work("softmax").attempts == 2 + writes
    assert attempts(tmp_path) == 2 + writes
    (aside,) = tmp_path.glob("progress.broken-*.json")
    assert aside.read_bytes() == content
    (sentence,) = told
    assert aside.name in sentence
    assert "going on from the backup" in sentence


def test_a_broken_file_and_a_broken_backup_begin_anew(tmp_path: Path) -> None:
    book, told = opened(tmp_path)
    for content in (b"{", b"}"):
        book.path.write_bytes(content)
        book.backup.write_bytes(b"[")
        with speaking("zh"):
            assert book.read() == Progress()
    kept = sorted(path.read_bytes() for path in tmp_path.glob("progress.broken-*.json"))
    assert kept == [b"{", b"}"]
    assert all("没有备份" in sentence for sentence in told)
    assert len(told) == 2


def test_a_newer_file_is_not_lost(tmp_path: Path) -> None:
    book, told = opened(tmp_path)
    book.change(one_more)
    newer = b'{"version": 2, "stars": 5}'
    book.path.write_bytes(newer)
    assert book.read() == Progress()  # there is no backup of a first write
    (aside,) = tmp_path.glob("progress.newer-*.json")
    assert aside.read_bytes() == newer
    assert "newer regard" in told[0]


@pytest.fixture
def powerless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the refusal is played."""

    given = os.open

    def refuse(path: Path, flags: int, *rest: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(13, "Permission denied")
        return given(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)


def test_where_nothing_can_be_written_it_is_told_once_and_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    opened(tmp_path)[0].change(one_more)
    request.getfixturevalue("powerless")
    book, told = opened(tmp_path)
    assert book.read().work("softmax").attempts == 1
    assert not told
    assert book.change(one_more).work("softmax").attempts == 2
    assert book.change(one_more).work("softmax").attempts == 2
    assert len(told) == 1
    assert "Permission denied" in told[0]
    assert "REGARD_HOME" in told[0]


def test_broken_and_read_only_goes_on_from_the_backup(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for _ in range(2):
        opened(tmp_path)[0].change(one_more)
    (tmp_path / NAME).write_bytes(b"{")
    request.getfixturevalue("powerless")
    book, told = opened(tmp_path)
    assert book.change(one_more).work("softmax").attempts == 2
    assert len(told) == 1
    assert (tmp_path / NAME).read_bytes() == b"{"


@pytest.mark.parametrize("name", [NAME, BACKUP])
def test_a_folder_in_the_place_of_the_file(tmp_path: Path, name: str) -> None:
    book, told = opened(tmp_path)
    book.change(one_more)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()
    book.change(one_more)
    assert len(told) == 1


def test_a_home_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "file"))
    told: list[str] = []
    assert ProgressFile(tell=told.append).change(one_more).work("softmax").attempts == 1
    assert len(told) == 1


def test_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REGARD_HOME", "~/elsewhere")
    assert home() == tmp_path / "elsewhere"
    monkeypatch.setenv("REGARD_HOME", "")
    assert home() == tmp_path / ".regard"


def test_a_writer_that_never_ends_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    book, told = opened(tmp_path)
    with book._alone():
        assert opened(tmp_path)[0].read() == Progress()
        second, told = opened(tmp_path)
        second.change(one_more)
    assert "another regard" in told[0]


def test_a_drive_without_locks_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lockless(descriptor: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(module, "try_lock", lockless)
    book, told = opened(tmp_path)
    book.change(one_more)
    assert (attempts(tmp_path), told) == (1, [])


def test_no_write_of_many_writers_is_lost(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from regard.course.progress import *\n"
        "one_more = lambda now: now.with_work('softmax', now.work('softmax').checked(False))\n"
        "for _ in range(25): ProgressFile(Path(sys.argv[1])).change(one_more)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert attempts(tmp_path) == 100


def test_forgetting_all_keeps_a_copy(tmp_path: Path) -> None:
    book, _ = opened(tmp_path)
    assert book.forget_all() is None
    book.change(one_more)
    content = book.path.read_bytes()
    kept = book.forget_all()
    assert kept is not None
    assert kept.read_bytes() == content
    assert book.read() == Progress()


def test_what_killed_writers_left_is_swept(tmp_path: Path) -> None:
    (tmp_path / f".{NAME}.0a1b2c3d").write_bytes(b"{")
    (tmp_path / f".{BACKUP}.0a1b2c3d").write_bytes(b"{")
    opened(tmp_path)[0].change(one_more)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


works = st.builds(
    Work,
    passed_at=st.none() | st.datetimes().map(lambda at: at.isoformat(timespec="seconds")),
    attempts=st.integers(0, 10**6),
    hints=st.integers(0, 3),
    gave_up=st.booleans(),
)


@given(st.dictionaries(st.text(max_size=8), works, max_size=4))
def test_any_progress_comes_back(tmp_path_factory: pytest.TempPathFactory, given: dict[str, Work]) -> None:
    folder = tmp_path_factory.mktemp("home")
    ProgressFile(folder).change(lambda now: Progress(given))
    assert ProgressFile(folder).read() == Progress(given)
