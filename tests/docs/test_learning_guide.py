"""docs/learning: its commands work in their order, its verdict is what one sees, its tables are the course's own."""

import io
import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from pages import Page, spans

from regard.cli import main
from regard.cli.learn.overview_commands import CHECKLIST
from regard.course import study_path as rule
from regard.course.catalogue import entries, exercise
from regard.course.grading.process import NUMPY, TORCH
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import BACKUP, NAME, RATINGS, ProgressFile
from regard.course.questions import IN_OWN_WORDS, LEVELS, LIMITS, WAITS
from regard.messages import LANGUAGES, Language, say, use_language

ROOT = Path(__file__).parents[2]
PAGE = Page("docs/learning.md", "docs/learning.zh-CN.md")
EACH = pytest.mark.parametrize("lang", LANGUAGES)


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


def commands(lang: Language) -> list[list[str]]:
    """Everything typed in a shell, without the name of the program."""
    lines = [shlex.split(line) for line in "".join(PAGE.blocks(lang, "bash")).splitlines()]
    assert all(program == "regard" for program, *_ in lines)
    return [words for _, *words in lines]


# --- what is written works --------------------------------------------------------------------------------


@EACH
def test_commands_work_and_the_verdict_is_the_one_shown(
    lang: Language, desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the verdict has changed, paste what is printed now."""

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.cli.learn.exercise_commands.time", SimpleNamespace(sleep=interrupt))
    mine, shown = PAGE.blocks(lang, "python")[0], PAGE.blocks(lang, "text")[0]
    for words in commands(lang):
        if "certificate" in words:  # nothing is passed above
            ProgressFile().checked("softmax", passed=True)
            PassedAnswers().keep("softmax", exercise("softmax").solution)
        code = main([*words, "--lang", lang])
        said = capsys.readouterr()
        expected = 130 if "--on-save" in words else int("check" in words)
        assert code == expected, (words, said.err)
        assert said.out or said.err
        if "check" in words and "--seed" in words:
            assert said.out == shown
        if words[1:] == ["start", "simple-attention"]:
            (desk / "simple-attention.py").write_text(mine, encoding="utf-8")
    assert (desk / "simple-attention.1.py").read_text(encoding="utf-8") == mine
    assert {NAME, BACKUP} < {path.name for path in (desk.parent / "home").iterdir()}


def test_the_notebook_says_the_same(desk: Path) -> None:
    """Not by exec: the source of a function must stand somewhere."""
    (desk / "cells.py").write_text("\n\n".join(PAGE.blocks("en", "python")) + "\nassert not verdict.passed\n")
    done = subprocess.run([sys.executable, "cells.py"], capture_output=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    *shown, _ = PAGE.blocks("en", "text")[0].splitlines()  # the last names a file, and there is none
    again = say("verdict-again-here", "en", id="simple-attention", seed=1)
    assert done.stdout.splitlines() == [*shown, again]


def test_the_fields_of_json_are_those_named(capsys: pytest.CaptureFixture[str]) -> None:
    main(["learn", "start", "softmax"])
    capsys.readouterr()
    main(["learn", "check", "softmax", "--json"])
    fields = list(json.loads(capsys.readouterr().out))
    assert set(fields) <= set(spans(PAGE.prose("en")))


# --- what is written is so --------------------------------------------------------------------------------


@EACH
def test_the_exercises_are_those_of_the_catalogue(lang: Language) -> None:
    """If this fails: a row of the last table is to be made as it is expected here."""
    with use_language(lang):
        tracks = {"numpy": "NumPy", "torch": "PyTorch"}
        expected = [
            [str(row.lesson), f"`{row.id}`", say(f"learn-kind-{row.kind}", track=tracks[row.track]), row.title]
            for row in sorted(entries(), key=lambda row: row.lesson)
        ]
    _, *rows = PAGE.tables(lang)[-1]
    assert rows == [[*cells, getattr(title, lang)] for *cells, title in expected]


@EACH
def test_the_limits_are_those_of_the_grader(lang: Language) -> None:
    _, *rows = PAGE.tables(lang)[2]
    assert [cells[1:] for cells in rows] == [
        [f"{limits.wall:g} s" for limits in (NUMPY, TORCH)],
        [f"{limits.cpu:g} s" for limits in (NUMPY, TORCH)],
        [f"{limits.memory >> 20} MiB" for limits in (NUMPY, TORCH)],
        [f"{limits.output // 1000} kB" for limits in (NUMPY, TORCH)],
        [f"{limits.file >> 20} MiB" for limits in (NUMPY, TORCH)],
    ]


@EACH
def test_the_times_are_those_of_the_rule(lang: Language) -> None:
    _, *rows = PAGE.tables(lang)[0]
    found = [sorted(map(int, re.findall(r"\d+", cells[1]))) for cells in rows]
    assert found == [
        sorted([rule.WORDS, rule.CHARACTERS]),
        *([int(minutes)] for minutes in (rule.BLOCK, rule.EXERCISE, rule.LINE, rule.SEARCHED_LINE, rule.SHEET_STEP)),
        [],
    ]


@EACH
def test_names_and_days_are_those_of_the_code(lang: Language) -> None:
    prose = PAGE.prose(lang)
    named = spans(prose)
    for name in (*IN_OWN_WORDS, *(one for needs in CHECKLIST.values() for one in needs), *RATINGS, NAME):
        assert name in named, name
    days = ", ".join(map(str, WAITS[:-1])) + f", then {WAITS[-1]} days"
    assert (days if lang == "en" else "、".join(map(str, WAITS)) + " 天") in prose
    two, three, five = (LIMITS[level] // 60 for level in LEVELS)
    limits = f"{two}, {three} and {five} minutes" if lang == "en" else f"{two}、{three}、{five} 分钟"
    assert limits in prose


@EACH
def test_what_is_linked_is_there(lang: Language) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.prose(lang)):
        assert (ROOT / "docs" / target).exists(), target


# --- both languages say the same --------------------------------------------------------------------------


def test_both_languages_have_the_same_rows_code_and_commands() -> None:
    PAGE.assert_same_code()
    assert commands("en") == commands("zh")
    for ours, theirs in zip(PAGE.tables("en"), PAGE.tables("zh"), strict=True):
        assert [[Counter(spans(cell)) for cell in row] for row in ours] == [
            [Counter(spans(cell)) for cell in row] for row in theirs
        ]
    PAGE.assert_same_marks(r"^#+(?= )")
    english, chinese = (re.findall(r"\]\(([^)]+)\)", PAGE.prose(lang)) for lang in LANGUAGES)
    assert english[2:] == [
        link.replace(".zh-CN.md", ".md") for link in chinese[2:]
    ]  # behind the links to both languages
    assert english[:2] == chinese[:2]
    PAGE.assert_same_names()


def test_chinese_has_chinese_punctuation() -> None:
    PAGE.assert_chinese_punctuation()
