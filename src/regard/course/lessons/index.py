"""Lessons found by number or name. What they say stands in the Markdown beside this file; who shows it is not known."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from regard.course.catalogue import coming, entries
from regard.errors import UnknownNameError
from regard.messages import LANGUAGES, Language, Listed, Words, language

FOLDER = Path(__file__).parent
ENDINGS: dict[Language, str] = {"en": ".en.md", "zh": ".zh-CN.md"}


@dataclass(frozen=True)
class Lesson:
    """One lesson, in both languages."""

    number: int
    name: str
    title: Words

    def path(self, lang: Language | None = None) -> Path:
        """Its file in `lang`, or in the language of the moment."""
        return FOLDER / f"{self.number:02}-{self.name}{ENDINGS[lang or language()]}"

    def text(self, lang: Language | None = None) -> str:
        """The Markdown."""
        return self.path(lang).read_text(encoding="utf-8")


def lessons() -> tuple[Lesson, ...]:
    """All that there are, in order."""
    return _lessons(FOLDER)


@cache
def _lessons(folder: Path) -> tuple[Lesson, ...]:
    found = []
    for path in sorted(folder.glob(f"*{ENDINGS['en']}")):
        stem = path.name.removesuffix(ENDINGS["en"])
        number, _, name = stem.partition("-")
        titles = (_title(folder / f"{stem}{ENDINGS[lang]}") for lang in LANGUAGES)
        found.append(Lesson(int(number), name, Words(*titles)))
    return tuple(found)


def lesson(asked: str) -> Lesson:
    """The lesson of that number (4, 04) or name (masks, 04-masks); an unknown one is told the nearest.

    For one whose text is still to come, the exercises that there are.
    """
    wanted = asked.strip().lower().replace("_", "-").replace(" ", "-")
    known = lessons()
    for one in known:
        if wanted in (one.name, f"{one.number:02}-{one.name}") or wanted.lstrip("0") == str(one.number):
            return one
    for number in coming():
        if wanted.lstrip("0") == str(number):
            exercises = Listed(row.id for row in entries() if row.lesson == number)
            raise UnknownNameError("lesson-coming", number=number, exercises=exercises)
    listed = Listed(f"{one.number} {one.name}" for one in known)
    names = [one.name for one in known]
    near = [name for name in names if wanted and wanted in name] or get_close_matches(wanted, names, n=1, cutoff=0.4)
    if near:
        raise UnknownNameError("lesson-unknown-near", asked=asked, nearest=near[0], listed=listed)
    raise UnknownNameError("lesson-unknown", asked=asked, listed=listed)


def _title(path: Path) -> str:
    """The first heading, without the number that it may begin with."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if heading := re.match(r"#\s+(?:\d+\s*[·.:：]\s*)?(.*)", line):
                return heading[1].strip()
    return path.name
