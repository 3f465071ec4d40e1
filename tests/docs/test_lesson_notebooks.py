"""The notebooks of the lessons, run in a Jupyter kernel: they print what they store, and their checks work."""

import re
from pathlib import Path
from typing import Any

import pytest
from pages import comparable

from regard.course.catalogue import exercise
from regard.course.lessons import Lesson, lesson, lessons
from regard.course.lessons.markdown import notebook_text
from regard.messages import LANGUAGES, Language


@pytest.mark.parametrize(("name", "lang"), [("by-hand", "zh"), ("bert-gpt-t5-llama", "en")])
def test_two_notebooks_run(name: str, lang: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_it_runs(lesson(name), lang, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("one", lessons(), ids=lambda one: one.name)
def test_every_notebook_runs(one: Lesson, lang: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_it_runs(one, lang, tmp_path, monkeypatch)


def assert_it_runs(one: Lesson, lang: Language, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell prints its stored output; the initial answer of each exercise fails, and its solution passes."""
    import nbformat  # takes more than a second, so not where tests are collected
    from nbclient import NotebookClient

    monkeypatch.setenv("REGARD_HOME", str(folder / "home"))
    monkeypatch.setenv("LANG", "C.UTF-8")  # the first cell sets the language
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    notebook: Any = with_solutions(nbformat.reads(notebook_text(one, lang), as_version=4))
    stored = [text_of(cell) for cell in notebook.cells]
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    failed, passed = 0, 0
    for cell, expected in zip(notebook.cells, stored, strict=True):
        printed = text_of(cell)
        if expected:
            assert comparable(lines_of(printed), cell.source) == comparable(lines_of(expected), cell.source), (
                cell.source
            )
        elif cell.source.startswith("!"):
            assert len(lines_of(printed)) > 5, cell.source
        elif "verdict = check(" in cell.source:
            is_solution = cell.id.endswith("-solution")
            assert printed.startswith("✓" if is_solution else "✗"), (cell.source, printed)
            assert bool(re.search("[\u4e00-\u9fff]", printed.splitlines()[0])) == (lang == "zh"), printed
            failed, passed = failed + (not is_solution), passed + is_solution
    assert failed >= passed


def with_solutions(notebook: Any) -> Any:
    """The notebook with another cell after each program to write: its solution, with the same check."""
    from nbformat.v4 import new_code_cell

    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        check = re.search(r'^verdict = check\("([a-z-]+)".*\Z', cell.source, flags=re.MULTILINE)
        if check and (solution := exercise(check[1]).solution):
            cells.append(new_code_cell(f"{solution}\n\n{check[0]}", id=f"{cell.id}-solution"))
    notebook.cells = cells
    return notebook


def text_of(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]
