"""The answers of a class: each has its row, whatever one of them does."""

import csv
import io
import os
from pathlib import Path

import pytest

from regard.course.own_exercises import class_grading
from regard.course.own_exercises.class_grading import Graded, answer_files, as_csv, grade_class, harmless
from regard.course.own_exercises.loading import load_folder
from regard.errors import FileError
from regard.messages import use_language


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    (tmp_path / "answers").mkdir()
    return tmp_path / "answers"


def test_files_are_found_at_the_top_and_by_name_below(answers: Path) -> None:
    for name in ("ben.py", "anna.py", "notes.txt", ".hidden.py", "dora/mean.py", "dora/other.py", "a/b/mean.py"):
        (answers / name).parent.mkdir(parents=True, exist_ok=True)
        (answers / name).write_text("")
    for name in (".git/mean.py", "__pycache__/mean.py"):
        (answers / name).parent.mkdir()
        (answers / name).write_text("")
    (answers / "loop").symlink_to(answers)
    assert answer_files(answers, "mean.py") == ["a/b/mean.py", "anna.py", "ben.py", "dora/mean.py"]


def test_no_answers_or_too_many(answers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match=r"no \.py files"):
        answer_files(answers, "mean.py")
    with pytest.raises(FileError, match="no folder"):
        answer_files(answers / "none", "mean.py")
    monkeypatch.setattr(class_grading, "MOST", 2)
    for n in range(3):
        (answers / f"{n}.py").write_text("")
    with pytest.raises(FileError, match="more than 2"):
        answer_files(answers, "mean.py")


def test_one_bad_answer_does_not_stop_the_others(folder: Path, answers: Path, tmp_path: Path) -> None:
    exercise = load_folder(str(folder))
    programs = {
        "a.py": "while True: pass",
        "b.py": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
        "c.py": "x = []\nwhile True: x.append(bytes(10**7))",
        "d.py": "print('x' * 10**9)",
        "e.py": f"open({str(tmp_path / 'evil')!r}, 'w').write('')",
        "f.py": "def mean_pooling(:",
        "g.py": exercise.stub,
        "z.py": exercise.solution,
    }
    for name, text in programs.items():
        (answers / name).write_text(text)
    (answers / "h.py").symlink_to(folder / "solution.py")
    os.mkfifo(answers / "i.py")
    rows = {row.file: row for row in grade_class(exercise, answers, answer_files(answers, "mean-pooling.py"), seed=1)}
    assert [row.state for row in rows.values()] == ["failed"] * 7 + ["unreadable"] * 2 + ["passed"]
    assert (rows["a.py"].slip, rows["g.py"].slip) == ("too-slow", "not-written")
    assert rows["z.py"].tests[0] == rows["z.py"].tests[1] > 0
    assert all(row.diagnosis for name, row in rows.items() if name != "z.py")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "＝1", "\n=1"])
def test_no_cell_is_a_formula(cell: str) -> None:
    assert harmless(cell).startswith("'")
    assert harmless("\r=1") == "␍=1"


def test_the_table_is_csv_that_spreadsheets_read() -> None:
    rows = [Graded("=cmd|calc.py", None, 'a "quoted",\nline'), Graded("王小明.py", None, "@x")]
    with use_language("zh"):
        content = as_csv(rows)
    assert content.startswith(b"\xef\xbb\xbf")
    head, first, second = csv.reader(io.StringIO(content.decode("utf-8-sig")))
    assert head[0] == "文件"
    assert first == ["'=cmd|calc.py", "无法读取", "0", "0", "", 'a "quoted", line']
    assert (second[0], second[-1]) == ("王小明.py", "'@x")


def test_names_that_are_not_utf8_are_written() -> None:
    assert b"?" in as_csv([Graded("\udcff.py", None)]) or "⟨".encode() in as_csv([Graded("\udcff.py", None)])
