"""The pieces of a lesson: nothing is lost, code and headings are kept apart.

Notebooks of lessons: valid files with the text, the stated output, the pictures and the exercises of a lesson.
"""

import base64
import json
import re
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from regard.course.catalogue import entries, exercise
from regard.course.lessons import FOLDER, Lesson, lesson, lessons
from regard.course.lessons.markdown import (
    SHEET_SEED,
    LessonPart,
    code_and_output,
    draw,
    fence_indented_blocks,
    notebook_name,
    notebook_text,
    pieces,
)
from regard.messages import LANGUAGES, Language

TEXT = """# 1 · Title

First.

## Heading
Text.

```text
# no heading
```

After.

```python
x = 1  # one

print(x)
# 1
```

![A picture](pictures/two-heads.en.svg)

```bash
regard see
```
"""


def test_each_piece_has_its_kind() -> None:
    assert list(pieces(TEXT)) == [
        LessonPart("prose", "# 1 · Title\n\nFirst."),
        LessonPart("prose", "## Heading\nText.\n\n```text\n# no heading\n```\n\nAfter."),
        LessonPart("python", "x = 1  # one\n\nprint(x)\n# 1"),
        LessonPart("picture", "A picture", "two-heads.en.svg"),
        LessonPart("bash", "regard see"),
    ]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_no_line_of_a_lesson_is_lost(lesson: Lesson, lang: Language) -> None:
    def source(piece: LessonPart) -> str:
        match piece.kind:
            case "prose":
                return piece.text
            case "picture":
                return f"![{piece.text}](pictures/{piece.file})"
        return f"```{piece.kind}\n{piece.text}\n```"

    joined = "\n".join(map(source, pieces(lesson.text(lang))))
    assert [line for line in joined.splitlines() if line] == [line for line in lesson.text(lang).splitlines() if line]


def test_lines_of_code_stay_whole_in_the_terminal() -> None:
    """A line that is wider than the terminal was broken inside strings and comments, so that a copy did not run."""
    code = 'print("a long string of words", [1, 2, 3])  # 注释，比终端更宽\nprint(2)\n\n    indented'
    console = Console(width=30, force_terminal=True, color_system="truecolor")
    with console.capture() as captured:
        draw(f"Some words before the code, wrapped.\n\n```python\n{code}\n```\n", console, 30)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", captured.get()).splitlines()
    assert [line.removeprefix(" ").rstrip() for line in lines[4:-1]] == code.splitlines()
    assert {cell_len(line) for line in lines if cell_len(line) <= 30} <= {0, 30}


@pytest.mark.parametrize(
    ("block", "code", "printed"),
    [
        ("print(1)\n# 1", "print(1)", "1\n"),
        ("print()\nprint(2)\n#\n# 2", "print()\nprint(2)", "\n2\n"),
        ("print([[1],\n       [2]])\n# [[1]\n#  [2]]", "print([[1],\n       [2]])", "[[1]\n [2]]\n"),
        ("x = 1  # a comment", "x = 1  # a comment", ""),
    ],
)
def test_comments_on_their_own_lines_are_the_output(block: str, code: str, printed: str) -> None:
    assert code_and_output(block) == (code, printed)


def test_indented_blocks_of_a_task_are_fenced() -> None:
    task = "\nWrite\n\n    f(n) -> float\n\n- n is large;\n  at least 1.\n   \n"
    task += "    >>> f(1)\n    array([[1.],\n           [2.]])\n"
    assert fence_indented_blocks(task) == (
        "Write\n\n```text\nf(n) -> float\n```\n\n- n is large;\n  at least 1.\n\n"
        "```python\n>>> f(1)\narray([[1.],\n       [2.]])\n```"
    )


EACH = pytest.mark.parametrize("lang", LANGUAGES)
EVERY = pytest.mark.parametrize("one", lessons(), ids=lambda one: one.name)


