"""The Markdown of lessons and tasks: cut into pieces, drawn in the terminal, and written as a Jupyter notebook.

Pieces are headings, prose, code blocks and pictures. The notebook has code with the output that the lesson states, and
the lesson's exercises. It is plain JSON in version 4.5 of Jupyter's format, so that writing it needs no package of
Jupyter; the same lesson always gives the same bytes.
"""

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown, MarkdownElement, Paragraph
from rich.syntax import Syntax
from rich.text import Text

from regard.course.catalogue import entries, exercise
from regard.course.exercise import Entry, Exercise
from regard.course.lessons import FOLDER, Lesson
from regard.messages import Language, language, say
from regard.views.labels import CHINESE, line_breaks

_BLOCK = re.compile(r"(^```.*?^```$)", flags=re.DOTALL | re.MULTILINE)
_END_OF_LINE = re.compile(rf"(?<=[{CHINESE}])\n *(?=[{CHINESE}])")
_PIECE = re.compile(
    r"^```(?P<kind>\w*)\n(?P<code>.*?)^```$"
    r"|^!\[(?P<title>[^\]]*)\]\(pictures/(?P<picture>[a-z0-9.-]+)\)$"
    r"|^(?P<heading>#+ [^\n]*)$",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class LessonPart:
    """A part of a lesson. `text` is the Markdown of prose, the code of a block, or the title of a picture."""

    kind: Literal["prose", "python", "bash", "picture"]
    text: str
    file: str = ""
    """The file name of a picture."""


def pieces(text: str) -> Iterator[LessonPart]:
    """The lesson in order. Each heading begins a new piece of prose; blocks of neither Python nor bash are prose.

    >>> [piece.kind for piece in pieces("# One\\n\\nText.\\n\\n```python\\nprint(1)\\n# 1\\n```\\n")]
    ['prose', 'python']
    """
    prose, at = "", 0
    for found in _PIECE.finditer(text):
        prose += text[at : found.start()]
        at = found.end()
        is_other_block = found["code"] is not None and found["kind"] not in ("python", "bash")
        if is_other_block:
            prose += found[0]
            continue
        if prose.strip():
            yield LessonPart("prose", prose.strip())
        prose = found["heading"] or ""
        if found["code"] is not None:
            yield LessonPart("python" if found["kind"] == "python" else "bash", found["code"].rstrip("\n"))
        elif found["picture"]:
            yield LessonPart("picture", found["title"], found["picture"])
    if (rest := prose + text[at:]).strip():
        yield LessonPart("prose", rest.strip())


def code_and_output(block: str) -> tuple[str, str]:
    """A Python block of a lesson without its comments on lines of their own, and what they say: the printed output.

    >>> code_and_output("x = 1  # one\\nprint(x)\\n# 1")
    ('x = 1  # one\\nprint(x)', '1\\n')
    """
    lines = block.splitlines()
    printed = [line.removeprefix("#").removeprefix(" ") for line in lines if line.startswith("#")]
    code = "\n".join(line for line in lines if not line.startswith("#"))
    return code.strip("\n"), "".join(f"{line}\n" for line in printed)


def join_chinese_lines(text: str) -> str:
    """Join lines of Chinese prose; Markdown would put a space at each line break.

    >>> join_chinese_lines("注意\\n力\\n\\n```text\\n注意\\n力\\n```\\n")
    '注意力\\n\\n```text\\n注意\\n力\\n```\\n'
    """
    parts = _BLOCK.split(text)
    parts[::2] = [_END_OF_LINE.sub("", part) for part in parts[::2]]
    return "".join(parts)


def fence_indented_blocks(text: str) -> str:
    """The text of a task with ``` around its indented blocks: below a list, Markdown takes indented text for prose.

    >>> fence_indented_blocks("- n is 1 or more.\\n\\n    f(n) -> float")
    '- n is 1 or more.\\n\\n```text\\nf(n) -> float\\n```'
    """
    paragraphs = re.split(r"\n(?: *\n)+", text.strip("\n"))
    return "\n\n".join(map(_fenced, paragraphs))


def _fenced(paragraph: str) -> str:
    lines = paragraph.splitlines()
    if not all(line.startswith("    ") for line in lines):
        return paragraph
    kind = "python" if lines[0].startswith("    >>>") else "text"
    return "\n".join([f"```{kind}", *(line[4:] for line in lines), "```"])


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
    from regard.course.notebook import required_names  # imports NumPy and the grader, which the terminal does not need

    names = ", ".join(required_names(found))
    return f'{found.stub.strip()}\n\n\nverdict = check("{found.id}", {names})'


def _markdown(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(code: str, printed: str = "") -> Cell:
    outputs = [{"name": "stdout", "output_type": "stream", "text": _lines(printed)}] if printed else []
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs, "source": _lines(code)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


_PICTURE = re.compile(r"^!\[[^\]]*\]\(pictures/([a-z0-9-]+)\.(?:en|zh)\.svg\)$", flags=re.MULTILINE)


class _Paragraph(Paragraph):
    """A paragraph that wraps Chinese text; rich treats a Chinese sentence as one long word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.divide(line_breaks(self.text.plain, options.max_width)):
            line.rstrip()
            yield line


class _CodeBlock(CodeBlock):
    """Code whose long lines stay whole, so that a copy of them runs; rich breaks them, also inside strings."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax("", self.lexer_name, theme=self.theme).highlight(str(self.text).rstrip())
        code.rstrip()
        for line in ("", *code.split("\n"), ""):
            row = Text(" ", code.style, no_wrap=True, overflow="ignore") + line
            row.pad_right(max(0, options.max_width - row.cell_len))
            yield row


class _Lesson(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "paragraph_open": _Paragraph,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }


def draw(text: str, console: Console, width: int) -> None:
    """Print Markdown `width` columns wide, its pictures drawn as text."""
    parts = _PICTURE.split(text)  # text, name of a picture, text, …
    for prose, name in zip(parts[::2], [*parts[1::2], None], strict=True):
        console.print(_Lesson(join_chinese_lines(prose), hyperlinks=False), width=width, crop=False)
        if name is not None:
            _draw_picture(name, console, width)


def _draw_picture(name: str, console: Console, width: int) -> None:
    from regard.course.drawings import drawing
    from regard.course.drawings.terminal import drawing_lines
    from regard.views.terminal import depth_of

    console.print()
    for line in drawing_lines(drawing(name), language(), width - 2, depth_of(console)):
        console.print("  ", line, sep="", no_wrap=True, overflow="crop", highlight=False)
    console.print()
