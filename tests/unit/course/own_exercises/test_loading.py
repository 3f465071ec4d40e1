"""Exercises from a folder: found by path only, complete or refused with the file and what is wrong in it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.course.catalogue import exercise
from regard.course.own_exercises.loading import find_exercise, load_folder, right_answers
from regard.errors import ArgumentError, FileError, UnknownNameError

Change = Callable[[str, str, str], None]


def test_a_folder_is_an_exercise_with_a_key_of_its_own(folder: Path) -> None:
    found = load_folder(str(folder))
    assert (found.id, found.key, found.argument) == ("mean-pooling", "own.mean-pooling", str(folder))
    assert (found.title.zh, found.kind, found.track) == ("平均池化", "code", "numpy")
    assert len(found.hints["zh"]) == 3
    assert list(right_answers(str(folder))) == ["loop.py"]


def test_a_folder_runs_only_when_it_is_named_by_a_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert find_exercise("./mean-pooling").id == find_exercise("mean-pooling/").id == "mean-pooling"
    (folder / "grader.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(ArgumentError, match=r"\./mean-pooling"):
        find_exercise("mean-pooling")
    with pytest.raises(UnknownNameError):
        find_exercise("no-such-exercise")
    monkeypatch.chdir(folder)
    (folder / "softmax").mkdir()
    assert find_exercise("softmax") is exercise("softmax")


def test_one_language_is_enough(folder: Path) -> None:
    (folder / "task.toml").write_text(
        '[exercise]\nkind = "code"\ntrack = "numpy"\ntitle = { zh = "平均" }\n[task]\nzh = "写出来"\n'
        '[hints]\nzh = ["提示"]\n[mistakes]\nno-mask = { zh = "没有掩码" }\n',
        encoding="utf-8",
    )
    found = load_folder(str(folder))
    assert found.title.en == found.title.zh == "平均"
    assert (found.task.en, found.hints["en"], found.mistakes["no-mask"].en) == ("写出来", ("提示",), "没有掩码")


@pytest.mark.parametrize("name", ["Mean_Pooling", "mean pooling"])
def test_the_folder_gives_the_name(folder: Path, name: str) -> None:
    assert load_folder(str(folder.rename(folder.with_name(name)))).id == "mean-pooling"


@pytest.mark.parametrize(("name", "message"), [("softmax", "already"), ("平均", "letters"), ("a" * 61, "letters")])
def test_names_that_are_taken_or_invalid(folder: Path, name: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        load_folder(str(folder.rename(folder.with_name(name))))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("task.toml", "[task]", "[taskk]", "task.toml lacks task"),
        ("task.toml", "[hints]", "[hint]", "lacks hints"),
        ("task.toml", 'kind = "code"', 'kind = "poem"', "code, bug, sheet"),
        ("task.toml", 'track = "numpy"', "", "track"),
        ("task.toml", "title = {", "title = {{", "not valid TOML"),
        ("task.toml", 'no-mask = { en = "padding', 'no-mask = { fr = "padding', "mistakes.no-mask"),
        ("grader.py", "GRADER = ", "OTHER = ", "GRADER = Grader"),
        ("grader.py", "MISTAKES = (", "MISTAKES = 1 / 0, (", "ZeroDivisionError"),
        ("grader.py", "def cases", "def cases(", "SyntaxError"),
        ("grader.py", "import numpy as np", "import numpy as np\nraise SystemExit(3)", "line 6: SystemExit"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, change: Change, name: str, old: str, new: str, message: str) -> None:
    if message == "mistakes.no-mask":
        change("task.toml", ', zh = "平均值里算进了填充；请用 mask 把它去掉"', "")
    change(name, old, new)
    with pytest.raises(FileError) as caught:
        load_folder(str(folder))
    assert message in caught.value.text("en")
    assert name in caught.value.text("zh")


@pytest.mark.parametrize("name", ["task.toml", "grader.py", "stub.py", "solution.py"])
def test_missing_special_and_linked_files_are_refused(folder: Path, name: str, tmp_path: Path) -> None:
    path = folder / name
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(FileError, match=name):
        load_folder(str(folder))
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="outside"):
        load_folder(str(folder))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileError, match="FIFO"):
        load_folder(str(folder))


def test_a_file_that_is_not_utf8(folder: Path) -> None:
    (folder / "stub.py").write_bytes(b"\xff")
    with pytest.raises(FileError, match="UTF-8"):
        load_folder(str(folder))
    with pytest.raises(FileError, match="no folder"):
        load_folder(str(folder / "none"))
