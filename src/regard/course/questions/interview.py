"""A mock interview: the choice of questions, their time limits, and the summary of the answers.

Independent of the terminal: the command measures the time and asks for the ratings.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from regard.course.progress import Rating
from regard.course.questions import Question, questions, topics
from regard.errors import ArgumentError, UnknownNameError
from regard.messages import Listed

LIMITS = {1: 120, 2: 180, 3: 300}
"""Seconds for a question of each level. They are shown; nothing happens when they are exceeded."""
POINTS: dict[Rating, int] = {"good": 2, "unsure": 1, "again": 0}
WEAKEST = 3
"""The largest number of topics in the summary."""


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


def choose(count: int, seed: int, topic: str | None = None, level: int | None = None) -> tuple[Question, ...]:
    """At most `count` random questions of a topic and level, the easier ones first, from as many topics as possible.

    Raises ArgumentError if the topic has no question of this level.

    >>> [one.level for one in choose(4, seed=0, topic="masks")]
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


def limit(chosen: Iterable[Question]) -> int:
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
        limit=limit(one.question for one in answers),
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
    return tuple(sorted((topic for topic in scores if scores[topic] < 100), key=scores.__getitem__)[:WEAKEST])
