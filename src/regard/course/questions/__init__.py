"""The question bank, the review schedule, and mock interviews.

One TOML file per topic: a title in both languages, then the questions. A question has an id, its source (`from`), a
level, a lesson, an exercise, an experiment of five lines, and the texts in both languages. A mock interview chooses
questions and adds up ratings; the command measures the time and asks for the ratings.
"""

import random
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from regard.course.progress import Card, Rating, timestamp
from regard.errors import ArgumentError, UnknownNameError
from regard.messages import LANGUAGES, Language, Listed, Message, language

FOLDER = Path(__file__).parent
LEVELS = (1, 2, 3)
"""1: the basics, 2: usual in interviews, 3: for specialists."""
LIMITS = {1: 120, 2: 180, 3: 300}
"""Seconds for a question of each level. They are shown; nothing happens when they are exceeded."""
POINTS: dict[Rating, int] = {"good": 2, "unsure": 1, "again": 0}
N_WEAKEST = 3
"""The largest number of topics in the summary."""
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


@dataclass(frozen=True)
class RatedAnswer:
    """A rated answer. `seconds` is None if the time was not measured."""

    question: Question
    rating: Rating
    seconds: float | None = None


@dataclass(frozen=True)
class Summary:
    """The result of an interview: counts, score in percent, time, weakest topics, and what to study again."""

    ratings: dict[Rating, int]
    score: int
    seconds: float | None
    limit: int
    over_limit: int
    weakest: tuple[str, ...]
    lessons: tuple[int, ...]
    exercises: tuple[str, ...]


def interview_questions(
    count: int, seed: int, topic: str | None = None, level: int | None = None
) -> tuple[Question, ...]:
    """At most `count` random questions of a topic and level, the easier ones first, from as many topics as possible.

    Raises ArgumentError if the topic has no question of this level.

    >>> [one.level for one in interview_questions(4, seed=0, topic="masks")]
    [1, 1, 2, 2]
    """
    fitting = [one for one in questions() if topic in (None, one.topic) and level in (None, one.level)]
    if not fitting:
        levels = Listed(sorted({one.level for one in questions() if one.topic == topic}))
        raise ArgumentError("interview-none", topic=topic, level=level, levels=levels)
    random.Random(seed).shuffle(fitting)
    earlier = [sum(other.topic == one.topic for other in fitting[:place]) for place, one in enumerate(fitting)]
    rounds = sorted(range(len(fitting)), key=lambda place: earlier[place])  # one question per topic and round
    return tuple(sorted((fitting[place] for place in rounds[:count]), key=lambda one: one.level))


def topic_named(name: str) -> str:
    """The topic with this name, or with this title in either language. The error for an unknown one lists all."""
    wanted = name.strip().lower()
    for topic, title in topics().items():
        if wanted in (topic, title.en.lower(), title.zh.lower()):
            return topic
    near = get_close_matches(wanted, topics(), n=1)
    if near:
        raise UnknownNameError("topic-unknown-near", asked=name, nearest=near[0], topics=Listed(topics()))
    raise UnknownNameError("topic-unknown", asked=name, topics=Listed(topics()))


def time_limit(chosen: Iterable[Question]) -> int:
    """The time limit of these questions together, in seconds."""
    return sum(LIMITS[one.level] for one in chosen)


def summary(answers: Sequence[RatedAnswer]) -> Summary:
    """The result of the rated answers. What is not rated does not count."""
    missed = [one.question for one in answers if one.rating != "good"]
    timed = [(one.seconds, LIMITS[one.question.level]) for one in answers if one.seconds is not None]
    return Summary(
        ratings={rating: sum(one.rating == rating for one in answers) for rating in POINTS},
        score=_score(answers),
        seconds=sum(seconds for seconds, _ in timed) if timed else None,
        limit=time_limit(one.question for one in answers),
        over_limit=sum(seconds > most for seconds, most in timed),
        weakest=_weakest(answers),
        lessons=tuple(sorted({one.lesson for one in missed})),
        exercises=tuple(dict.fromkeys(one.exercise for one in missed)),
    )


def _score(answers: Sequence[RatedAnswer]) -> int:
    """Percent of the points: "good" counts fully, "unsure" half."""
    return round(100 * sum(POINTS[one.rating] for one in answers) / (2 * len(answers))) if answers else 0


def _weakest(answers: Sequence[RatedAnswer]) -> tuple[str, ...]:
    """The topics with the lowest scores; topics with the full score are left out."""
    asked = dict.fromkeys(one.question.topic for one in answers)
    scores = {topic: _score([one for one in answers if one.question.topic == topic]) for topic in asked}
    return tuple(sorted((topic for topic in scores if scores[topic] < 100), key=scores.__getitem__)[:N_WEAKEST])
