"""Every fault that a teacher's exercise can have is found, and named.

The answers of a class: each has its row, whatever one of them does.
"""

import csv
import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.course.own_exercises import checks
from regard.course.own_exercises.checks import (
    Finding,
    Graded,
    answer_files,
    as_csv,
    grade_class,
    harmless,
    verify,
)
from regard.course.own_exercises.loading import load_folder
from regard.errors import FileError
from regard.messages import use_language

Change = Callable[[str, str, str], None]


@pytest.fixture
def without_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the programs in this process, for faults that the sandbox has nothing to do with."""
    monkeypatch.setattr(checks, "run", in_process)
    monkeypatch.setattr(checks, "grade", partial(grade, run=in_process))


trusted = pytest.mark.usefixtures("without_sandbox")


def problems(folder: Path) -> list[Finding]:
    return [finding for finding in verify(load_folder(str(folder))) if not finding.is_right]


def test_a_wrong_solution_ends_the_verification(folder: Path, change: Change) -> None:
    change("solution.py", "return (x * tokens)", "return 1 / 0 if len(x) == 4 else (x * tokens)")
    found = problems(folder)
    # What the solution raises is what is expected; the examples and the mistakes cannot agree with it.
    assert found
    change("solution.py", "import numpy as np", "import numpy as np\nimport os\nos.system('true')")
    assert [(one.what, "may not start" in one.problem) for one in problems(folder)] == [("solution.py passes", True)]


@trusted
def test_a_stub_that_passes_or_fails_otherwise(folder: Path, change: Change) -> None:
    (folder / "stub.py").write_bytes((folder / "solution.py").read_bytes())
    assert "it passes" in problems(folder)[0].problem
    (folder / "stub.py").write_text("def other(): pass")
    assert "missing-name" in problems(folder)[0].problem


@trusted
def test_mistakes_that_are_not_mistakes(folder: Path, change: Change) -> None:
    change("grader.py", '(COUNT, "len(x)")', '(COUNT, "max(1.0, tokens.sum())")')
    (found,) = problems(folder)
    assert "divided-by-all" in found.what
    assert "it passes" in found.problem


@trusted
def test_a_mistake_that_gets_the_diagnosis_of_another(folder: Path, change: Change) -> None:
    change("grader.py", 'Mistake("largest", ((', 'Mistake("largest", ((" / count", ""), (')
    change("grader.py", '"(x * tokens).sum(axis=0) / count", "np', '"(x * tokens)", "(tokens * x)"), ("zeros", "np')
    assert any("largest" in one.what for one in problems(folder))


@trusted
def test_text_that_is_not_in_the_solution(folder: Path, change: Change) -> None:
    change("grader.py", '" / count"', '" // count"')
    (found,) = problems(folder)
    assert "not in the solution" in found.problem


def test_a_mistake_that_never_ends_is_reported_and_does_not_block(folder: Path, change: Change) -> None:
    change(
        "grader.py", 'Mistake("not-divided", ((" / count", ""),))', 'Mistake("not-divided", source="while True: pass")'
    )
    (found,) = problems(folder)
    assert "too-slow" in found.problem


@trusted
def test_texts_that_are_missing_or_unused(folder: Path, change: Change) -> None:
    change("task.toml", "[cases]", '[cases]\nnever = { en = "never", zh = "从不" }')
    change("task.toml", "\nlargest = ", "\nsmallest = ")
    first = problems(folder)[0]
    for name in ("[cases] never", "[mistakes] largest", "[mistakes] smallest"):
        assert name in first.problem


@trusted
def test_no_known_mistakes(folder: Path, change: Change) -> None:
    change("grader.py", "Grader(cases, MISTAKES,", "Grader(cases, (),")
    assert any("MISTAKES in grader.py is empty" in one.problem for one in problems(folder))


@trusted
def test_an_example_that_is_wrong(folder: Path, change: Change) -> None:
    change("task.toml", "array([2., 3.])", "array([2., 4.])")
    assert ["(en)" in one.what or "(zh)" in one.what for one in problems(folder)] == [True, True]


@trusted
def test_data_that_are_always_the_same_or_never(folder: Path, change: Change) -> None:
    change("grader.py", "rng.normal(0.0, 3.0, shape)", "np.random.default_rng(0).normal(0.0, 3.0, shape)")
    assert problems(folder)[0].what == "the data are new for each seed"


def test_a_right_answer_that_does_not_pass(folder: Path) -> None:
    (folder / "right" / "wrong.py").write_text("def mean_pooling(x, mask): return x.mean(axis=0)")
    (found,) = problems(folder)
    assert found.what == "right/wrong.py passes"


def test_what_the_grader_raises_is_reported(folder: Path, change: Change) -> None:
    change("grader.py", "    return [\n", "    raise KeyError('oops')\n    return [\n")
    (found,) = problems(folder)
    assert "KeyError" in found.problem


@trusted
def test_find_the_bug(folder: Path, change: Change) -> None:
    change("task.toml", 'kind = "code"', 'kind = "bug"')
    change("task.toml", "[mistakes]", '[mistakes]\nuntouched = { en = "as it was", zh = "没有改动" }')
    solution = (folder / "solution.py").read_text(encoding="utf-8")
    (folder / "stub.py").write_text(solution.replace("axis=0", "axis=1"), encoding="utf-8")
    change("grader.py", 'Mistake("over-features"', 'Mistake("untouched"')
    change("task.toml", "over-features = ", "# ")
    assert problems(folder) == []


SHEET = """
from regard.course.exercise import Field, Sheet, SheetMistake

SHEET = Sheet(
    make=lambda seed, lang: f"seed = {seed}\\nsum = ",
    fields=lambda seed: [Field("sum", seed + 2.5, 0.01, step="adding")],
    mistakes=[SheetMistake("no-half", lambda seed: {"sum": seed + 2})],
)
"""


def test_an_answer_sheet(folder: Path) -> None:
    (folder / "grader.py").write_text(SHEET)
    texts = (
        '[exercise]\nkind = "sheet"\ntrack = "numpy"\ntitle = { en = "Add" }\n[task]\nen = "Add 2.5."\n[hints]\n'
        'en = ["add"]\n[cases]\nadding = { en = "the sum" }\n[mistakes]\nno-half = { en = "2.5, not 2" }\n'
    )
    (folder / "task.toml").write_text(texts)
    assert problems(folder) == []
    (folder / "grader.py").write_text(SHEET.replace('{"sum": seed + 2}', '{"sum": seed + 2.5}'))
    assert "it passes" in problems(folder)[0].problem


@pytest.mark.parametrize("name", ["stub.py", "solution.py"])
def test_a_sheet_needs_no_programs(folder: Path, name: str) -> None:
    (folder / "grader.py").write_text(SHEET)
    text = (folder / "task.toml").read_text(encoding="utf-8").replace('kind = "code"', 'kind = "sheet"')
    (folder / "task.toml").write_text(text, encoding="utf-8")
    (folder / name).unlink()
    assert load_folder(str(folder)).sheet is not None


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
    monkeypatch.setattr(checks, "MOST", 2)
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
    assert (rows["a.py"].mistake, rows["g.py"].mistake) == ("too-slow", "not-written")
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
