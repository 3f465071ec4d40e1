"""Passed programs on disk: the newest is kept, and a failed write is reported.

Export and import: what is written is read back, merging loses nothing, and hostile files change nothing.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.course import check
from regard.course.catalogue import exercise
from regard.course.passed_answers import (
    FORMAT,
    IMPORTED,
    PassedAnswers,
    Transfer,
    collect,
    import_file,
    merged,
    read_transfer,
)
from regard.course.progress import NAME, Card, ExerciseProgress, Progress, ProgressFile, as_data
from regard.errors import FileError


def test_the_newest_program_is_kept(tmp_path: Path) -> None:
    passed = PassedAnswers(tmp_path)
    assert passed.read("softmax") is None
    passed.keep("softmax", "first")
    passed.keep("softmax", "second 二")
    assert passed.read("softmax") == "second 二".encode()
    assert [path.name for path in passed.folder.iterdir()] == ["softmax.py"]


def test_forgotten_programs_are_renamed(tmp_path: Path) -> None:
    passed = PassedAnswers(tmp_path)
    passed.forget("softmax")
    passed.forget_all()
    for text in ("first", "second"):
        passed.keep("softmax", text)
        passed.forget("softmax")
    assert passed.read("softmax") is None
    assert sorted(path.read_text() for path in passed.folder.iterdir()) == ["first", "second"]
    passed.keep("softmax", "third")
    passed.forget_all()
    assert passed.read("softmax") is None


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    PassedAnswers(tmp_path / "file", said.append).keep("softmax", "text")
    assert len(said) == 1
    assert "softmax" in said[0]


def test_a_pass_in_a_notebook_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    namespace: dict[str, object] = {}
    path = tmp_path / "cell.py"
    path.write_text(exercise("causal-mask").solution, encoding="utf-8")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    assert check("causal-mask", namespace["create_causal_mask"]).passed
    kept = PassedAnswers().read("causal-mask")
    assert kept is not None
    assert b"def create_causal_mask" in kept


EARLY, LATE = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"
WORK = ExerciseProgress(passed_at=EARLY, attempts=3, hints=1, worked_at=LATE)
CARD = Card(box=2, due="2026-01-05", rated="good", at=EARLY)
ALL = Progress({"softmax": WORK, "own.mean": WORK}, {"why-sqrt-d-k": CARD}, {"masks": EARLY})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def fail(message: str) -> None:
    raise AssertionError(message)


def written(path: Path, **changes: Any) -> Path:
    """An exported file with some fields replaced."""
    data = {"format": FORMAT, "version": 1, "progress": as_data(ALL), "answers": {"softmax.py": "x = 1\n"}}
    path.write_text(json.dumps(data | changes), encoding="utf-8")
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- there and back ----------------------------------------------------------------------------------------


def test_an_export_is_imported_elsewhere_completely(home: Path, tmp_path: Path) -> None:
    ProgressFile().change(lambda now: ALL)
    PassedAnswers().keep("softmax", "def softmax(): 好\n")
    PassedAnswers().keep("by-hand", "seed = 1\n", ".toml")
    PassedAnswers().keep("own.mean", "x = 2\n")
    before = collect(fail)
    (tmp_path / "out.json").write_bytes(before.content())
    shutil.rmtree(home)
    done = import_file(tmp_path / "out.json")
    assert collect(fail) == before
    assert (done.answers_written, done.unknown, done.unknown_file) == (3, Transfer(), None)
    again = import_file(tmp_path / "out.json")
    assert (again.answers_written, again.backup) == (0, None)
    assert collect(fail) == before


def test_answers_that_were_set_aside_are_not_exported() -> None:
    PassedAnswers().keep("softmax", "old")
    PassedAnswers().forget("softmax")
    PassedAnswers().keep("softmax", "new")
    assert collect(fail).answers == {"softmax.py": "new"}


def test_an_answer_that_is_not_text_is_reported(home: Path) -> None:
    PassedAnswers().keep("softmax", "x")
    (home / "passed" / "rope.py").write_bytes(b"\xff")
    said: list[str] = []
    assert list(collect(said.append).answers) == ["softmax.py"]
    assert "rope.py" in said[0]


# --- merging -----------------------------------------------------------------------------------------------


def test_merging_keeps_the_best_of_both() -> None:
    mine = ExerciseProgress(passed_at=LATE, attempts=9, gave_up=True, worked_at=EARLY)
    theirs = ExerciseProgress(passed_at=EARLY, attempts=2, hints=3, worked_at=LATE)
    newer = Card(box=0, due="2026-03-01", rated="again", at=LATE)
    both = merged(
        Progress({"softmax": mine, "rope": mine}, {"why": CARD, "a": CARD}, {"masks": EARLY}),
        Progress({"softmax": theirs, "gqa": theirs}, {"why": newer, "b": newer}, {"masks": LATE, "heads": EARLY}),
    )
    assert both.exercises["softmax"] == ExerciseProgress(
        passed_at=EARLY, attempts=9, hints=3, gave_up=True, worked_at=LATE
    )
    assert both.exercises.keys() == {"softmax", "rope", "gqa"}
    assert both.questions == {"why": newer, "a": CARD, "b": newer}
    assert both.lessons == {"masks": LATE, "heads": EARLY}


def test_merging_is_the_same_in_any_order_and_twice() -> None:
    other = Progress({"softmax": ExerciseProgress(attempts=1, worked_at=EARLY)}, {}, {"masks": LATE})
    both = merged(ALL, other)
    assert both == merged(other, ALL) == merged(both, other) == merged(both, ALL)


def test_times_without_a_zone_can_be_compared() -> None:
    naive = Progress({"softmax": ExerciseProgress(passed_at="2025-12-31", worked_at="2025-12-31")})
    assert merged(ALL, naive).exercises["softmax"].passed_at == "2025-12-31"


def test_a_different_answer_is_kept_beside_the_own_one(home: Path, tmp_path: Path) -> None:
    PassedAnswers().keep("softmax", "mine")
    for _ in range(2):
        import_file(written(tmp_path / "in.json"))
    assert PassedAnswers().read("softmax") == b"mine"
    assert [path.read_text() for path in (home / "passed" / IMPORTED).iterdir()] == ["x = 1\n"]


def test_the_progress_before_is_kept(home: Path, tmp_path: Path) -> None:
    ProgressFile().checked("rope", passed=False)
    before = (home / NAME).read_bytes()
    done = import_file(written(tmp_path / "in.json"))
    assert done.backup is not None
    assert done.backup.read_bytes() == before
    assert {"rope", "softmax"} <= ProgressFile().read().exercises.keys()


# --- what is unknown ---------------------------------------------------------------------------------------


def test_unknown_names_are_kept_aside_and_can_be_imported_later(home: Path, tmp_path: Path) -> None:
    progress = Progress({"from-the-future": WORK, "softmax": WORK}, {"why-not": CARD}, {"lesson-99": EARLY})
    answers = {"from-the-future.py": "a", "softmax.toml": "a code exercise has no sheet", "softmax.py": "b"}
    done = import_file(written(tmp_path / "in.json", progress=as_data(progress), answers=answers))
    assert ProgressFile().read() == Progress({"softmax": WORK})
    assert done.unknown_file is not None
    kept = read_transfer(done.unknown_file)
    assert kept.progress.exercises.keys() == {"from-the-future"}
    assert kept.answers.keys() == {"from-the-future.py", "softmax.toml"}
    import_file(tmp_path / "in.json")
    assert len(list(home.glob("unknown-*"))) == 1


OUTSIDE = ["../evil.py", "/etc/evil.py", "a/b.py", "..", "softmax.py/", "own.../x.py", "own.a/../../b.py", "own.A.py"]
ODD = ["nul\0.py", "own..py", "C:\\evil.py", "softmax.PY", "own.x.exe"]


@pytest.mark.parametrize("name", OUTSIDE + ODD)
def test_no_name_leaves_the_folder(home: Path, tmp_path: Path, name: str) -> None:
    done = import_file(written(tmp_path / "in.json", answers={name: "evil"}))
    assert done.unknown.answers == {name: "evil"}
    allowed = {"progress.json", "progress.lock", "progress.before", "unknown"}
    assert {path.split("-")[0] for path in files(home)} <= allowed
    assert {path.name for path in tmp_path.iterdir()} == {"home", "in.json"}


# --- damaged and hostile files -----------------------------------------------------------------------------

BROKEN: dict[str, Any] = {
    "progress is a list": {"progress": []},
    "no version": {"version": None},
    "version true": {"version": True},
    "a count below 0": {"progress": {"version": 1, "exercises": {"softmax": vars(WORK) | {"attempts": -1}}}},
    "no questions": {"progress": {"version": 1, "exercises": {}}},
    "a time that is none": {"progress": as_data(Progress(lessons={"masks": "yesterday"}))},
    "a time with a control sign": {"progress": as_data(Progress(lessons={"masks": "2026-01-01\x1b10:00:00"}))},
    "half a character in a time": {"progress": as_data(Progress(lessons={"masks": "2026-01-01\ud80010:00:00"}))},
    "year 1": {"progress": as_data(Progress(lessons={"masks": "0001-01-01T00:00:00"}))},
    "answers is a list": {"answers": ["softmax.py"]},
    "an answer is a number": {"answers": {"softmax.py": 1}},
    "half a character in an answer": {"answers": {"softmax.py": "\ud800"}},
    "half a character in a name": {"answers": {"\ud800.py": ""}},
    "an empty name": {"answers": {"": ""}},
    "a long name": {"answers": {"a" * 101: ""}},
    "a long answer": {"answers": {"softmax.py": "x" * (2**22 + 1)}},
    "too many names": {"answers": {f"a{n}.py": "" for n in range(10_001)}},
    "an infinite number": {"answers": {"softmax.py": float("inf")}},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_file_is_refused_and_nothing_changes(home: Path, tmp_path: Path, name: str) -> None:
    ProgressFile().checked("rope", passed=True)
    before = files(home)
    with pytest.raises(FileError, match="damaged"):
        import_file(written(tmp_path / "in.json", **BROKEN[name]))
    assert files(home) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b"{", "damaged"),
        (b"[" * 100_000, "damaged"),
        (b"\xff\xfe", "damaged"),
        (b'{"format": "regard-progress", "format": "x"}', "damaged"),
        (b"[]", "not written by"),
        (b'{"format": "other"}', "not written by"),
        (b'{"format": "regard-progress", "version": 2}', "newer"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "in.json").write_bytes(content)
    with pytest.raises(FileError, match=message):
        import_file(tmp_path / "in.json")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "in.json").open("wb") as file:
        file.truncate(2**25 + 1)
    with pytest.raises(FileError, match="32"):
        import_file(tmp_path / "in.json")
