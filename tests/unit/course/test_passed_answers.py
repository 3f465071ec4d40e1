"""Passed programs on disk: the newest is kept, and a failed write is reported."""

from pathlib import Path

import pytest

from regard.course import check
from regard.course.catalogue import exercise
from regard.course.passed_answers import PassedAnswers


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