def cells(one: Lesson, lang: Language) -> list[dict[str, Any]]:
    return [{**cell, "source": "".join(cell["source"])} for cell in json.loads(notebook_text(one, lang))["cells"]]


@EACH
@EVERY
def test_the_file_is_valid_and_written_as_jupyter_writes_it(one: Lesson, lang: Language) -> None:
    import nbformat  # takes more than a second, so not where tests are collected

    text = notebook_text(one, lang)
    found = nbformat.reads(text, as_version=4)
    nbformat.validate(found)
    assert (found.nbformat, found.nbformat_minor) == (4, 5)
    assert nbformat.writes(found) + "\n" == text, "saving it in Jupyter changes nothing"
    assert notebook_text(one, lang) == text
    ids = [cell.id for cell in found.cells]
    assert len(set(ids)) == len(ids)
    assert ids[0] == f"{one.name}-1"


@EACH
@EVERY
def test_pictures_are_inside_the_file(one: Lesson, lang: Language) -> None:
    text = notebook_text(one, lang)
    shown = re.findall(r'<img alt=\\"[^"]+\\" src=\\"data:image/svg\+xml;base64,([^"\\]+)\\">', text)
    named = re.findall(r"^!\[[^\]]*\]\(pictures/([^)]+)\)$", one.text(lang), flags=re.MULTILINE)
    assert named
    assert [base64.b64decode(data) for data in shown] == [(FOLDER / "pictures" / name).read_bytes() for name in named]
    assert "pictures/" not in text


@EACH
def test_code_has_its_output_and_no_comment_with_it(lang: Language) -> None:
    found = next(cell for cell in cells(lesson("2"), lang) if "scores = Q @ K.T\n" in cell["source"])
    assert found["source"].endswith("print(scores, scores.shape)")
    assert found["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["[[1. 0. 1.]] (1, 3)\n"]}]


@EACH
def test_the_first_code_cell_sets_the_language_and_the_path(lang: Language) -> None:
    for one in lessons():
        first, second = cells(one, lang)[:2]
        assert first["source"].startswith(f"# {one.number} · ")
        assert f'os.environ["REGARD_LANG"] = "{lang}"' in second["source"]
        compile(second["source"], "setup", "exec")


@EACH
def test_shell_commands_run_except_training(lang: Language) -> None:
    lines = [line for one in lessons() for cell in cells(one, lang) for line in cell["source"].splitlines()]
    assert '!regard see "I love you"' in lines
    assert "# !regard train copy --out runs/copy --film" in lines
    assert not [line for line in lines if re.match("!.*train", line)]


@EACH
@EVERY
def test_every_exercise_has_its_task_and_its_check(one: Lesson, lang: Language) -> None:
    found = cells(one, lang)
    checks = [re.search(r'^verdict = check\("([a-z-]+)", \w+(, \w+)*\)\Z', cell["source"], re.M) for cell in found]
    ids = [match[1] for match in checks if match]
    assert ids == [row.id for row in entries() if row.lesson == one.number]
    for at, match in enumerate(checks):
        if match is None:
            continue
        task = exercise(match[1])
        assert found[at - 1]["source"].startswith(f"### {getattr(task.title, lang)}\n\n`{task.id}` · ")
        initial = task.stub if task.sheet is None else task.sheet.make(SHEET_SEED, lang)
        assert initial.strip() in found[at]["source"]
        compile(found[at]["source"], task.id, "exec")


def test_a_sheet_stays_as_it_is_inside_quotes() -> None:
    """No backslash and no three quotes in any sheet, in any language."""
    for row in entries():
        sheet = exercise(row.id).sheet
        for lang in LANGUAGES if sheet else ():
            assert sheet is not None
            text = sheet.make(SHEET_SEED, lang)
            assert "\\" not in text
            assert '"""' not in text


def test_names_follow_the_lessons() -> None:
    assert [notebook_name(lesson("4"), lang) for lang in LANGUAGES] == ["04-masks.en.ipynb", "04-masks.zh-CN.ipynb"]
