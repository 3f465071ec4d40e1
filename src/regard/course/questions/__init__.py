"""The question bank and the review schedule.

One TOML file per topic: a title in both languages, then the questions. A question has an id, its source (`from`), a
level, a lesson, an exercise, an experiment of a few lines, and the texts in both languages.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from regard.course.progress import Card, Rating, timestamp
from regard.errors import UnknownNameError
from regard.messages import LANGUAGES, Language, Message, language

FOLDER = Path(__file__).parent
LEVELS = (1, 2, 3)
"""1: the basics, 2: usual in interviews, 3: for specialists."""
IN_OWN_WORDS = ("attention-formula", "why-sqrt-d-k", "what-softmax-does")
"""The three questions of document 002 on the check-list; listed here so that the check-list need not load the bank."""


@dataclass(frozen=True)
class QuestionText:
    """A question and its answers in one language."""

    ask: str
    short: str
    deep: str


@dataclass(frozen=True)
class Question:
    """One question with its lesson, exercise and experiment."""

    id: str
    source: str
    topic: str
    level: int
    lesson: int
    exercise: str
    experiment: str
    en: QuestionText
    zh: QuestionText

    def text(self, lang: Language | None = None) -> QuestionText:
        """The question in `lang`, or in the current language."""
        return self.zh if (lang or language()) == "zh" else self.en


@cache
def questions() -> tuple[Question, ...]:
    """All questions: those of the check-list first, then by lesson.

    >>> questions()[0].id
    'attention-formula'
    """
    found = [_question(topic, row) for topic, table in _tables().items() for row in table["question"]]
    return tuple(sorted(found, key=lambda question: (question.id not in IN_OWN_WORDS, question.lesson)))


def topics() -> Mapping[str, Message]:
    """The titles of the topics by name.

    >>> topics()["masks"].en
    'Masks'
    """
    return {topic: Message(**table["title"]) for topic, table in _tables().items()}


@cache
def _tables() -> Mapping[str, dict[str, Any]]:
    """The content of each file, by topic."""
    paths = sorted(FOLDER.glob("*.toml"))
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in paths}


def _question(topic: str, row: Mapping[str, Any]) -> Question:
    texts = {lang: QuestionText(**{part: text.strip() for part, text in row[lang].items()}) for lang in LANGUAGES}
    fields = {name: row[name] for name in ("id", "level", "lesson", "exercise", "experiment")}
    return Question(source=row["from"], topic=topic, en=texts["en"], zh=texts["zh"], **fields)


def question(name: str) -> Question:
    """The question with this id. The error for an unknown id suggests the closest one, if any."""
    known = {one.id: one for one in questions()}
    wanted = name.strip().lower().replace("_", "-")
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        if not near:
            raise UnknownNameError("question-unknown", asked=name, count=len(known))
        raise UnknownNameError("question-unknown-near", asked=name, nearest=near[0], count=len(known))
    return known[wanted]


WAITS = (1, 3, 7, 14, 30, 60)
"""WAITS[n] is the number of days until the next review after n + 1 good answers in a row."""


def rate(card: Card | None, rating: Rating, today: date) -> Card:
    """The card after a rating: "good" moves it up one box, "again" back to the start, "unsure" makes it due tomorrow.

    >>> rate(rate(None, "good", date(2026, 1, 1)), "good", date(2026, 1, 2)).due
    '2026-01-05'
    """
    box = 0 if card is None else card.box
    if rating == "good":
        box = min(box + 1, len(WAITS))
        days = WAITS[box - 1]
    elif rating == "unsure":
        days = 1
    else:
        box, days = 0, 0
    return Card(box=box, due=(today + timedelta(days)).isoformat(), rated=rating, at=timestamp())


def is_due(card: Card, today: date) -> bool:
    """Whether the card is due."""
    return card.due <= today.isoformat()


def next_question(ids: Sequence[str], cards: Mapping[str, Card], today: date) -> str | None:
    """The next question: the longest overdue, then new ones, then those missed today; None if none is due."""

    def order(place: int) -> tuple[int, str, int]:
        card = cards.get(ids[place])
        if card is None:
            return 1, "", place
        missed_today = card.rated == "again" and card.due == today.isoformat()
        return (2, card.at, place) if missed_today else (0, card.due, place)

    waiting = [place for place, one in enumerate(ids) if one not in cards or is_due(cards[one], today)]
    return ids[min(waiting, key=order)] if waiting else None


def next_day(ids: Sequence[str], cards: Mapping[str, Card]) -> str | None:
    """The day on which the next question is due; None if there is none."""
    return min((cards[one].due for one in ids if one in cards), default=None)
