"""Shows a lesson in the terminal: rich's Markdown, with line breaks between Chinese characters too."""

import re
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, Paragraph

from regard.cli.help_page import CHINESE, WIDEST, line_breaks

_BLOCK = re.compile(r"(^```.*?^```$)", flags=re.DOTALL | re.MULTILINE)
_END_OF_LINE = re.compile(rf"(?<=[{CHINESE}])\n(?=[{CHINESE}])")


class _Paragraph(Paragraph):
    """A paragraph that wraps Chinese text; rich treats a Chinese sentence as one long word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.divide(line_breaks(self.text.plain, options.max_width)):
            line.rstrip()
            yield line


class _Lesson(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "paragraph_open": _Paragraph}


def draw(text: str, console: Console | None = None) -> None:
    """Print Markdown in a readable width."""
    console = console or Console()
    console.print(_Lesson(_joined(text), hyperlinks=False), width=min(console.width, WIDEST))


def _joined(text: str) -> str:
    """Join lines of Chinese prose; Markdown would put a space at each line break.

    >>> _joined("注意\\n力\\n\\n```text\\n注意\\n力\\n```\\n")
    '注意力\\n\\n```text\\n注意\\n力\\n```\\n'
    """
    parts = _BLOCK.split(text)
    parts[::2] = [_END_OF_LINE.sub("", part) for part in parts[::2]]
    return "".join(parts)
