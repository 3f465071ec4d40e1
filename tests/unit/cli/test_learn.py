"""regard learn: list, start, hint, solution, reset and read, each with its own progress file.

The exercises are small stand-ins: what is said about real ones is tested in tests/unit/course.
"""

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Run
from rich.cells import cell_len
from rich.console import Console

from regard.cli.learn import COMMANDS, exercise_commands
from regard.cli.streams import WIDEST
from regard.course import catalogue
from regard.course import lessons as index
from regard.course.catalogue import entries
from regard.course.exercise import Entry, Exercise, Field, Grader, Sheet, call
from regard.course.lessons.markdown import draw
from regard.course.progress import NAME, ProgressFile
from regard.course.questions import IN_OWN_WORDS
from regard.messages import Message

STUB, SOLUTION = "def softmax(x, axis):\n    raise NotImplementedError\n", "def softmax(x, axis):\n    return x\n"
TOML = 'seed = {}\n# {}\nscores = ""\n'


def stand_in(row: Entry) -> Exercise:
    is_sheet = row.kind == "sheet"
    sheet = Sheet(
        make=lambda seed, lang: TOML.format(seed, "填在这里" if lang == "zh" else "type here"),
        fields=lambda seed: [Field("scores", [1.0, seed / 3], 0.01), Field("which", "softmax")],
        mistakes=(),
    )
    return Exercise(
        **vars(row),
        task=Message(en="Write it.", zh="写出来。"),
        hints={"en": ("idea", "formula", "line"), "zh": ("思路", "公式", "那一行")},
        cases={},
        mistakes={},
        stub="" if is_sheet else STUB,
        solution="" if is_sheet else SOLUTION,
        grader=None if is_sheet else Grader(cases=lambda rng: [call("softmax", 1.0)], mistakes=()),
        sheet=sheet if is_sheet else None,
    )


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, a separate home, and fake exercises."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(catalogue, "_loaded", stand_in)
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


def passes(*ids: str) -> None:
    for one in ids:
        ProgressFile().change(lambda now, one=one: now.with_work(one, now.work(one).checked(passed=True)))  # type: ignore[misc]


# --- list --------------------------------------------------------------------------------------------------


def test_list_shows_every_exercise_and_what_is_next(run: Run) -> None:
    code, out, err = run("learn", "list")
    assert code == 0
    assert re.findall(r"^  · ([a-z0-9-]+) ", out, flags=re.MULTILINE)[: len(entries())] == [
        row.id for row in sorted(entries(), key=lambda row: row.lesson)
    ]
    assert f"Passed: 0 of {len(entries())}" in out
    assert "regard learn start softmax" in err


def test_list_shows_progress_in_either_language(run: Run) -> None:
    passes("softmax")
    ProgressFile().change(lambda now: now.with_work("by-hand", now.work("by-hand").checked(passed=False)))
    for lang in ("en", "zh"):
        out, err = run("learn", "list", "--lang", lang)[1:]
        assert re.search(r"^  ✓ softmax ", out, flags=re.MULTILINE)
        assert re.search(r"^  … by-hand ", out, flags=re.MULTILINE)
        assert "regard learn check by-hand" in err
    assert "已通过：1/" in out


