"""The course as one path: lessons, exercises and questions in order, with an estimated time for each step.

The times follow one rule from counts of the texts themselves (`docs/learning.md` states it); no step has a time of its
own. Independent of NumPy and of the graders, so that the overview is fast.
"""

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Literal

from regard.course.catalogue import entries, folder
from regard.course.exercise import Entry
from regard.course.lessons import Lesson, lessons
from regard.course.progress import Progress
from regard.course.questions import LIMITS, Question, questions
from regard.messages import Language, language

WORDS, CHARACTERS = 120, 200
"""Words, and Chinese characters, that are read in a minute when a text is studied."""
BLOCK = 1.0
"""Minutes for each code block and each picture of a lesson."""
EXERCISE = 10.0
"""Minutes for each exercise besides: to start, to check, and to fix what the check finds."""
LINE = 2.0
"""Minutes for each line of code that an exercise asks for: a line of the solution that the initial file lacks."""
SEARCHED_LINE = 1.0
"""Minutes for each line of a program with a bug."""
SHEET_STEP = 5.0
"""Minutes for each step of an answer sheet."""

_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[[^]]*\]\([^)]*\)")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z0-9]+(?:['’-][A-Za-z0-9]+)*")

StepKind = Literal["lesson", "exercise", "question"]


@dataclass(frozen=True)
class PathStep:
    """One step of the path."""

    kind: StepKind
    id: str
    """The name of the lesson, or the id of the exercise or question."""
    lesson: int
    title: str
    minutes: float
    is_done: bool
    command: str


@dataclass(frozen=True)
class LastDone:
    """The most recent thing in the progress."""

    kind: StepKind
    id: str
    at: str


def steps(progress: Progress) -> tuple[PathStep, ...]:
    """Every step, lesson by lesson: its text, its exercises, its questions."""
    found = [_lesson_step(lesson, progress) for lesson in lessons()]
    found += [_exercise_step(row, progress) for row in entries()]
    found += [_question_step(question, progress) for question in questions()]
    return tuple(sorted(found, key=lambda step: step.lesson))


def minutes_left(path: tuple[PathStep, ...]) -> float:
    """The time of the steps that are not done."""
    return sum(step.minutes for step in path if not step.is_done)


def last_done(progress: Progress) -> LastDone | None:
    """What the learner did last; None if nothing is recorded."""
    found = [LastDone("lesson", one, at) for one, at in progress.lessons.items()]
    found += [LastDone("question", one, card.at) for one, card in progress.questions.items()]
    for one, work in progress.exercises.items():
        if at := work.worked_at or work.passed_at:
            found.append(LastDone("exercise", one, at))
    return max(found, key=lambda one: one.at, default=None)


# --- steps -------------------------------------------------------------------------------------------------


def _lesson_step(lesson: Lesson, progress: Progress) -> PathStep:
    minutes, title = lesson_minutes(lesson.number, language()), getattr(lesson.title, language())
    command = f"regard learn read {lesson.number}"
    return PathStep("lesson", lesson.name, lesson.number, title, minutes, is_read(lesson, progress), command)


def is_read(lesson: Lesson, progress: Progress) -> bool:
    """Whether a lesson was opened, or all its exercises are passed."""
    own = [row.id for row in entries() if row.lesson == lesson.number]
    return lesson.name in progress.lessons or bool(own and all(map(progress.passed, own)))


def _exercise_step(row: Entry, progress: Progress) -> PathStep:
    minutes, title = exercise_minutes(row.id, language()), getattr(row.title, language())
    command = f"regard learn start {row.id}"
    return PathStep("exercise", row.id, row.lesson, title, minutes, progress.passed(row.id), command)


def _question_step(question: Question, progress: Progress) -> PathStep:
    card = progress.questions.get(question.id)
    is_done = card is not None and card.rated == "good"
    minutes, command = question_minutes(question, language()), f"regard learn ask {question.id}"
    return PathStep("question", question.id, question.lesson, question.text().ask, minutes, is_done, command)


# --- times -------------------------------------------------------------------------------------------------


def reading_minutes(text: str) -> float:
    """The time to study a text without its code blocks and pictures.

    >>> reading_minutes("word " * 240), reading_minutes("字" * 100)
    (2.0, 0.5)
    """
    prose = _PICTURE.sub("", _FENCED.sub("", text))
    return len(_WORD.findall(prose)) / WORDS + len(_CHINESE.findall(prose)) / CHARACTERS


@cache
def lesson_minutes(number: int, lang: Language) -> float:
    """The time of a lesson: its text, and BLOCK for each code block and picture."""
    text = next(lesson for lesson in lessons() if lesson.number == number).text(lang)
    return reading_minutes(text) + BLOCK * (len(_FENCED.findall(text)) + len(_PICTURE.findall(text)))


@cache
def exercise_minutes(id: str, lang: Language) -> float:
    """The time of an exercise: EXERCISE, its task, and the lines to write, the lines to search, or the steps of its
    sheet."""
    row = next(row for row in entries() if row.id == id)
    home = folder(row)
    content = tomllib.loads((home / "task.toml").read_text(encoding="utf-8"))
    before = EXERCISE + reading_minutes(content["task"][lang])
    if row.kind == "sheet":
        return before + SHEET_STEP * len(content.get("cases", {}))
    stub = _lines((home / "stub.py").read_text(encoding="utf-8"))
    if row.kind == "bug":
        return before + SEARCHED_LINE * stub.total()
    return before + LINE * (_lines((home / "solution.py").read_text(encoding="utf-8")) - stub).total()


def _lines(source: str) -> Counter[str]:
    """The lines of a program, without blank lines and comments."""
    return Counter(line for text in source.splitlines() if (line := text.strip()) and not line.startswith("#"))


def question_minutes(question: Question, lang: Language) -> float:
    """The time of a question: the limit of its level in an interview, and reading the answers."""
    text = question.text(lang)
    return LIMITS[question.level] / 60 + reading_minutes(text.short) + reading_minutes(text.deep)
