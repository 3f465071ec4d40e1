"""A document in both languages, for the tests of the docs: its code blocks, prose and tables, and runs of its code.

In a Python block, a comment on its own line is the output of the line above; other comments are ignored.
"""

import ast
import contextlib
import io
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from regard.messages import LANGUAGES, Language, use_language

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Page:
    """One document in English and Chinese."""

    en: str
    zh: str

    def path(self, lang: Language) -> str:
        return self.en if lang == "en" else self.zh

    def text(self, lang: Language) -> str:
        return _read(self.path(lang))

    def blocks(self, lang: Language, kind: str) -> list[str]:
        """The fenced blocks of one kind."""
        return re.findall(rf"^```{kind}\n(.*?)^```$", self.text(lang), flags=re.DOTALL | re.MULTILINE)

    def prose(self, lang: Language) -> str:
        """The text outside of fenced blocks."""
        return re.sub(r"^```.*?^```$", "", self.text(lang), flags=re.DOTALL | re.MULTILINE)

    def tables(self, lang: Language) -> list[list[list[str]]]:
        """Tables as rows of cells, including the header row, without the line under it."""
        found = re.findall(r"(?:^\|.*\|\n)+", self.prose(lang), flags=re.MULTILINE)
        rows = [[line for line in table.splitlines() if not line.startswith("|---")] for table in found]
        return [[[cell.strip() for cell in line[1:-1].split("|")] for line in table] for table in rows]

    def assert_same_code(self) -> None:
        """The Python code of both languages is the same except for comments."""
        english, chinese = ([ast.dump(ast.parse(block)) for block in self.blocks(lang, "python")] for lang in LANGUAGES)
        assert english == chinese

    def assert_same_marks(self, *patterns: str) -> None:
        """Each pattern finds the same matches outside of blocks in both languages, and at least one."""
        for pattern in patterns:
            english, chinese = (re.findall(pattern, self.prose(lang), flags=re.MULTILINE) for lang in LANGUAGES)
            assert english == chinese, pattern
            assert english

    def assert_same_names(self) -> None:
        """Each section has the same code spans in both languages."""
        sections = (re.split(r"^#+ .*$", self.prose(lang), flags=re.MULTILINE) for lang in LANGUAGES)
        for one, other in zip(*sections, strict=True):
            assert Counter(spans(one)) == Counter(spans(other))

    def assert_chinese_punctuation(self) -> None:
        """Chinese characters are followed by full-width punctuation."""
        bare = re.sub(r"`[^`]+`|\]\([^)]+\)", "", self.prose("zh"))
        assert not re.findall(r"[\u4e00-\u9fff][,;:!?]", bare)
        assert re.search(r"[\u4e00-\u9fff]，", bare)

    def run(self, lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
        """Run every Python block in order in one namespace; each prints what its comments show."""
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        namespace: dict[str, Any] = {}
        assert self.blocks(lang, "python")
        for block in self.blocks(lang, "python"):
            expected = printed_lines(block)
            with use_language(lang), contextlib.redirect_stdout(io.StringIO()) as screen:
                exec(compile(block, self.path(lang), "exec"), namespace)
            printed = [line.rstrip() for line in screen.getvalue().splitlines()]
            assert comparable(printed, block) == comparable(expected, block)

    def prints_the_same(self) -> bool:
        """Whether the blocks of both languages show the same output; their code is the same, so one run shows both."""
        english, chinese = ([printed_lines(block) for block in self.blocks(lang, "python")] for lang in LANGUAGES)
        return english == chinese


def printed_lines(block: str) -> list[str]:
    """The output that a block shows: its comments on lines of their own."""
    return [line.removeprefix("#").removeprefix(" ") for line in block.splitlines() if line.startswith("#")]


FIGURES_DIFFER = ("# your figures differ", "# 你的数字会不同")
"""Marks a line that prints figures of the reader's machine."""


def comparable(lines: list[str], code: str) -> list[str]:
    """The lines of output, without decimal fractions if the code marks them as figures of the machine."""
    if not any(mark in code for mark in FIGURES_DIFFER):
        return lines
    return [re.sub(r"\d+\.\d+", "#", line) for line in lines]


@cache
def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def spans(text: str) -> list[str]:
    """The text between backticks."""
    return re.findall(r"`([^`]+)`", text)