def test_titles_are_aligned_in_chinese_too(run: Run) -> None:
    out = run("learn", "list", "--lang", "zh").out
    titles = {row.title.zh for row in entries()}
    starts = set()
    for line in filter(re.compile("  [✓…·] ").match, out.splitlines()):
        title = max(filter(line.endswith, titles), key=len, default=None)  # a title may be the end of another
        if title:
            starts.add(cell_len(line.removesuffix(title)))
    assert len(starts) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_list_fits_a_narrow_terminal_and_names_kinds_on_a_wide_one(
    run: Run, lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    narrow = run("learn", "list", "--lang", lang).out
    monkeypatch.setenv("COLUMNS", "140")
    wide = run("learn", "list", "--lang", lang).out
    assert max(cell_len(line) for line in narrow.splitlines()) <= 80
    assert "· PyTorch" in wide
    assert all(row.id in narrow for row in entries())
    assert all(one in narrow for one in IN_OWN_WORDS)


def test_the_check_list_of_four(run: Run) -> None:
    def done() -> dict[str, bool]:
        printed = json.loads(run("learn", "list", "--json").out)["checklist"]
        return {item["item"]: item["done"] for item in printed}

    assert done() == dict.fromkeys(("flow", "hand", "code", "words"), False)
    passes("order-the-flow", "by-hand", "self-attention")
    assert done() == {"flow": True, "hand": True, "code": False, "words": False}
    passes("multi-head-attention")
    for one in IN_OWN_WORDS:
        assert not done()["words"]
        assert run("learn", "ask", one, "--rate", "good").code == 0
    assert all(done().values())
    assert "4 of 4" in run("learn", "list").out
    run("learn", "ask", IN_OWN_WORDS[0], "--rate", "unsure")
    assert not done()["words"]
    assert {need for names in json.loads(run("learn", "--json").out)["checklist"] for need in names["needs"]} <= {
        row.id for row in entries()
    } | set(IN_OWN_WORDS)


def test_list_as_json(run: Run) -> None:
    passes("softmax")
    printed = json.loads(run("learn", "list", "--json", "--lang", "zh").out)
    first = printed["exercises"][0]
    assert (first["id"], first["passed"], first["attempts"], first["gave_up"]) == ("softmax", True, 1, False)
    assert first["title"] == entries()[0].title.zh
    assert printed["next"] == entries()[1].id
    assert printed["questions_due"] == 0


def test_when_all_is_passed(run: Run) -> None:
    passes(*(row.id for row in entries()))
    assert "All exercises are passed" in run("learn").out
    assert "All exercises are passed" in run("learn", "list").err
    assert json.loads(run("learn", "--json").out)["next"] is None


def test_without_torch_the_next_exercise_uses_numpy(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first_torch = next(place for place, row in enumerate(entries()) if row.track == "torch")
    passes(*(row.id for row in entries()[:first_torch]))
    monkeypatch.setattr("regard.cli.learn.exercise_commands.find_spec", lambda name: None)
    chosen = json.loads(run("learn", "--json").out)["next"]
    assert next(row.track for row in entries() if row.id == chosen) == "numpy"


@pytest.mark.parametrize("words", [["learn"], ["learn", "list"], ["learn", "path"]])
def test_list_loads_nothing_heavy(words: list[str]) -> None:
    program = f"import sys; from regard.cli import main; main({words}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert not {"numpy", "torch", "rich.markdown", "regard.course.grading.grader"} & set(done.stdout.split())


def test_json_before_the_command_is_an_error(run: Run) -> None:
    code, out, err = run("learn", "--json", "list")
    assert (code, out) == (2, "")
    assert "regard learn list --json" in err


# --- start -------------------------------------------------------------------------------------------------


def test_start_shows_the_task_and_writes_a_file(run: Run, desk: Path) -> None:
    code, out, err = run("learn", "start", "softmax")
    assert code == 0
    assert "Write it." in out
    assert (desk / "softmax.py").read_text() == STUB
    assert "regard learn check softmax softmax.py" in err
    code, out, err = run("learn", "start", "softmax", "--dir", "a/new folder", "--lang", "zh")
    assert code == 0
    assert "写出来。" in out
    assert "'a/new folder/softmax.py'" in err
    assert (desk / "a/new folder/softmax.py").read_text() == STUB


def test_start_writes_the_file_even_if_stdout_is_closed(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(exercise_commands, "put", gone)
    with pytest.raises(BrokenPipeError):
        exercise_commands.start("softmax", desk)
    assert (desk / "softmax.py").is_file()


def test_start_writes_a_sheet_with_its_seed(run: Run, desk: Path) -> None:
    printed = json.loads(run("learn", "start", "by-hand", "--json").out)
    assert printed == {"id": "by-hand", "file": "by-hand.toml", "written": True, "task": "Write it."}
    before = (desk / "by-hand.toml").read_text()
    assert re.match(r"seed = \d+\n", before)
    assert json.loads(run("learn", "start", "by-hand", "--json", "--lang", "zh").out)["written"] is False
    assert (desk / "by-hand.toml").read_text() == before


@pytest.mark.parametrize(("id", "file"), [("softmax", "softmax.py"), ("by-hand", "by-hand.toml")])
def test_start_never_overwrites_an_answer(run: Run, desk: Path, id: str, file: str) -> None:
    assert run("learn", "start", id).code == 0
    assert "already" in run("learn", "start", id).err
    for content in (b"mine", b"", b"\xff\xfe", b"seed = 'x'", b"seed = 3\n"):
        (desk / file).write_bytes(content)
        code, out, err = run("learn", "start", id)
        assert code == 0
        assert "Write it." in out, "the task can be read again"
        assert "was not overwritten" in err
        assert f"regard learn reset {id}" in err
        assert "没有覆盖" in run("learn", "start", id, "--lang", "zh").err
        assert json.loads(run("learn", "start", id, "--json").out)["written"] is False
        assert (desk / file).read_bytes() == content


def test_start_where_it_cannot_write(run: Run, desk: Path) -> None:
    (desk / "softmax.py").mkdir()
    assert run("learn", "start", "softmax")[::2] == (3, "regard: softmax.py is a folder; give the path of a file\n")
    (desk / "file").write_text("")
    code, _, err = run("learn", "start", "softmax", "--dir", "file")
    assert code == 3
    assert "could not be written" in err


@pytest.mark.parametrize("command", ["start", "check", "hint", "solution", "reset"])
def test_an_exercise_that_is_missing_or_unknown(run: Run, command: str) -> None:
    code, out, err = run("learn", command)
    assert (code, out) == (2, "")
    assert f"regard learn {command} softmax" in err
    code, out, err = run("learn", command, "sofmax")
    assert (code, out) == (2, "")
    assert "softmax" in err
    code, _, err = run("learn", command, "softmax", "--lang", "zh", "a", "b", "c")
    assert code == 2
    assert "用不上" in err


# --- hint and solution -------------------------------------------------------------------------------------


def test_hints_come_one_by_one(run: Run) -> None:
    printed = [run("learn", "hint", "softmax") for _ in range(4)]
    assert [out for _, out, _ in printed] == [
        "Hint 1 of 3\nidea\n",
        "Hint 2 of 3\nformula\n",
        "Hint 3 of 3\nline\n",
        "Hint 3 of 3\nline\n",
    ]
    assert "--give-up" in printed[2].err
    assert ProgressFile().read().work("softmax").hints == 3
    assert run("learn", "hint", "softmax", "--step", "1", "--lang", "zh").out == "提示 1/3\n思路\n"
    assert ProgressFile().read().work("softmax").hints == 3


def test_a_passed_exercise_needs_no_give_up(run: Run) -> None:
    assert "regard learn solution softmax --give-up" in run("learn", "hint", "softmax", "--step", "3").err
    ProgressFile().checked("softmax", True)
    err = run("learn", "hint", "softmax", "--step", "3").err
    assert "regard learn solution softmax\n" in err


def test_a_hint_by_its_number(run: Run) -> None:
    printed = json.loads(run("learn", "hint", "softmax", "--step", "2", "--json").out)
    assert printed == {"id": "softmax", "step": 2, "of": 3, "hint": "formula"}
    assert json.loads(run("learn", "hint", "softmax", "--json").out)["step"] == 3
    for step in ("0", "4", "x", "-1"):
        assert run("learn", "hint", "softmax", f"--step={step}").code == 2


def test_a_solution_is_locked_until_passed_or_given_up(run: Run) -> None:
    code, out, err = run("learn", "solution", "softmax")
    assert (code, out) == (2, "")
    assert "--give-up" in err
    assert run("learn", "solution", "softmax", "--give-up")[:2] == (0, SOLUTION)
    assert run("learn", "solution", "softmax")[:2] == (0, SOLUTION)
    assert ProgressFile().read().work("softmax").gave_up
    assert not ProgressFile().read().passed("softmax")
    passes("self-attention")
    assert run("learn", "solution", "self-attention", "--json").code == 0
    assert not ProgressFile().read().work("self-attention").gave_up


def test_the_solution_of_a_sheet_has_its_seed(run: Run, desk: Path) -> None:
    passes("by-hand")
    out, err = run("learn", "solution", "by-hand")[1:]
    assert out == 'seed = 0\nscores = [1.0, 0.0]\nwhich = "softmax"\n'
    assert "--seed N" in err
    out, err = run("learn", "solution", "by-hand", "--seed", "2")[1:]
    assert out == 'seed = 2\nscores = [1.0, 0.666667]\nwhich = "softmax"\n'
    assert not err
    for typed in ("[1, 2]", "［1，2］", "[1, "):
        (desk / "by-hand.toml").write_text(f"seed = 2\nscores = {typed}", encoding="utf-8")
        assert run("learn", "solution", "by-hand")[1:] == (out, "")


# --- reset -------------------------------------------------------------------------------------------------


def test_reset_keeps_the_old_answer(run: Run, desk: Path) -> None:
    passes("softmax", "by-hand")
    for number in (1, 2):
        (desk / "softmax.py").write_text(f"mine {number}")
        code, _, err = run("learn", "reset", "softmax")
        assert code == 0
        assert f"softmax.{number}.py" in err
        assert (desk / f"softmax.{number}.py").read_text() == f"mine {number}"
        assert (desk / "softmax.py").read_text() == STUB
    progress = ProgressFile().read()
    assert (progress.passed("softmax"), progress.passed("by-hand")) == (False, True)


def test_reset_without_a_file_clears_progress_only(run: Run, desk: Path) -> None:
    passes("softmax")
    printed = json.loads(run("learn", "reset", "softmax", "--json").out)
    assert printed == {"id": "softmax", "file": "softmax.py", "kept": None}
    assert not ProgressFile().read().passed("softmax")
    assert not list(desk.iterdir())


def test_reset_of_an_untouched_sheet_gives_new_numbers(run: Run, desk: Path) -> None:
    run("learn", "start", "by-hand")
    before = (desk / "by-hand.toml").read_text()
    assert json.loads(run("learn", "reset", "by-hand", "--json").out)["kept"] is None
    assert (desk / "by-hand.toml").read_text() != before
    assert len(list(desk.iterdir())) == 1


def test_reset_all(run: Run, desk: Path) -> None:
    assert "no progress" in run("learn", "reset", "--all").err
    passes("softmax", "by-hand")
    (desk / "softmax.py").write_text("mine")
    before = (ProgressFile().folder / NAME).read_bytes()
    kept = json.loads(run("learn", "reset", "--all", "--json").out)["kept"]
    assert Path(kept).read_bytes() == before
    assert not ProgressFile().read().exercises
    assert (desk / "softmax.py").read_text() == "mine"
    Path(kept).rename(ProgressFile().path)
    assert ProgressFile().read().passed("softmax"), "the way back that is printed"
    err = run("learn", "reset", "--all", "--lang", "zh").err
    assert "2 道练习，0 个问题" in err
    assert "progress.json 即可恢复" in err
    assert run("learn", "reset", "softmax", "--all").code == 2


# --- read --------------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, title in ((".en.md", "Why attention"), (".zh-CN.md", "为什么要有注意力")):
        (tmp_path / f"01-why-attention{name}").write_text(f"# {title}\n\nText.\n", encoding="utf-8")
    monkeypatch.setattr(index, "FOLDER", tmp_path)


@pytest.mark.usefixtures("shelf")
def test_read_lists_lessons_and_prints_markdown(run: Run) -> None:
    assert run("learn", "read").out == " 1  why-attention  Why attention\n"
    assert json.loads(run("learn", "read", "--json", "--lang", "zh").out) == {
        "lessons": [{"number": 1, "name": "why-attention", "title": "为什么要有注意力"}]
    }
    assert run("learn", "read", "1").out == "# Why attention\n\nText.\n"
    printed = json.loads(run("learn", "read", "why-attention", "--json").out)
    assert (printed["number"], printed["text"]) == (1, "# Why attention\n\nText.\n")
    code, _, err = run("learn", "read", "why")
    assert code == 2
    assert "did you mean why-attention" in err


@pytest.mark.usefixtures("shelf")
def test_read_draws_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    out = run("learn", "read", "1").out
    assert "Why attention" in out
    assert "#" not in out


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_page_fits_and_no_line_begins_with_a_closing_mark(width: int) -> None:
    screen = io.StringIO()
    text = "注意力是 **这样** 计算的，一步一步来：先 `scores`，再 softmax。" * 9
    draw(
        f"# 标题\n\n{text}\n\n> {text}\n\n| 甲 | 乙 |\n|---|---|\n| 一 | 二 |\n\n- {text}\n",
        Console(file=screen, width=width),
        min(width, WIDEST),
    )
    lines = screen.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= min(width, WIDEST)
    assert not [line for line in lines if line.strip(" ▌")[:1] in tuple("，。：、")]
    full = [cell_len(line.rstrip()) for line in lines if "注意力" in line]
    assert sum(full) / len(full) > 0.8 * min(width, WIDEST), "lines are filled"


@pytest.mark.usefixtures("shelf")
def test_the_list_shows_lessons(run: Run) -> None:
    row = Entry("softmax", "code", "numpy", 1, Message(en="a", zh="b"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "entries", lambda: (row,))
        _, out, err = run("learn", "list")
        assert "Lesson 1  Why attention" in out
        assert "regard learn read 1" in err
        patch.setattr(catalogue, "entries", lambda: (replace(row, lesson=99),))
        run("learn", "hint", "softmax")
        _, out, err = run("learn", "list")
        assert "Lesson 99" in out
        assert "regard learn read" not in err, "a lesson that is not there yet"


def test_a_newcomer_starts_with_the_first_lesson(run: Run) -> None:
    for lang in ("en", "zh"):
        assert re.search("regard learn read 1.*regard learn start softmax", run("learn", "list", "--lang", lang).err)
    passes("softmax")
    assert "read 1" not in run("learn").out


# --- all of them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_in_both_languages(run: Run, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for lang in ("en", "zh"):
        code, out, _ = run("learn", command, "--help", "--lang", lang)
        assert code == 0
        assert "--json" in out
        assert max(cell_len(line) for line in out.splitlines()) <= 80


def test_an_unknown_command(run: Run) -> None:
    code, _, err = run("learn", "chek")
    assert code == 2
    assert "did you mean check" in err
    assert "regard learn --help" in run("learn", "zzz").err


def test_a_read_only_home_is_reported_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    code, out, err = run("learn", "hint", "softmax")
    assert (code, out) == (0, "Hint 1 of 3\nidea\n")
    assert err.count("progress is not saved") == 1
    assert "regard learn hint softmax --step 2" in err, "a plain call would give the first again"
