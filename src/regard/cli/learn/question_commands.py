"""`regard learn ask`, and what it shares with `interview`: questions on a terminal, ratings and their dates."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.help_page import WIDEST
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import say
from regard.views.labels import fold

if TYPE_CHECKING:
    from regard.course.progress import Card, Progress, ProgressFile, Rating
    from regard.course.questions import Question


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
    from regard.course.lessons import lessons

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
    from regard.course.questions import rate

    after = progress_file.change(
        lambda progress: progress.with_card(
            question.id, rate(progress.questions.get(question.id), rating, date.today())
        )
    )
    return after.questions[question.id]


# --- ask ---------------------------------------------------------------------------------------------------


def ask(
    id: Annotated[str | None, typer.Argument(metavar="metavar-question", help="help-question")] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="help-reveal")] = False,
    rating: Annotated[str | None, typer.Option("--rate", metavar="metavar-rating", help="help-rate")] = None,
    listed: Annotated[bool, typer.Option("--list", help="help-ask-list")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress import ProgressFile

    progress_file = ProgressFile(report=print_message)
    if listed:
        _list(progress_file.read(), as_json)
        return
    if rating is not None and id is None:
        raise ArgumentError("rate-which")
    rated = None if rating is None else parsed_rating(rating)
    question = _chosen(id, progress_file.read())
    if question is None:
        _nothing_due(progress_file.read(), as_json)
    elif rated is not None:
        _rate(progress_file, question, rated, as_json)
    elif as_json:
        write_json(question_json(question, progress_file.read().questions.get(question.id), reveal))
    elif reveal:
        put(f"{_question_text(question)}\n\n{answers_text(question)}")
    elif is_terminal():
        _ask_interactively(progress_file, question)
    else:
        put(_question_text(question), flush=True)
        print_message(say("ask-how", question=question.id))


def _chosen(id: str | None, progress: "Progress") -> "Question | None":
    """The requested question, or the next one; None if none is due."""
    from regard.course.questions import next_question, question, questions

    if id is not None:
        return question(id)
    next_id = next_question([one.id for one in questions()], progress.questions, date.today())
    return None if next_id is None else question(next_id)


def _ask_interactively(progress_file: "ProgressFile", question: "Question") -> None:
    """Show the question, the answers, and ask for a rating. Ctrl-D ends it at any point without a rating."""
    text = question.text()
    put(_question_text(question))
    if typed(say("ask-think")) is None:
        return
    put(folded(text.short))
    if typed(say("ask-deeper")) is None:
        return
    put(f"{folded(text.deep)}\n\n{links(question)}")
    if (rating := typed_rating()) is not None:
        _rate(progress_file, question, rating, as_json=False)


def _question_text(question: "Question") -> str:
    return f"[{question.id}] {say('learn-lesson-short', number=question.lesson)}\n\n{folded(question.text().ask)}"


def _list(progress: "Progress", as_json: bool) -> None:
    from regard.course.questions import questions

    if as_json:
        write_json({"questions": [question_json(one, progress.questions.get(one.id), False) for one in questions()]})
        return
    longest = max(len(one.id) for one in questions())
    for one in questions():
        card = progress.questions.get(one.id)
        put(f"{' ' * 10 if card is None else card.due}  {one.id:{longest}}  {one.text().ask}")


def _rate(progress_file: "ProgressFile", question: "Question", rating: "Rating", as_json: bool) -> None:
    card = save_rating(progress_file, question, rating)
    if as_json:
        write_json(question_json(question, card, reveal=False))
    elif progress_file.is_saved:
        print_message(say("ask-again-today" if rating == "again" else "ask-again-on", day=card.due))


def _nothing_due(progress: "Progress", as_json: bool) -> None:
    from regard.course.questions import next_day, questions

    day = next_day([one.id for one in questions()], progress.questions)
    if as_json:
        write_json({"id": None, "next_day": day})
    else:
        print_message(say("ask-nothing-due", day=day))
