"""Shows a lesson in the terminal: rich's Markdown with line breaks between Chinese characters, and its pictures."""

import re
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, Paragraph

from regard.cli.help_page import WIDEST
from regard.course.lessons.markdown import join_chinese_lines
from regard.messages import language
from regard.views.labels import line_breaks

_PICTURE = re.compile(r"^!\[[^\]]*\]\(pictures/([a-z0-9-]+)\.(?:en|zh)\.svg\)$", flags=re.MULTILINE)


class _Paragraph(Paragraph):
    """A paragraph that wraps Chinese text; rich treats a Chinese sentence as one long word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.divide(line_breaks(self.text.plain, options.max_width)):
            line.rstrip()
            yield line


class _Lesson(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "paragraph_open": _Paragraph}


def draw(text: str, console: Console | None = None) -> None:
    """Print Markdown in a readable width, its pictures drawn as text."""
    console = console or Console()
    width = min(console.width, WIDEST)
    pieces = _PICTURE.split(text)  # text, name of a picture, text, …
    for prose, name in zip(pieces[::2], [*pieces[1::2], None], strict=True):
        console.print(_Lesson(join_chinese_lines(prose), hyperlinks=False), width=width)
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
