"""What `ask` and `interview` share: a question as text and as JSON, keyboard input, and ratings."""

from datetime import date
from typing import TYPE_CHECKING, Any

from regard.cli.help_page import WIDEST
from regard.cli.streams import print_message, put
from regard.errors import ArgumentError
from regard.messages import say
from regard.views.line_breaks import fold

if TYPE_CHECKING:
    from regard.course.progress import Card, ProgressFile, Rating
    from regard.course.questions.bank import Question

SPELLINGS: "dict[str, Rating]" = {"1": "again", "2": "unsure", "3": "good", "１": "again", "２": "unsure", "３": "good"}
"""Short spellings of the ratings."""


def is_terminal() -> bool:
    """Whether a person can read the output and type an answer."""
    import sys

    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


# --- output ------------------------------------------------------------------------------------------------


def answers_text(question: "Question") -> str:
    """Both answers, the experiment, and what to do next."""
    text = question.text()
    return f"{folded(text.short)}\n\n{folded(text.deep)}\n\n{links(question)}"


def links(question: "Question") -> str:
    """What to do next: the experiment, the lesson if there is one, the exercise."""
    code = "\n".join(f"    {line}".rstrip() for line in question.experiment.strip().splitlines())
    more = " · ".join(study_commands([question.lesson], [question.exercise]))
    return f"{say('ask-experiment')}\n\n{code}\n\n{say('ask-links', commands=more)}"


def study_commands(numbers: "list[int]", exercises: "list[str]") -> list[str]:
    """The commands that open these lessons, where their text exists, and start these exercises."""
    from regard.course.lessons.index import lessons

    reads = [f"regard learn read {one.number}" for one in lessons() if one.number in numbers]
    return [*reads, *(f"regard learn start {exercise}" for exercise in exercises)]


def folded(text: str) -> str:
    """Paragraphs wrapped to the terminal; indented lines keep their line breaks."""
    import shutil

    width = min(shutil.get_terminal_size().columns, WIDEST)
    return "\n".join(line if line.startswith(" ") else "\n".join(fold(line, width)) for line in text.splitlines())


def question_json(question: "Question", card: "Card | None", reveal: bool) -> dict[str, Any]:
    """The question and its card; the answers only with `reveal`."""
    from dataclasses import asdict

    text = question.text()
    about = {"id": question.id, "topic": question.topic, "level": question.level, "lesson": question.lesson}
    about |= {"exercise": question.exercise, "ask": text.ask}
    answers = {"short": text.short, "deep": text.deep, "experiment": question.experiment} if reveal else {}
    return about | answers | {"card": None if card is None else asdict(card)}


# --- input and progress ------------------------------------------------------------------------------------


def typed(prompt: str) -> str | None:
    """A line from the keyboard; None at end of file."""
    try:
        return input(f"\n{prompt} ")
    except EOFError:
        put()
        return None


def typed_rating() -> "Rating | None":
    """A rating from the keyboard, asked for until it is valid; None at end of file."""
    while (text := typed(say("ask-rate"))) is not None:
        try:
            return parsed_rating(text)
        except ArgumentError as error:
            print_message(error.text())
    return None


def parsed_rating(text: str) -> "Rating":
    """The rating with this name or number."""
    from regard.course.progress import RATINGS

    for known in RATINGS:
        if SPELLINGS.get(text.strip(), text.strip().lower()) == known:
            return known
    raise ArgumentError("rate-unknown", found=text)


def save_rating(progress_file: "ProgressFile", question: "Question", rating: "Rating") -> "Card":
    """Store the rating and return the new card."""
    from regard.course.questions.bank import rate

    after = progress_file.change(
        lambda progress: progress.with_card(
            question.id, rate(progress.questions.get(question.id), rating, date.today())
        )
    )
    return after.questions[question.id]
