"""Finds lessons by number or name. Their texts are the Markdown files in this folder."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from regard.errors import UnknownNameError
from regard.messages import LANGUAGES, Language, Listed, Message, language

FOLDER = Path(__file__).parent
ENDINGS: dict[Language, str] = {"en": ".en.md", "zh": ".zh-CN.md"}


@dataclass(frozen=True)
class Lesson:
    """One lesson, in both languages."""

    number: int
    name: str
    title: Message

    def path(self, lang: Language | None = None) -> Path:
        """The file in `lang`, or in the current language."""
        return FOLDER / f"{self.number:02}-{self.name}{ENDINGS[lang or language()]}"

    def text(self, lang: Language | None = None) -> str:
        """The Markdown."""
        return self.path(lang).read_text(encoding="utf-8")


def lessons() -> tuple[Lesson, ...]:
    """All lessons, in order."""
    return _lessons(FOLDER)


@cache
def _lessons(folder: Path) -> tuple[Lesson, ...]:
    found = []
    for path in sorted(folder.glob(f"*{ENDINGS['en']}")):
        stem = path.name.removesuffix(ENDINGS["en"])
        number, _, name = stem.partition("-")
        titles = (_title(folder / f"{stem}{ENDINGS[lang]}") for lang in LANGUAGES)
        found.append(Lesson(int(number), name, Message(*titles)))
    return tuple(found)


def lesson(name: str) -> Lesson:
    """The lesson with this number (4, 04) or name (masks, 04-masks).

    The error for an unknown lesson suggests the closest one, if any, and lists all.
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    all_lessons = lessons()
    for one in all_lessons:
        if wanted in (one.name, f"{one.number:02}-{one.name}") or wanted.lstrip("0") == str(one.number):
            return one
    listed = Listed(f"{one.number} {one.name}" for one in all_lessons)
    names = [one.name for one in all_lessons]
    near = [known for known in names if wanted and wanted in known] or get_close_matches(wanted, names, n=1, cutoff=0.4)
    if near:
        raise UnknownNameError("lesson-unknown-near", asked=name, nearest=near[0], listed=listed)
    raise UnknownNameError("lesson-unknown", asked=name, listed=listed)


def _title(path: Path) -> str:
    """The first heading, without its number."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if heading := re.match(r"#\s+(?:\d+\s*[·.:：]\s*)?(.*)", line):
                return heading[1].strip()
    return path.name
