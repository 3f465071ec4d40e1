"""`regard learn export` and `import`: what the command prints."""

import json
from pathlib import Path

import pytest
from command_line import Run

from regard.course.progress import ProgressFile


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_export_and_import(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ProgressFile().checked("softmax", passed=True)
    code, out, err = run("learn", "export", "mine.json")
    assert (code, out) == (0, "")
    assert "regard learn import mine.json" in err
    monkeypatch.setenv("REGARD_HOME", str(desk / "other"))
    code, out, err = run("learn", "import", "mine.json", "--lang", "zh")
    assert (code, out) == (0, "")
    assert "1 道练习" in err
    assert "before-import" in err
    assert ProgressFile().read().passed("softmax")
    assert "had all of it already" in run("learn", "import", "mine.json").err


def test_both_as_json(run: Run) -> None:
    ProgressFile().checked("softmax", passed=True)
    printed = json.loads(run("learn", "export", "mine.json", "--json").out)
    assert printed == {"file": "mine.json", "exercises": 1, "questions": 0, "lessons": 0, "answers": 0}
    printed = json.loads(run("learn", "import", "mine.json", "--json").out)
    assert (printed["backup"], printed["unknown"], printed["answers_written"]) == (None, [], 0)


def test_unknown_exercises_are_named(run: Run, desk: Path) -> None:
    ProgressFile().checked("from-the-future", passed=True)
    run("learn", "export", "mine.json")
    err = run("learn", "import", "mine.json").err
    assert "from-the-future" in err
    assert "unknown-" in err


@pytest.mark.parametrize("command", ["export", "import"])
def test_the_file_is_required(run: Run, command: str) -> None:
    code, _, err = run("learn", command)
    assert code == 2
    assert f"regard learn {command} progress.json" in err


def test_a_missing_or_foreign_file(run: Run, desk: Path) -> None:
    assert run("learn", "import", "none.json").code == 3
    (desk / "other.json").write_text("{}")
    code, _, err = run("learn", "import", "other.json")
    assert (code, "was not written by regard learn export" in err) == (3, True)
    assert run("learn", "export", "no/folder/x.json").code == 3
