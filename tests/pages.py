"""A page in both languages, as the tests of documents read it: its blocks, its prose, and its code run and compared.

In a Python block a comment on a line of its own is what the line above prints; other comments stand beside code.
"""

import contextlib
import io
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from regard.words import Language, speaking

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
