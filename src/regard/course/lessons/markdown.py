"""The Markdown of lessons and tasks, cut into pieces: headings, prose, code blocks and pictures."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from regard.views.labels import CHINESE

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
