"""A page in both languages, as the tests of documents read it: its blocks, its prose, and its code run and compared.

In a Python block a comment on a line of its own is what the line above prints; other comments stand beside code.
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

from regard.messages import LANGUAGES, Language, speaking

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Page:
    """One page, written twice."""

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
        """What stands outside of blocks."""
        return re.sub(r"^```.*?^```$", "", self.text(lang), flags=re.DOTALL | re.MULTILINE)

    def tables(self, lang: Language) -> list[list[list[str]]]:
        """Tables of rows of cells, the head among them, without the line under it."""
        found = re.findall(r"(?:^\|.*\|\n)+", self.prose(lang), flags=re.MULTILINE)
        rows = [[line for line in table.splitlines() if not line.startswith("|---")] for table in found]
        return [[[cell.strip() for cell in line[1:-1].split("|")] for line in table] for table in rows]

    def assert_same_code(self) -> None:
        """The Python of both languages is the same, but for remarks."""
        english, chinese = ([ast.dump(ast.parse(block)) for block in self.blocks(lang, "python")] for lang in LANGUAGES)
        assert english == chinese

    def assert_same_marks(self, *patterns: str) -> None:
        """What each pattern finds outside of blocks is the same in both languages, and not nothing."""
        for pattern in patterns:
            english, chinese = (re.findall(pattern, self.prose(lang), flags=re.MULTILINE) for lang in LANGUAGES)
            assert english == chinese, pattern
            assert english

    def assert_same_names(self) -> None:
        """Section by section, the same things stand in backticks."""
        sections = (re.split(r"^#+ .*$", self.prose(lang), flags=re.MULTILINE) for lang in LANGUAGES)
        for one, other in zip(*sections, strict=True):
            assert Counter(spans(one)) == Counter(spans(other))

    def assert_chinese_punctuation(self) -> None:
        """Full-width marks follow Chinese characters."""
        bare = re.sub(r"`[^`]+`|\]\([^)]+\)", "", self.prose("zh"))
        assert not re.findall(r"[\u4e00-\u9fff][,;:!?]", bare)
        assert re.search(r"[\u4e00-\u9fff]，", bare)

    def run(self, lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every Python block in order, in one namespace, as a reader would paste them: each prints what it says."""
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        namespace: dict[str, Any] = {}
        assert self.blocks(lang, "python")
        for block in self.blocks(lang, "python"):
            said = [line.removeprefix("#").removeprefix(" ") for line in block.splitlines() if line.startswith("#")]
            with speaking(lang), contextlib.redirect_stdout(io.StringIO()) as screen:
                exec(compile(block, self.path(lang), "exec"), namespace)
            assert [line.rstrip() for line in screen.getvalue().splitlines()] == said


@cache
def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def spans(words: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", words)
