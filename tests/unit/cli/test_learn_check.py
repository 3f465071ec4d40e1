"""regard learn check: input, output, recorded progress and exit code. Most tests use a fake grader."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import Run

from regard.cli.learn import exercise_commands
from regard.course.catalogue import entries
from regard.course.exercise import Exercise
from regard.course.grading.verdict import Test, Verdict
from regard.course.progress import ProgressFile


def judged(exercise: Exercise, source: bytes, *, seed: int | None = None) -> Verdict:
    """An answer that contains the word right passes."""
    passed = b"right" in source
    tests = (Test("plain", passed, call="softmax(x)", expected="1", got="1" if passed else "2"),)
    return Verdict(
        exercise.id, passed, None if passed else "mistake", None if passed else "no scale", tests, seed=seed or 7
    )


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def grader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.course.grading.grader.grade", judged)


@pytest.mark.usefixtures("grader")
def test_the_exit_code_is_0_or_1_and_checks_are_recorded(run: Run, desk: Path) -> None:
    (desk / "mine.py").write_text("wrong")
    code, out, _ = run("learn", "check", "softmax", "mine.py")
    assert code == 1
    assert "no scale" in out
    assert not ProgressFile().read().passed("softmax")
    (desk / "mine.py").write_text("right")
    assert run("learn", "check", "softmax", "mine.py").code == 0
    work = ProgressFile().read().work("softmax")
    assert work.attempts == 2
    assert work.passed_at is not None


@pytest.mark.usefixtures("grader")
def test_the_suggested_command_names_the_file(run: Run, desk: Path) -> None:
    (desk / "my answer.py").write_text("wrong")
    for lang in ("en", "zh"):
        out = run("learn", "check", "softmax", "my answer.py", "--lang", lang).out
        assert "regard learn check softmax 'my answer.py' --seed 7" in out


@pytest.mark.usefixtures("grader")
def test_json(run: Run, desk: Path) -> None:
    (desk / "softmax.py").write_text("wrong")
    code, out, err = run("learn", "check", "softmax", "--json", "--seed", "5")  # the file that start writes
    printed = json.loads(out)
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert {"id": "softmax", "passed": False, "diagnosis": "no scale", "seed": 5}.items() <= printed.items()
    assert printed["tests"][0]["passed"] is False


@pytest.mark.usefixtures("grader")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_pass_is_recorded_even_if_stdout_is_closed(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """As in `regard learn check softmax mine.py | head -1`."""

    def gone(*_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    (desk / "mine.py").write_text("right")
    for name in ("put", "write_json"):
        monkeypatch.setattr(exercise_commands, name, gone)
    run("learn", "check", "softmax", "mine.py", *options)
    assert ProgressFile().read().passed("softmax")
    assert (desk / "home/passed/softmax.py").read_text() == "right"


@pytest.mark.usefixtures("grader")
def test_stdin(run: Run) -> None:
    assert run("learn", "check", "softmax", "-", stdin=b"right").code == 0
    assert run("learn", "check", "softmax", "-", stdin=b"").code == 1
    assert run("learn", "check", "softmax", "-", "--on-save").code == 2


@pytest.mark.usefixtures("grader")
def test_files_that_cannot_be_read(run: Run, desk: Path) -> None:
    code, out, err = run("learn", "check", "softmax", "nowhere.py")
    assert (code, out) == (3, "")
    assert "regard learn start softmax" in err
    assert run("learn", "check", "softmax").code == 3
    (desk / "folder").mkdir()
    assert run("learn", "check", "softmax", "folder").code == 3
    assert run("learn", "check", "softmax", "x.py", "--seed", "-1").code == 2
    assert ProgressFile().read().work("softmax").attempts == 0


@pytest.mark.usefixtures("grader")
def test_without_a_home_a_check_still_works(run: Run, desk: Path) -> None:
    (desk / "home").write_text("")
    (desk / "softmax.py").write_text("right")
    code, out, err = run("learn", "check", "softmax")
    assert code == 0
    assert "✓" in out
    assert err.count("progress is not saved") == 1


@pytest.mark.usefixtures("grader")
def test_on_save_checks_again_and_ends_with_130(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is changed, disappears, reappears and stays unchanged; then Ctrl-C."""
    path = desk / "softmax.py"
    path.write_text("wrong")
    happenings = iter(
        [
            lambda: None,
            lambda: path.write_text(""),  # an editor begins to write
            lambda: path.write_text("right"),
            lambda: None,
            path.unlink,
            lambda: None,
            lambda: path.write_text("wrong again"),
            lambda: None,
            lambda: None,
        ]
    )

    def happen(seconds: float) -> None:
        try:
            next(happenings)()
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(exercise_commands, "time", SimpleNamespace(sleep=happen, strftime=time.strftime))
    code, out, err = run("learn", "check", "softmax", "--on-save", "--json")
    assert code == 130
    assert [json.loads(line)["passed"] for line in out.splitlines()] == [False, True, False]
    assert err.count("Waiting") == 3
    assert ProgressFile().read().work("softmax").attempts == 3


# --- the real grader ---------------------------------------------------------------------------------------


def test_a_learner_from_start_to_pass(run: Run, desk: Path) -> None:
    assert run("learn", "start", "softmax").code == 0
    code, out, err = run("learn", "check", "softmax")
    assert (code, err) == (1, "")
    assert "regard learn hint softmax" in out
    (desk / "softmax.py").write_text(run("learn", "solution", "softmax", "--give-up").out, encoding="utf-8")
    code, out, err = run("learn", "check", "softmax", "softmax.py", "--lang", "zh")
    assert code == 0
    assert "全部通过" in out
    assert "regard learn solution softmax" in err, "and where to go from here"


def test_a_check_into_a_closed_pipe_records_the_pass(run: Run, desk: Path) -> None:
    (desk / "softmax.py").write_text(run("learn", "solution", "softmax", "--give-up").out, encoding="utf-8")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "regard", "learn", "check", "softmax"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writer)
    assert b"Traceback" not in done.stderr
    assert ProgressFile().read().passed("softmax")


@pytest.mark.parametrize("id", [row.id for row in entries() if row.kind == "sheet"])
def test_the_answers_of_a_sheet_pass(run: Run, desk: Path, id: str) -> None:
    assert run("learn", "start", id).code == 0
    assert run("learn", "check", id).code == 1
    (desk / f"{id}.toml").write_text(run("learn", "solution", id, "--give-up").out, encoding="utf-8")
    code, out, _ = run("learn", "check", id)
    assert code == 0, out


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe\x00", b"x = \0"])
@pytest.mark.parametrize("id", ["softmax", "by-hand"])
def test_a_file_that_is_not_text_is_reported(run: Run, raw: bytes, id: str) -> None:
    code, out, _ = run("learn", "check", id, "-", "--json", stdin=raw)
    printed = json.loads(out)
    assert (code, printed["passed"]) == (1, False)
    assert printed["diagnosis"]
