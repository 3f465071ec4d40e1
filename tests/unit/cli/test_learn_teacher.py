"""`regard learn new`, `verify` and `grade`, and the commands for learners with a teacher's folder."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import Run

from regard.course import check, own_exercises
from regard.course.catalogue import exercise
from regard.course.progress import ProgressFile

TEMPLATE = Path(own_exercises.__file__).parents[1] / "exercises/template"


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


@pytest.fixture
def folder(desk: Path) -> Path:
    shutil.copytree(TEMPLATE, desk / "mean-pooling", ignore=shutil.ignore_patterns("__pycache__"))
    return desk / "mean-pooling"


# --- new and verify ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_new_exercise_is_written_and_verified(run: Run, lang: str) -> None:
    code, out, err = run("learn", "new", "mine", "--dir", "some/place", "--lang", lang)
    assert (code, out) == (0, "")
    assert "regard learn verify some/place/mine" in err
    code, out, err = run("learn", "verify", "some/place/mine", "--lang", lang)
    assert code == 0
    assert {line[0] for line in out.splitlines()} == {"✓"}
    assert "regard learn grade some/place/mine" in err


def test_new_as_json_and_its_mistakes(run: Run, desk: Path) -> None:
    printed = json.loads(run("learn", "new", "mine", "--json").out)
    assert all((desk / file).is_file() for file in printed["files"])
    for words, message in (
        ([], "which name"),
        (["mine"], "not empty"),
        (["a/b"], "--dir"),
        (["softmax"], "already"),
        (["平均"], "letters"),
    ):
        code, _, err = run("learn", "new", *words)
        assert (code, message in err) == (2, True), err


def test_verify_reports_what_is_wrong(run: Run, folder: Path) -> None:
    (folder / "stub.py").write_bytes((folder / "solution.py").read_bytes())
    code, out, err = run("learn", "verify", "mean-pooling")
    assert code == 1
    assert "✗ stub.py fails" in out
    assert "Still to fix: 1" in err
    printed = json.loads(run("learn", "verify", "mean-pooling", "--json").out)
    assert printed["right"] is False
    assert [one["problem"] is None for one in printed["findings"]].count(False) == 1
    assert run("learn", "verify").code == 2
    assert run("learn", "verify", "none").code == 3


# --- learners ----------------------------------------------------------------------------------------------


def test_a_learner_works_with_the_folder(run: Run, folder: Path, desk: Path) -> None:
    code, out, err = run("learn", "start", "./mean-pooling")
    assert (code, "Mean pooling" in out) == (0, True)
    assert "regard learn check ./mean-pooling mean-pooling.py" in err
    code, out, _ = run("learn", "check", "./mean-pooling")
    assert code == 1
    assert "regard learn hint ./mean-pooling" in out
    assert "Hint 1 of 3" in run("learn", "hint", "./mean-pooling").out
    assert "Hint 2 of 3" in run("learn", "hint", "./mean-pooling").out
    assert run("learn", "solution", "./mean-pooling").code == 2
    shutil.copy(folder / "solution.py", desk / "mean-pooling.py")
    assert run("learn", "check", "./mean-pooling").code == 0
    assert ProgressFile().read().passed("own.mean-pooling")
    assert "count" in run("learn", "solution", "./mean-pooling").out
    assert "own.mean-pooling, passed" in run("learn").out
    assert run("learn", "reset", "./mean-pooling").code == 0
    assert not ProgressFile().read().passed("own.mean-pooling")


def test_a_folder_without_a_separator_is_explained(run: Run, folder: Path) -> None:
    code, _, err = run("learn", "check", "mean-pooling")
    assert (code, "write ./mean-pooling" in err) == (2, True)


def test_a_notebook_checks_it_too(folder: Path, tmp_path: Path) -> None:
    namespace: dict[str, object] = {}
    path = folder / "solution.py"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    assert check(str(folder), namespace["mean_pooling"]).passed


# --- grade -------------------------------------------------------------------------------------------------


@pytest.fixture
def answers(desk: Path) -> Path:
    (desk / "answers").mkdir()
    (desk / "answers" / "anna.py").write_text(exercise("softmax").solution, encoding="utf-8")
    (desk / "answers" / "=ben.py").write_text(exercise("softmax").stub, encoding="utf-8")
    (desk / "answers" / "王小明.py").write_text("def softmax(", encoding="utf-8")
    return desk / "answers"


def test_a_class_is_graded(run: Run, answers: Path, desk: Path) -> None:
    code, out, err = run("learn", "grade", "softmax", "answers", "--csv", "table.csv")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [["✗", "=ben.py"], ["✓", "anna.py"], ["✗", "王小明.py"]]
    assert "Passed: 1 of 3" in err
    lines = (desk / "table.csv").read_text(encoding="utf-8-sig").splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("'=ben.py,failed,0,")
    assert ProgressFile().read().exercises == {}, "the answers of a class are not the teacher's progress"


def test_a_class_as_json_with_a_seed(run: Run, answers: Path) -> None:
    printed = json.loads(run("learn", "grade", "softmax", "answers", "--seed", "5", "--json").out)
    assert (printed["id"], printed["seed"]) == ("softmax", 5)
    assert [row["verdict"] for row in printed["answers"]] == ["failed", "passed", "failed"]
    assert printed["answers"][0]["mistake"] == "not-written"


def test_a_class_is_graded_with_a_teachers_exercise(run: Run, folder: Path, desk: Path) -> None:
    (desk / "answers" / "dora").mkdir(parents=True)
    shutil.copy(folder / "right" / "loop.py", desk / "answers" / "dora" / "mean-pooling.py")
    code, out, _ = run("learn", "grade", "./mean-pooling", "answers")
    assert (code, out.split()[:3]) == (0, ["✓", "dora/mean-pooling.py", "6/6"])


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "which exercise"),
        (["softmax"], 2, "which folder"),
        (["softmax", "none"], 3, "no folder none"),
        (["softmax", "."], 3, "no answers"),
        (["softmax", ".", "--seed", "x"], 2, "--seed"),
        (["softmax", ".", "--csv", "no/folder/t.csv"], 3, "no/folder"),
    ],
)
def test_plain_mistakes(run: Run, words: list[str], code: int, message: str) -> None:
    found, _, err = run("learn", "grade", *words)
    assert (found, message in err) == (code, True), err
