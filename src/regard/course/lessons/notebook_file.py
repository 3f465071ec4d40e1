"""A lesson as a Jupyter notebook: prose, code with the output that the lesson states, pictures, and its exercises.

The file is plain JSON in version 4.5 of Jupyter's format, so that writing it needs no package of Jupyter. The same
lesson always gives the same bytes.
"""

import html
import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from regard.course.catalogue import entries, exercise
from regard.course.exercise import Entry, Exercise
from regard.course.lessons import FOLDER, Lesson
from regard.course.lessons.markdown import (
    LessonPart,
    code_and_output,
    fence_indented_blocks,
    join_chinese_lines,
    pieces,
)
from regard.course.notebook import required_names
from regard.messages import Language, say

ENDING = ".ipynb"
SHEET_SEED = 1
"""The seed of answer sheets: a notebook that is made again is the same."""

Cell = dict[str, Any]


def notebook_name(lesson: Lesson, lang: Language) -> str:
    """The file name of a notebook: that of the lesson's text with another ending, such as 04-masks.zh-CN.ipynb."""
    return lesson.path(lang).with_suffix(ENDING).name


def notebook_text(lesson: Lesson, lang: Language) -> str:
    """The notebook as JSON, formatted as Jupyter formats it."""
    first, *others = pieces(lesson.text(lang))
    cells = [_cell_of(first, lang), _code(_setup(lang)), *(_cell_of(piece, lang) for piece in others)]
    rows = [row for row in entries() if row.lesson == lesson.number]
    if rows:
        cells += [_markdown(say("notebook-exercises", lang)), _code("from regard.course import check")]
        for row in rows:
            cells += _exercise(row, lang)
    content = {
        "cells": [{"id": f"{lesson.name[:50]}-{number}", **cell} for number, cell in enumerate(cells, start=1)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _cell_of(piece: LessonPart, lang: Language) -> Cell:
    """The cell of one piece of a lesson."""
    match piece.kind:
        case "python":
            return _code(*code_and_output(piece.text))
        case "bash":
            return _code(_shell(piece.text, lang))
        case "picture":
            return _picture(piece)
    return _markdown(join_chinese_lines(piece.text))


def _setup(lang: Language) -> str:
    """The first code cell: it sets the language, and lets `!regard` find the command of the notebook's Python."""
    return (
        f"# {say('notebook-setup', lang)}\n"
        "import os\n"
        "import sysconfig\n"
        "\n"
        f'os.environ["REGARD_LANG"] = "{lang}"\n'
        'os.environ["PATH"] = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]'
    )


def _shell(commands: str, lang: Language) -> str:
    """Shell commands as lines of a notebook. Training takes long, so "Run all" does not start it."""
    lines = [f"!{line}" for line in commands.splitlines()]
    if "regard train" in commands:
        lines = [f"# {say('notebook-training', lang)}", *(f"# {line}" for line in lines)]
    return "\n".join(lines)


def _picture(piece: LessonPart) -> Cell:
    """A picture inside the text of its cell.

    Not an attachment and not an output: JupyterLab shows no SVG attachments, and SVG outputs only after the reader has
    declared the notebook trusted. An <img> with its data is shown by JupyterLab, VS Code and nbconvert.
    """
    data = b64encode((FOLDER / "pictures" / piece.file).read_bytes()).decode("ascii")
    return _markdown(f'<img alt="{html.escape(piece.text)}" src="data:image/svg+xml;base64,{data}">')


def _exercise(row: Entry, lang: Language) -> Iterator[Cell]:
    """The task, and a cell with the initial file that ends with its check."""
    found = exercise(row.id)
    kind = say(f"learn-kind-{row.kind}", lang, track={"numpy": "NumPy", "torch": "PyTorch"}[row.track])
    task = join_chinese_lines(fence_indented_blocks(getattr(found.task, lang)))
    yield _markdown(f"### {getattr(row.title, lang)}\n\n`{row.id}` · {kind}\n\n{task}")
    yield _code(_answer(found, lang))


def _answer(found: Exercise, lang: Language) -> str:
    if found.sheet is not None:
        sheet = found.sheet.make(SHEET_SEED, lang).strip("\n")
        return f'answers = """\n{sheet}\n"""\n\nverdict = check("{found.id}", answers)'
    names = ", ".join(required_names(found))
    return f'{found.stub.strip()}\n\n\nverdict = check("{found.id}", {names})'


def _markdown(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(code: str, printed: str = "") -> Cell:
    outputs = [{"name": "stdout", "output_type": "stream", "text": _lines(printed)}] if printed else []
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs, "source": _lines(code)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
