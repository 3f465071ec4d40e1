"""Progress on disk: atomic writes, one writer at a time, no silent loss."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.course import progress as module
from regard.course.progress import BACKUP, LARGEST, NAME, Card, ExerciseProgress, Progress, ProgressFile, home
from regard.messages import use_language

WORK = ExerciseProgress(passed_at="2026-01-02T03:04:05+00:00", attempts=3, hints=1)
CARD = Card(box=2, due="2026-01-05", rated="good", at="2026-01-02T03:04:05+00:00")


def opened(folder: Path) -> tuple[ProgressFile, list[str]]:
    messages: list[str] = []
    return ProgressFile(folder, messages.append), messages


def one_more(progress: Progress) -> Progress:
    return progress.with_work("softmax", progress.work("softmax").checked(passed=False))


def attempts(folder: Path) -> int:
    return ProgressFile(folder).read().work("softmax").attempts


def test_a_saved_file_can_be_read(tmp_path: Path) -> None:
    progress_file, messages = opened(tmp_path / "not" / "there yet")
    assert progress_file.read() == Progress()
    progress_file.change(lambda now: now.with_work("softmax", WORK).with_card("why", CARD))
    assert ProgressFile(progress_file.folder).read() == Progress({"softmax": WORK}, {"why": CARD})
    assert json.loads(progress_file.path.read_text())["version"] == 1
    progress_file.change(lambda now: now.without("softmax"))
    assert ProgressFile(progress_file.folder).read() == Progress({}, {"why": CARD})
    assert not messages


def test_the_time_of_the_first_pass_is_kept() -> None:
    failed = ExerciseProgress().checked(passed=False)
    passed = failed.checked(passed=True)
    assert (failed.passed_at, failed.attempts) == (None, 1)
    assert passed.passed_at is not None
    later = replace(passed, passed_at="2026-01-01T00:00:00+00:00").checked(passed=False)
    assert (later.passed_at, later.attempts) == ("2026-01-01T00:00:00+00:00", 3)


def test_the_backup_is_the_previous_version(tmp_path: Path) -> None:
    progress_file, _ = opened(tmp_path)
    for _ in range(3):
        progress_file.change(one_more)
    assert json.loads((tmp_path / BACKUP).read_text())["exercises"]["softmax"]["attempts"] == 2
    before = progress_file.path.stat().st_mtime_ns
    progress_file.change(lambda now: now)  # nothing new, nothing written
    assert progress_file.path.stat().st_mtime_ns == before
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
def test_a_broken_file_is_renamed_and_the_backup_is_used(tmp_path: Path, content: bytes, writes: bool) -> None:
    progress_file, messages = opened(tmp_path)
    for _ in range(3):
        progress_file.change(one_more)
    progress_file.path.write_bytes(content)
    found = progress_file.change(one_more) if writes else progress_file.read()
    assert found.work("softmax").attempts == 2 + writes
    assert attempts(tmp_path) == 2 + writes
    (kept_copy,) = tmp_path.glob("progress.broken-*.json")
    assert kept_copy.read_bytes() == content
    (sentence,) = messages
    assert kept_copy.name in sentence
    assert "continuing from the backup" in sentence


def test_a_broken_file_and_backup_start_from_zero(tmp_path: Path) -> None:
    progress_file, messages = opened(tmp_path)
    for content in (b"{", b"}"):
        progress_file.path.write_bytes(content)
        progress_file.backup.write_bytes(b"[")
        with use_language("zh"):
            assert progress_file.read() == Progress()
    kept = sorted(path.read_bytes() for path in tmp_path.glob("progress.broken-*.json"))
    assert kept == [b"{", b"}"]
    assert all("没有备份" in sentence for sentence in messages)
    assert len(messages) == 2


def test_a_newer_file_is_kept(tmp_path: Path) -> None:
    progress_file, messages = opened(tmp_path)
    progress_file.change(one_more)
    newer = b'{"version": 2, "stars": 5}'
    progress_file.path.write_bytes(newer)
    assert progress_file.read() == Progress()  # there is no backup of a first write
    (kept_copy,) = tmp_path.glob("progress.newer-*.json")
    assert kept_copy.read_bytes() == newer
    assert "newer regard" in messages[0]


@pytest.fixture
def powerless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the refusal is simulated."""

    given = os.open

    def refuse(path: Path, flags: int, *rest: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(13, "Permission denied")
        return given(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)


def test_a_read_only_folder_is_reported_once_and_work_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    opened(tmp_path)[0].change(one_more)
    request.getfixturevalue("powerless")
    progress_file, messages = opened(tmp_path)
    assert progress_file.read().work("softmax").attempts == 1
    assert not messages
    assert progress_file.change(one_more).work("softmax").attempts == 2
    assert progress_file.change(one_more).work("softmax").attempts == 2
    assert len(messages) == 1
    assert "Permission denied" in messages[0]
    assert "REGARD_HOME" in messages[0]


def test_a_broken_read_only_file_falls_back_to_the_backup(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for _ in range(2):
        opened(tmp_path)[0].change(one_more)
    (tmp_path / NAME).write_bytes(b"{")
    request.getfixturevalue("powerless")
    progress_file, messages = opened(tmp_path)
    assert progress_file.change(one_more).work("softmax").attempts == 2
    assert len(messages) == 1
    assert (tmp_path / NAME).read_bytes() == b"{"


@pytest.mark.parametrize("name", [NAME, BACKUP])
def test_a_folder_in_place_of_the_file(tmp_path: Path, name: str) -> None:
    progress_file, messages = opened(tmp_path)
    progress_file.change(one_more)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()
    progress_file.change(one_more)
    assert len(messages) == 1


def test_a_home_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "file"))
    messages: list[str] = []
    assert ProgressFile(report=messages.append).change(one_more).work("softmax").attempts == 1
    assert len(messages) == 1


def test_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REGARD_HOME", "~/elsewhere")
    assert home() == tmp_path / "elsewhere"
    monkeypatch.setenv("REGARD_HOME", "")
    assert home() == tmp_path / ".regard"


def test_waiting_for_another_writer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT", 0.05)
    progress_file, messages = opened(tmp_path)
    with progress_file._locked():
        assert opened(tmp_path)[0].read() == Progress()
        second, messages = opened(tmp_path)
        second.change(one_more)
    assert "another regard" in messages[0]


def test_a_file_system_without_locks_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lockless(descriptor: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(module, "try_lock", lockless)
    progress_file, messages = opened(tmp_path)
    progress_file.change(one_more)
    assert (attempts(tmp_path), messages) == (1, [])


def test_no_write_of_many_writers_is_lost(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from regard.course.progress import *\n"
        "one_more = lambda now: now.with_work('softmax', now.work('softmax').checked(False))\n"
        "for _ in range(25): ProgressFile(Path(sys.argv[1])).change(one_more)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert attempts(tmp_path) == 100


def test_resetting_all_keeps_a_copy(tmp_path: Path) -> None:
    progress_file, _ = opened(tmp_path)
    assert progress_file.forget_all() is None
    progress_file.change(one_more)
    content = progress_file.path.read_bytes()
    kept = progress_file.forget_all()
    assert kept is not None
    assert kept.read_bytes() == content
    assert progress_file.read() == Progress()


def test_temporary_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    (tmp_path / f".{NAME}.0a1b2c3d").write_bytes(b"{")
    (tmp_path / f".{BACKUP}.0a1b2c3d").write_bytes(b"{")
    opened(tmp_path)[0].change(one_more)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


times = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9998, 12, 31))
works = st.builds(
    ExerciseProgress,
    passed_at=st.none() | times.map(lambda at: at.isoformat(timespec="seconds")),
    attempts=st.integers(0, 10**6),
    hints=st.integers(0, 3),
    gave_up=st.booleans(),
)


@given(st.dictionaries(st.text(max_size=8), works, max_size=4))
def test_any_progress_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, ExerciseProgress]
) -> None:
    folder = tmp_path_factory.mktemp("home")
    ProgressFile(folder).change(lambda now: Progress(given))
    assert ProgressFile(folder).read() == Progress(given)


def test_files_without_lessons_and_last_times_are_valid(tmp_path: Path) -> None:
    """As the first versions wrote them."""
    work = {"passed_at": None, "attempts": 2, "hints": 1, "gave_up": False}
    (tmp_path / NAME).write_text(json.dumps({"version": 1, "exercises": {"softmax": work}, "questions": {}}))
    said: list[str] = []
    progress = ProgressFile(tmp_path, said.append).read()
    assert (progress.work("softmax").attempts, progress.lessons, said) == (2, {}, [])


def test_every_way_to_work_is_timed() -> None:
    for work in (ExerciseProgress().checked(False), ExerciseProgress().hinted(2), ExerciseProgress().given_up()):
        assert work.worked_at is not None
    assert ExerciseProgress(hints=3).hinted(1).hints == 3
    assert "masks" in Progress().with_lesson("masks").lessons
